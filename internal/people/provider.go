package people

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"modelgate"
)

// Provider is an OpenID provider that people sign in with.
type Provider struct {
	Name         string // in addresses and metrics
	Label        string // on the sign-in page
	Issuer       string
	ClientID     string
	ClientSecret string // "" for a public client
	Scopes       []string
	Claims       Claims
	// TrustEmail takes an e-mail address for verified where the provider does
	// not say whether it is.
	TrustEmail bool
	Domains    []string       // of verified addresses; nil for any account
	MaxAge     time.Duration  // since the account proved who it is; 0 for any
	Roots      *x509.CertPool // nil for the system's
	Rules      []Rule
	// Groups says that groups are wanted without Rules too.
	Groups bool
}

// Rule makes the accounts of a group members of an organization.
type Rule struct {
	Organization modelgate.ClientID
	Group        string // "*" for every account
	Role         modelgate.Role
}

const (
	// patience bounds each request to a provider.
	patience = 10 * time.Second
	// maxAnswer bounds each answer of a provider, in bytes.
	maxAnswer = 1 << 20
	// rediscover is how old a provider's configuration may become.
	rediscover = time.Hour
	// leeway is how far the provider's clock may be from this one.
	leeway = time.Minute
)

// algorithms are those whose keys the provider alone has.
func algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
}

// party is the gateway as a client of one provider. Safe for concurrent use.
type party struct {
	Provider
	callback string
	http     *http.Client
	now      func() time.Time
	flight   singleflight.Group

	mu    sync.Mutex
	found *discovered
}

// discovered is what a provider says of itself.
type discovered struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
	at       time.Time

	EndSession    string   `json:"end_session_endpoint"`
	SendsIssuer   bool     `json:"authorization_response_iss_parameter_supported"`
	ClientMethods []string `json:"token_endpoint_auth_methods_supported"`
	JWKS          string   `json:"jwks_uri"`
	UserInfo      string   `json:"userinfo_endpoint"`
}

func newParty(p Provider, callback string, now func() time.Time) *party {
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.Roots}, TLSHandshakeTimeout: patience,
		ResponseHeaderTimeout: patience, IdleConnTimeout: time.Minute, MaxIdleConns: 4, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}
	return &party{Provider: p, callback: callback, now: now, http: &http.Client{
		Transport: bounded{transport}, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the provider redirects, which is not followed")
		},
	}}
}

// bounded fails where an answer is too long.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the provider's answer has more than %d bytes", maxAnswer)
	}
	return n, err
}

// context lets the libraries use the party's client.
func (p *party) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.http)
}

// discover is what the provider says of itself, at most rediscover old. One
// request is made for all that wait.
func (p *party) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	found := p.found
	p.mu.Unlock()
	if found != nil && p.now().Sub(found.at) < rediscover {
		return found, nil
	}
	answer := p.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		fresh, err := p.ask(ctx)
		if err == nil {
			p.mu.Lock()
			p.found = fresh
			p.mu.Unlock()
		}
		return fresh, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answer:
		if a.Err != nil {
			return nil, a.Err
		}
		return a.Val.(*discovered), nil
	}
}

func (p *party) ask(ctx context.Context) (*discovered, error) {
	provider, err := oidc.NewProvider(p.context(ctx), p.Issuer)
	if err != nil {
		return nil, err
	}
	d := &discovered{provider: provider, at: p.now()}
	if err := provider.Claims(d); err != nil {
		return nil, err
	}
	endpoint := provider.Endpoint()
	for _, address := range []string{endpoint.AuthURL, endpoint.TokenURL, d.JWKS, d.UserInfo, d.EndSession} {
		if err := p.trusted(address); address != "" && err != nil {
			return nil, err
		}
	}
	if endpoint.AuthURL == "" || endpoint.TokenURL == "" || d.JWKS == "" {
		return nil, errors.New("the provider does not say where accounts sign in, or where its tokens and keys are")
	}
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if p.ClientSecret == "" || len(d.ClientMethods) > 0 && !slices.Contains(d.ClientMethods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	scopes := slices.Compact(append([]string{oidc.ScopeOpenID}, slices.DeleteFunc(slices.Clone(p.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...))
	d.oauth = oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: endpoint, RedirectURL: p.callback, Scopes: scopes}
	d.verifier = provider.Verifier(&oidc.Config{ClientID: p.ClientID, SupportedSigningAlgs: algorithms(), Now: p.now})
	return d, nil
}

// trusted wants an address of https, or of http where the issuer has it too.
func (p *party) trusted(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !strings.HasPrefix(p.Issuer, "http://")) {
		return errors.New("the provider names an address that is not https")
	}
	return nil
}

// address is where a browser is sent to sign in.
func (p *party) address(d *discovered, a *attempt) string {
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if p.MaxAge > 0 {
		options = append(options, oauth2.SetAuthURLParam("max_age", fmt.Sprint(int64(p.MaxAge.Seconds()))))
	}
	return d.oauth.AuthCodeURL(a.State, options...)
}

// redeem exchanges a code for the account that it stands for. Errors: forbidden
// for what the provider must not say, bad_gateway where it does not answer,
// bad_request where the code is not good.
func (p *party) redeem(ctx context.Context, d *discovered, a *attempt, code string) (*account, error) {
	ctx = p.context(ctx)
	token, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "invalid_grant" {
		return nil, errStart
	}
	if err != nil {
		return nil, p.noAnswer(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return nil, p.bad(err)
	}
	if err := p.judge(id, a); err != nil {
		return nil, p.bad(err)
	}
	if id.AccessTokenHash != "" {
		if err := id.VerifyAccessToken(token.AccessToken); err != nil {
			return nil, p.bad(err)
		}
	}
	said := map[string]any{}
	if err := id.Claims(&said); err != nil {
		return nil, p.bad(err)
	}
	if d.UserInfo != "" && !p.Claims.complete(said, p.Groups || len(p.Rules) > 0) {
		info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err != nil {
			return nil, p.noAnswer(err)
		}
		if info.Subject != id.Subject {
			return nil, p.bad(errors.New("userinfo is another account's"))
		}
		more := map[string]any{}
		if err := info.Claims(&more); err != nil {
			return nil, p.bad(err)
		}
		for name, value := range more {
			if _, known := said[name]; !known {
				said[name] = value
			}
		}
	}
	return p.account(id, said)
}

// judge looks at what the library leaves.
func (p *party) judge(id *oidc.IDToken, a *attempt) error {
	var more struct {
		AZP      *string  `json:"azp"`
		AuthTime *float64 `json:"auth_time"`
	}
	if err := id.Claims(&more); err != nil {
		return err
	}
	now := p.now()
	switch {
	case id.Nonce == "" || subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1:
		return errors.New("the token's nonce is another one")
	case more.AZP != nil && *more.AZP != p.ClientID, more.AZP == nil && len(id.Audience) > 1:
		return errors.New("the token was issued to another client")
	case id.Subject == "" || len(id.Subject) > maxSubject:
		return fmt.Errorf("the token's sub must have 1 to %d characters", maxSubject)
	case id.IssuedAt.IsZero() || id.IssuedAt.After(now.Add(leeway)):
		return errors.New("the token's iat is missing or lies ahead")
	case p.MaxAge > 0 && more.AuthTime == nil:
		return errors.New("the token has no auth_time")
	case p.MaxAge > 0 && now.Sub(time.Unix(int64(*more.AuthTime), 0)) > p.MaxAge+leeway:
		return errors.New("the account proved who it is too long ago")
	}
	return nil
}

// cause is an error that a browser is shown, with a cause that the log has.
type cause struct {
	shown *modelgate.Error
	why   error
}

// Error is what is shown.
func (c *cause) Error() string { return c.shown.Message }

// Unwrap keeps the cause from deciding what is shown.
func (c *cause) Unwrap() error { return c.shown }

func (p *party) noAnswer(err error) error {
	return &cause{modelgate.Errorf(modelgate.BadGateway, "%s did not answer; try again shortly", p.Label), err}
}

func (p *party) bad(err error) error {
	return &cause{modelgate.Errorf(modelgate.Forbidden, "%s sent an answer that cannot be trusted; nobody was signed in", p.Label), err}
}
