package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"modelgate/test/testkit"
)

// alternator is https://gw.test: it sends each request to another instance.
type alternator struct {
	*httptest.Server
	targets atomic.Pointer[[]*url.URL]
	turn    atomic.Int64
}

func newAlternator(t *testing.T, certificate tls.Certificate) *alternator {
	t.Helper()
	b := &alternator{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		targets := *b.targets.Load()
		r.SetURL(targets[int(b.turn.Add(1))%len(targets)])
		r.Out.Host = r.In.Host
	}}
	b.Server = httptest.NewUnstartedServer(proxy)
	b.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

func (b *alternator) port() string { return b.URL[strings.LastIndex(b.URL, ":")+1:] }

// startIDP starts the OpenID provider of the browser tests and returns its issuer.
func startIDP(t *testing.T, env ...string) string {
	t.Helper()
	if err := installBrowserTests(); err != nil {
		t.Fatal(err)
	}
	idp := exec.Command("node", "--no-warnings", "idp.mjs")
	idp.Dir, idp.Stderr = browserTests, os.Stderr
	idp.Env = append(os.Environ(), env...)
	in, err := idp.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := idp.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := idp.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		_ = idp.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider does not start: %v", err)
	}
	return strings.TrimSpace(line)
}

// TestPagesSignIn signs people in through a real browser, with accounts of an
// OpenID provider that is neither the gateway's library nor its site.
func TestPagesSignIn(t *testing.T) {
	t.Parallel()
	certFile, keyFile := testkit.Certificate(t, "gw.test")
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	b := newAlternator(t, certificate)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	console := "http://" + l.Addr().String()
	l.Close()
	issuer := startIDP(t, "CERT="+certFile, "KEY="+keyFile, "GATEWAY="+b.port(), "OPERATOR="+console)

	database := testkit.Postgres(t)
	seed := testkit.StartGateway(t, testkit.GatewayOptions{Database: database})
	acme, other := seed.NewClient("Acme"), seed.NewClient("Other")
	seed.Stop()
	config := fmt.Sprintf(`sign_in: {providers: [{name: corp, label: Acme SSO, issuer: %q, client_id: modelgate, client_secret: s3cret, ca_file: %q,
  organizations: [{organization: %s, group: ops, role: admin}, {organization: %s, group: staff, role: viewer}, {organization: %s, group: ops, role: viewer}]}]}
`, issuer, certFile, acme, acme, other)
	var targets []*url.URL
	for _, more := range []string{
		fmt.Sprintf("operator: {listen: %q, base_url: %q, sign_in: corp, roles: [{group: ops, role: admin}]}\n", strings.TrimPrefix(console, "http://"), console), "",
	} {
		g := testkit.StartGateway(t, testkit.GatewayOptions{Database: database, Server: `base_url: "https://gw.test"`, More: config + more})
		target, err := url.Parse(g.URL)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s", tail(g.Log(), 4000))
			}
		})
	}
	b.targets.Store(&targets)

	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := expire(r.Context(), db, r.URL.Query().Get("email")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(control.Close)

	spki := sha256.Sum256(certificate.Leaf.RawSubjectPublicKeyInfo)
	arguments, err := json.Marshal([]string{
		"--host-resolver-rules=MAP gw.test:443 127.0.0.1:" + b.port() + ", MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
		"--ignore-certificate-errors-spki-list=" + base64.StdEncoding.EncodeToString(spki[:]),
	})
	if err != nil {
		t.Fatal(err)
	}
	runBrowser(t, []string{`SHOP={"url":"https://gw.test","resellers":{"signin":{}}}`, "IDP=" + issuer, "CONTROL=" + control.URL, "OPERATOR=" + console, "BROWSER_ARGS=" + string(arguments)}, "--test", "signin.test.mjs")
}

// expire makes somebody's sessions some whose time was over before.
func expire(ctx context.Context, db *sql.DB, email string) error {
	_, err := db.ExecContext(ctx, `UPDATE session SET expires_at = created_at WHERE person_id IN (SELECT id FROM person WHERE email = $1)`, email)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `UPDATE control SET session_version = session_version + 1`)
	return err
}
