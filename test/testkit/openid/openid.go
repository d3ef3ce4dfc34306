// Package openid is an OpenID provider for tests, which can be made to lie.
package openid

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// ClientID is what it calls the gateway.
const ClientID = "modelgate"

// Provider is the provider. Its fields are changed before it is asked.
type Provider struct {
	*httptest.Server
	Key *rsa.PrivateKey   // RS256, under the id now
	EC  *ecdsa.PrivateKey // ES256, under the id ec
	Old *rsa.PrivateKey   // is not among the keys that are published
	// Claims are changes of the claims of ID tokens; nil deletes one. Info are
	// those of userinfo, which has no more than sub.
	Claims, Info map[string]any
	// Sign signs the claims of ID tokens; nil does it as it should be.
	Sign func(payload []byte) string
	// Discover changes what the provider says of itself.
	Discover func(map[string]any)
	// Answer answers a path instead of the provider.
	Answer map[string]http.HandlerFunc

	t     testing.TB
	clock func() time.Time

	mu       sync.Mutex
	nonce    string // of the sign-in under way
	verifier string // PKCE's challenge
	asked    map[string]int
}

// New starts a provider, which tells the time by a clock.
func New(t testing.TB, clock func() time.Time) *Provider {
	t.Helper()
	p := &Provider{t: t, clock: clock, Answer: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	for _, into := range []**rsa.PrivateKey{&p.Key, &p.Old} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		*into = key
	}
	var err error
	if p.EC, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.URL.Path]++
	other := p.Answer[r.URL.Path]
	p.mu.Unlock()
	if other != nil {
		other(w, r)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		said := map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"userinfo_endpoint": p.URL + "/userinfo", "end_session_endpoint": p.URL + "/end",
			"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"},
		}
		if p.Discover != nil {
			p.Discover(said)
		}
		writeJSON(w, said)
	case "/keys":
		writeJSON(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
			{Key: p.Key.Public(), KeyID: "now", Algorithm: "RS256", Use: "sig"},
			{Key: p.EC.Public(), KeyID: "ec", Algorithm: "ES256", Use: "sig"},
		}})
	case "/token":
		p.token(w, r)
	case "/auth":
		http.Redirect(w, r, r.URL.Query().Get("redirect_uri")+"?"+p.Visit(r.URL.String()).Encode(), http.StatusFound)
	case "/end":
		http.Redirect(w, r, r.URL.Query().Get("post_logout_redirect_uri"), http.StatusFound)
	case "/userinfo":
		if r.Header.Get("Authorization") != "Bearer access" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		writeJSON(w, merged(map[string]any{"sub": "anna"}, p.Info))
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if r.PostFormValue("code") != "good" || base64.RawURLEncoding.EncodeToString(sum[:]) != p.verifier {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		writeJSON(w, map[string]string{"error": "invalid_grant"})
		return
	}
	writeJSON(w, map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": p.idToken()})
}

// idToken is the token of the sign-in under way; p.mu is held.
func (p *Provider) idToken() string {
	now := p.clock()
	claims := merged(map[string]any{
		"iss": p.URL, "sub": "anna", "aud": ClientID, "exp": now.Add(5 * time.Minute).Unix(), "iat": now.Unix(), "nonce": p.nonce,
		"email": "anna@example.com", "email_verified": true, "name": "Anna", "groups": []string{"staff", "ops"}, "sid": "sid-1",
	}, p.Claims)
	payload, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	if p.Sign != nil {
		return p.Sign(payload)
	}
	return Sign(p.t, jose.RS256, p.Key, "now", payload)
}

// LogoutToken is one of the provider's; changes are as those of claims.
func (p *Provider) LogoutToken(changes map[string]any) string {
	now := p.clock()
	payload, err := json.Marshal(merged(map[string]any{
		"iss": p.URL, "sub": "anna", "aud": ClientID, "exp": now.Add(time.Minute).Unix(), "iat": now.Unix(), "jti": rand.Text(), "sid": "sid-1",
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}, changes))
	if err != nil {
		p.t.Error(err)
	}
	return Sign(p.t, jose.RS256, p.Key, "now", payload)
}

// Visit is a browser's way through the provider: it takes the address that it was
// sent to and returns the query that it comes back with.
func (p *Provider) Visit(address string) url.Values {
	u, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	q := u.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nonce, p.verifier = q.Get("nonce"), q.Get("code_challenge")
	if q.Get("code_challenge_method") != "S256" || q.Get("client_id") != ClientID || q.Get("response_type") != "code" {
		p.t.Errorf("the browser is sent to %s", address)
	}
	return url.Values{"state": {q.Get("state")}, "code": {"good"}}
}

// Times is how often a path was asked for.
func (p *Provider) Times(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[path]
}

func merged(base, changes map[string]any) map[string]any {
	for name, value := range changes {
		base[name] = value
	}
	maps.DeleteFunc(base, func(_ string, v any) bool { return v == nil })
	return base
}

// Sign signs claims with a key.
func Sign(t testing.TB, alg jose.SignatureAlgorithm, key any, kid string, payload []byte) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Error(err)
		return ""
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Error(err)
	}
	return text
}

// Handmade is a token whose header the library would not make.
func Handmade(header string, payload, signature []byte) string {
	b := base64.RawURLEncoding
	return b.EncodeToString([]byte(header)) + "." + b.EncodeToString(payload) + "." + b.EncodeToString(signature)
}

// RS256 signs claims under a header that the library would not make.
func RS256(t testing.TB, key *rsa.PrivateKey, header string, payload []byte) string {
	b := base64.RawURLEncoding
	sum := sha256.Sum256([]byte(b.EncodeToString([]byte(header)) + "." + b.EncodeToString(payload)))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Error(err)
	}
	return Handmade(header, payload, signature)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		fmt.Println(err)
	}
}
