package cloud

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/smithy-go"
	"golang.org/x/oauth2"
)

// maxDescription bounds the description of an error, in bytes.
const maxDescription = 300

// secretLike matches what may be a key, a token or a part of one.
var secretLike = regexp.MustCompile(`[A-Za-z0-9_+=-]{24,}`)

// describe says why a credential could not be fetched. The errors of the vendors'
// libraries hold whole answers of token services; of these only the code is
// taken, and nothing that may be a secret.
func describe(err error) error {
	var timeout net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("the token service did not answer within %s", maxWait)
	}
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if refusal.Response != nil {
			status = refusal.Response.StatusCode
		}
		return fmt.Errorf("the token service answered %d %s", status, clean(refusal.ErrorCode))
	}
	if refusal, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok && refusal.RawResponse != nil {
		return fmt.Errorf("the token service answered %d", refusal.RawResponse.StatusCode)
	}
	if refusal, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Errorf("the token service answered %s", clean(refusal.ErrorCode()))
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return file
	}
	if connection, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("the token service cannot be reached: %w", connection)
	}
	return errors.New(clean(err.Error()))
}

// clean is the first line of a text, without what may be a secret.
func clean(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, "{")
	text = secretLike.ReplaceAllString(text, "[redacted]")
	return strings.ToValidUTF8(text[:min(len(text), maxDescription)], "")
}
