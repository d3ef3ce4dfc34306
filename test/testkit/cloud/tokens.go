package cloud

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Secrets that the token services accept.
const (
	ClientSecret = "canary-client-secret-7f3a"
	WebIdentity  = "canary-web-identity-19c2"
)

// TokenService stands in for the token services of all three clouds: STS, the
// instance and container endpoints of AWS; Google's token endpoint, token
// exchange, impersonation and metadata; Microsoft Entra and managed identities.
type TokenService struct {
	URL string
	TLS string // the same over TLS, which Entra needs
	// CA is the certificate of TLS, in PEM.
	CA []byte

	key *rsa.PrivateKey

	mu     sync.Mutex
	ledger []string // what was asked for, in order
	issued []string // tokens and secret keys
	ends   map[string]time.Time
	life   time.Duration
	broken func(n int) Fault
}

// Fault is what a token service does wrong.
type Fault string

// The faults.
const (
	None    Fault = ""
	Error   Fault = "500"
	Hang    Fault = "hang" // until the client gives up
	Garbage Fault = "<html>"
	Expired Fault = "expired"
	Huge    Fault = "10 MB"
)

// NewTokenService starts one. Its tokens live for an hour.
func NewTokenService(t testing.TB) *TokenService {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := &TokenService{key: key, ends: make(map[string]time.Time), life: time.Hour, broken: func(int) Fault { return None }}
	plain, secure := httptest.NewServer(s), httptest.NewTLSServer(s)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	s.URL, s.TLS = plain.URL, secure.URL
	s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	return s
}

// Live sets how long tokens live from now on.
func (s *TokenService) Live(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = d
}

// Break has the n-th request, counted from 1, fail as broken says.
func (s *TokenService) Break(broken func(n int) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = broken
}

// Ledger is what was asked for, in order.
func (s *TokenService) Ledger() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.ledger...)
}

// Issued are the tokens and secret keys that were given out.
func (s *TokenService) Issued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.issued...)
}

// Valid reports whether a token was given out and has not expired.
func (s *TokenService) Valid(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ends, known := s.ends[token]
	return known && time.Now().Before(ends)
}

// ServiceAccount is a key file of a Google service account.
func (s *TokenService) ServiceAccount() []byte {
	der, _ := x509.MarshalPKCS8PrivateKey(s.key)
	return encode(map[string]string{
		"type": "service_account", "client_email": "gate@acme.iam.gserviceaccount.com", "private_key_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": s.URL + "/google/token",
	})
}

// ExternalAccount is a file that exchanges the token in another file.
func (s *TokenService) ExternalAccount(tokenFile string, impersonated bool) []byte {
	file := map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": s.URL + "/google/sts",
		"credential_source": map[string]string{"file": tokenFile},
	}
	if impersonated {
		file["service_account_impersonation_url"] = s.URL + "/google/impersonate:generateAccessToken"
	}
	return encode(file)
}

// Impersonated is a file that impersonates another account with a service
// account's key.
func (s *TokenService) Impersonated() []byte {
	return encode(map[string]any{
		"type": "impersonated_service_account", "service_account_impersonation_url": s.URL + "/google/impersonate:generateAccessToken",
		"source_credentials": json.RawMessage(s.ServiceAccount()),
	})
}

func encode(v any) []byte {
	text, _ := json.Marshal(v)
	return text
}

// ServeHTTP answers as the service whose path it is.
func (s *TokenService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	what := r.URL.Path
	if action := r.Form.Get("Action"); action != "" {
		what = "sts " + action
	}
	s.ledger = append(s.ledger, what)
	fault, life := s.broken(len(s.ledger)), s.life
	secret := fmt.Sprintf("canary-token-%04d-%s", len(s.ledger), rand.Text())
	s.issued = append(s.issued, secret)
	s.ends[secret] = time.Now().Add(life)
	s.mu.Unlock()
	switch fault {
	case Error:
		http.Error(w, "out of order", http.StatusInternalServerError)
		return
	case Hang:
		<-r.Context().Done()
		return
	case Garbage:
		fmt.Fprint(w, "<html>welcome</html>")
		return
	case Huge:
		fmt.Fprintf(w, `{"access_token":"x","padding":"%s"}`, strings.Repeat("x", 10<<20))
		return
	case Expired:
		life = -time.Minute
	}
	if status := s.answer(w, r, secret, life); status != http.StatusOK {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":"invalid_grant","error_description":"echo of %s"}`, r.Form.Encode())
	}
}

func (s *TokenService) answer(w http.ResponseWriter, r *http.Request, secret string, life time.Duration) (status int) {
	ends := time.Now().Add(life)
	seconds := int(life.Seconds())
	switch path := r.URL.Path; {
	case r.Form.Get("Action") != "":
		return s.sts(w, r, secret, ends)
	case path == "/google/token":
		if !s.signed(r.Form.Get("assertion")) {
			return http.StatusBadRequest
		}
		return write(w, map[string]any{"access_token": secret, "token_type": "Bearer", "expires_in": seconds})
	case path == "/google/sts":
		if r.Form.Get("subject_token") != WebIdentity {
			return http.StatusBadRequest
		}
		return write(w, map[string]any{"access_token": secret, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": seconds})
	case path == "/google/impersonate:generateAccessToken":
		return write(w, map[string]any{"accessToken": secret, "expireTime": ends.UTC().Format(time.RFC3339)})
	case strings.HasSuffix(path, "/openid-configuration"):
		base := "https://" + r.Host + "/tenant"
		return write(w, map[string]any{"issuer": base + "/v2.0", "authorization_endpoint": base + "/authorize", "token_endpoint": base + "/oauth2/v2.0/token"})
	case strings.HasSuffix(path, "/oauth2/v2.0/token"):
		if r.Form.Get("client_secret") != ClientSecret && r.Form.Get("client_assertion") == "" {
			return http.StatusUnauthorized
		}
		return write(w, map[string]any{"access_token": secret, "token_type": "Bearer", "expires_in": seconds, "scope": r.Form.Get("scope")})
	case path == "/azure/identity":
		return write(w, map[string]any{"access_token": secret, "expires_on": fmt.Sprint(ends.Unix()), "resource": r.Form.Get("resource"), "token_type": "Bearer"})
	}
	return s.instance(w, r, secret, ends)
}

// instance answers as the metadata services of a machine.
func (s *TokenService) instance(w http.ResponseWriter, r *http.Request, secret string, ends time.Time) (status int) {
	keys := map[string]any{"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "AKIDMACHINE", "SecretAccessKey": secret, "Token": "session-" + secret,
		"Expiration": ends.UTC().Format(time.RFC3339), "LastUpdated": time.Now().UTC().Format(time.RFC3339)}
	switch path := r.URL.Path; {
	case path == "/latest/api/token":
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
		_, _ = w.Write([]byte("imds-session"))
	case path == "/latest/meta-data/iam/security-credentials/" || path == "/latest/meta-data/iam/security-credentials":
		_, _ = w.Write([]byte("role"))
	case strings.HasPrefix(path, "/latest/meta-data/iam/security-credentials/"), path == "/container":
		return write(w, keys)
	case strings.HasPrefix(path, "/computeMetadata/v1/instance/service-accounts/default/token"):
		w.Header().Set("Metadata-Flavor", "Google")
		return write(w, map[string]any{"access_token": secret, "token_type": "Bearer", "expires_in": int(time.Until(ends).Seconds())})
	case strings.HasPrefix(path, "/computeMetadata/"), path == "/":
		w.Header().Set("Metadata-Flavor", "Google")
		_, _ = w.Write([]byte("acme"))
	default:
		return http.StatusNotFound
	}
	return http.StatusOK
}

func (s *TokenService) sts(w http.ResponseWriter, r *http.Request, secret string, ends time.Time) (status int) {
	action := r.Form.Get("Action")
	if action == "AssumeRoleWithWebIdentity" && r.Form.Get("WebIdentityToken") != WebIdentity {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code><Message>echo of %s</Message></Error></ErrorResponse>`, r.Form.Get("WebIdentityToken"))
		return http.StatusOK
	}
	w.Header().Set("Content-Type", "text/xml")
	fmt.Fprintf(w, `<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%sResult><AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/%s</Arn><AssumedRoleId>x</AssumedRoleId></AssumedRoleUser>`+
		`<Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>%s</SecretAccessKey><SessionToken>session-%s</SessionToken><Expiration>%s</Expiration></Credentials></%sResult></%sResponse>`,
		action, action, r.Form.Get("RoleSessionName"), secret, secret, ends.UTC().Format(time.RFC3339), action, action)
	return http.StatusOK
}

func write(w http.ResponseWriter, v any) (status int) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(v))
	return http.StatusOK
}

// signed reports whether a JWT has the service account's signature (RS256).
func (s *TokenService) signed(jwt string) bool {
	head, signature, _ := strings.Cut(jwt[strings.Index(jwt, ".")+1:], ".")
	head = jwt[:strings.Index(jwt, ".")+1] + head
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(head))
	return err == nil && rsa.VerifyPKCS1v15(&s.key.PublicKey, crypto.SHA256, sum[:], raw) == nil
}

// Certificate is a certificate of an application with its private key, in PEM.
func (s *TokenService) Certificate(t testing.TB) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &s.key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := x509.MarshalPKCS8PrivateKey(s.key)
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
}
