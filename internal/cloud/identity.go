// Package cloud authorizes requests to model services in the operator's own AWS,
// Google Cloud or Azure account, with credentials that live for minutes or hours:
// it fetches them with the vendors' libraries, has the next one before the last
// ends, and signs requests or sets their token. Package provider sees an
// Identity through its interface only; nothing on the way of a call imports the
// vendors' libraries.
package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// Config says where the credentials of one provider come from. Exactly one of
// AWS, Google and Azure is set.
type Config struct {
	Provider string // its name, for the log and the metrics
	CAFile   string // PEM, trusted beside the system's authorities; "" for none
	AWS      *AWS
	Google   *Google
	Azure    *Azure
}

// Identity holds the credential of one provider and keeps it fresh. It is safe
// for concurrent use.
type Identity struct {
	provider    string
	kind        string // aws, google or azure
	fingerprint string
	tokens      *cache
	set         func(*credential, *http.Request, []byte) error
}

// New makes an identity. It fetches nothing before Start or the first request.
// Its error is a fault of the configuration.
func New(c Config, log *slog.Logger) (*Identity, error) {
	transport, err := newTransport(c.CAFile, c.reachesMetadata())
	if err != nil {
		return nil, err
	}
	i := &Identity{provider: c.Provider, set: setBearer}
	var fetch fetcher
	var parts []string
	switch {
	case c.AWS != nil:
		fetch, i.kind, parts = c.AWS.fetcher(transport), "aws", []string{c.AWS.Region, c.AWS.Profile, c.AWS.RoleARN}
		i.set = newSigner(c.AWS.Service, c.AWS.Region, time.Now).sign
	case c.Google != nil:
		fetch, i.kind, parts = c.Google.fetcher(newClient(transport)), "google", []string{c.Google.Project, c.Google.Location}
	default:
		fetch, i.kind, parts = c.Azure.fetcher(newClient(transport)), "azure", []string{c.Azure.TenantID, c.Azure.ClientID}
	}
	i.fingerprint = fingerprint(i.kind, parts)
	i.tokens = newCache(fetch, log.With("provider", c.Provider, "identity", i.kind))
	return i, nil
}

// reachesMetadata reports whether the source may be a metadata service.
func (c *Config) reachesMetadata() bool {
	switch {
	case c.AWS != nil:
		return c.AWS.AccessKeyID == "" && c.AWS.WebIdentityTokenFile == ""
	case c.Google != nil:
		return true // the default chain, and files that name it as a source
	}
	return c.Azure.ManagedIdentity || c.Azure.ambient()
}

// fingerprint tells identities apart without any of their secrets, so that jobs
// are found again after a key was replaced.
func fingerprint(kind string, parts []string) string {
	sum := sha256.Sum256([]byte("modelgate identity\x00" + kind + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Authorize signs a request, or sets its token: the last that happens to it. It
// waits for at most five seconds where there is no credential that can be used.
// Errors: modelgate.ErrCredential, and a bad request for a query that cannot be
// signed.
func (i *Identity) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	c, err := i.tokens.get(ctx)
	if err != nil {
		return err
	}
	return i.set(c, req, body)
}

// Fingerprint names the identity in jobs; it has no secret in it.
func (i *Identity) Fingerprint() string { return i.fingerprint }

// Replied has the credential fetched again where a reply refuses it, at most
// once in 30 seconds.
func (i *Identity) Replied(reply *http.Response) {
	if refused(reply) {
		i.tokens.refused()
	}
}

// refused reports whether a reply says that the credential or the signature is
// not accepted. A 403 of another kind refuses the model.
func refused(reply *http.Response) bool {
	switch reply.StatusCode {
	case http.StatusUnauthorized:
		return true
	case http.StatusForbidden:
		kind, _, _ := strings.Cut(reply.Header.Get("X-Amzn-Errortype"), ":")
		kind = kind[strings.LastIndexByte(kind, '#')+1:] // after the name of the service
		switch strings.TrimSuffix(kind, "Exception") {
		case "ExpiredToken", "UnrecognizedClient", "InvalidSignature", "IncompleteSignature", "InvalidClientTokenId", "MissingAuthenticationToken":
			return true
		}
	}
	return false
}

// Status is what is known of an identity's credential.
type Status struct {
	Provider  string
	Kind      string    // aws, google or azure
	Source    string    // where the credential came from, in words of the library; "" before there is one
	ExpiresAt time.Time // zero: never, or there is none
	Err       error     // of the last fetch; nil where it succeeded. It has no secret in it
}

// Check fetches a credential now.
func (i *Identity) Check(ctx context.Context) Status {
	s := Status{Provider: i.provider, Kind: i.kind}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	c, err := i.tokens.fetch(ctx)
	if err == nil {
		err = c.problem(time.Now())
	}
	if err != nil {
		s.Err = describe(err)
		return s
	}
	s.Source, s.ExpiresAt = c.source, c.expires
	return s
}

// Start fetches the first credential in the background, and from then on each
// next one before the last ends.
func (i *Identity) Start() { i.tokens.start() }

// Close ends the fetching ahead. Requests that are still made with the identity
// fetch what they need.
func (i *Identity) Close() { i.tokens.close() }
