package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"modelgate/internal/httpfield"
)

// maxToken bounds a token, in bytes.
const maxToken = 16 << 10

// redacted is printed in place of secrets.
const redacted = "[redacted]"

// fetcher gets a credential from its source.
type fetcher func(context.Context) (*credential, error)

// credential is what a source gave. It is immutable, and prints as
// [redacted].
type credential struct {
	bearer  string          // of Google and Azure
	keys    aws.Credentials // of AWS
	source  string
	expires time.Time // zero: never
	hint    time.Time // when the source wants to be asked again; zero: it did not say

	due   time.Time // when the next is fetched
	until time.Time // up to when it is used; zero: no end
}

// Format prints a placeholder for every verb.
func (c *credential) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

const (
	// reload is how often a credential is fetched again that does not expire,
	// and how long a token lives that does not say.
	reload = 5 * time.Minute
	// maxLead bounds how long before its end a credential is replaced, and
	// maxMargin how long before its end it is used no more.
	maxLead   = 10 * time.Minute
	maxMargin = 30 * time.Second
)

// problem is why a credential cannot be used, nil where it can.
func (c *credential) problem(now time.Time) error {
	switch {
	case c.bearer == "" && !c.keys.HasKeys():
		return errors.New("the source gave no credential")
	case len(c.bearer) > maxToken || !httpfield.IsValue(c.bearer):
		return errors.New("the source gave a token that no header can carry")
	case !c.expires.IsZero() && !c.expires.After(now):
		return errors.New("the source gave a credential that has expired")
	}
	return nil
}

// plan sets when the credential is replaced, and up to when it is used. Instances
// that got theirs at the same time do not all ask for the next at once.
func (c *credential) plan(now time.Time) {
	if c.expires.IsZero() {
		c.due, c.until = now.Add(reload), time.Time{}
		return
	}
	life := c.expires.Sub(now)
	lead := min(maxLead, life/4)
	c.due = c.expires.Add(-lead - rand.N(lead/10+1))
	if !c.hint.IsZero() && c.hint.Before(c.due) {
		c.due = c.hint
	}
	c.until = c.expires.Add(-min(maxMargin, life/10))
}

// usable reports whether requests may still be made with the credential. A nil
// one is not.
func (c *credential) usable(now time.Time) bool {
	return c != nil && (c.until.IsZero() || now.Before(c.until))
}

// setBearer sets the token of a request.
func setBearer(c *credential, req *http.Request, _ []byte) error {
	req.Header["Authorization"] = []string{"Bearer " + c.bearer}
	return nil
}
