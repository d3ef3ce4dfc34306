package provider

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/provider/credential"
)

// Call is one request to a provider, as a client made it.
type Call struct {
	Method string
	Path   string // escaped, below the base URL
	Query  string // raw
	Header http.Header
	Body   []byte
	Auth   *Auth             // of the door or route; nil: the format's
	Set    map[string]string // headers of the door; "" takes the client's away
	// Credential is the fingerprint of the credential to use; "" is any. It was
	// used before, at MadeAt.
	Credential string
	MadeAt     time.Time
}

// Attempt is a request that is ready to be sent once.
type Attempt struct {
	Request *http.Request
	url     url.URL // of the request
	target  string  // of its request line, set by sendable
	body    []byte
	used    *credential.Credential
	// held says that another goroutine may be reading the body.
	held atomic.Bool
}

// Left reports whether nobody reads the request's body any more: it has been
// written as far as it ever will be. Before Send it says nothing. Safe for
// concurrent use.
func (a *Attempt) Left() bool { return !a.held.Load() }

// Credential is the fingerprint of the credential in use, "" for none.
func (a *Attempt) Credential() string {
	if a.used == nil {
		return ""
	}
	return a.used.Fingerprint()
}

// Outbound makes the request for a call. Errors: modelgate.ErrCredential,
// modelgate.ErrCredentialNewer, modelgate.ErrCredentialGone, and a bad request where a gateway key stands
// in a place that would leave.
func (p *Provider) Outbound(ctx context.Context, call Call) (*Attempt, error) {
	a := &Attempt{body: call.Body}
	err := p.prepare(ctx, a, &call)
	if err != nil {
		return nil, err
	}
	req := a.Request
	p.copyHeaders(req.Header, call.Header)
	for name, value := range call.Set {
		if value == "" {
			req.Header.Del(name)
			continue
		}
		req.Header.Set(name, value)
	}
	for name, values := range p.headers {
		req.Header[name] = values
	}
	if leaks(req) {
		return nil, modelgate.Errorf(modelgate.BadRequest, "a gateway key stands outside the header for it; send it as Authorization: Bearer <key>")
	}
	if call.Credential != "" {
		a.used, err = p.secrets.Find(call.Credential, call.MadeAt)
	} else {
		a.used, err = p.secrets.Pick()
	}
	if err != nil {
		return nil, err
	}
	return a, p.authenticate(a, &call)
}

// authenticate sets the credential: last, and only on a request to the
// configured host.
func (p *Provider) authenticate(a *Attempt, call *Call) error {
	req := a.Request
	if req.URL.Scheme != p.base.Scheme || req.URL.Host != p.base.Host {
		return fmt.Errorf("provider %s: request to a host that is not its own", p.name)
	}
	if p.identity != nil {
		return p.identity.Authorize(req.Context(), req, a.body)
	}
	if a.used == nil {
		return nil
	}
	auth := p.format.Auth
	switch older := p.format.Older; {
	case p.auth != nil:
		auth = *p.auth
	case call.Auth != nil:
		auth = *call.Auth
	case older != nil:
		if version := req.Header.Get(older.Header); version != "" && version < older.Before {
			auth = older.Auth
		}
	}
	switch {
	case auth.Header != "":
		req.Header[auth.Header] = []string{auth.Prefix + a.used.Reveal()}
	case auth.Query != "":
		pair := url.QueryEscape(auth.Query) + "=" + url.QueryEscape(a.used.Reveal())
		if req.URL.RawQuery != "" {
			pair = req.URL.RawQuery + "&" + pair
		}
		req.URL.RawQuery = pair
	}
	return nil
}
