package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// cookieOf signs a key in at a place and returns the cookie as a request shows
// it.
func cookieOf(t *testing.T, url, root, key string) string {
	t.Helper()
	resp, text := newBrowser(t, url).send("POST "+root+"/session", fmt.Sprintf(`{"key":%q}`, key))
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		t.Fatalf("signing in at %s: %d %s", root, resp.StatusCode, text)
	}
	return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
}

// TestSignOutEndsTheSession: a cookie that somebody kept is nothing after the
// session was signed out, on the instance that was asked at once and on
// another within two seconds.
func TestSignOutEndsTheSession(t *testing.T) {
	t.Parallel()
	database := testkit.Postgres(t)
	a := newBench(t, testkit.GatewayOptions{Database: database})
	b := testkit.StartGateway(t, testkit.GatewayOptions{Database: database})
	kept := []string{"Cookie", cookieOf(t, a.URL, "/dashboard", a.key)}
	other := []string{"Cookie", cookieOf(t, a.URL, "/dashboard", a.key)}
	onA, onB := newBrowser(t, a.URL), newBrowser(t, b.URL)
	onA.want(200, "GET /dashboard/gw/me", "", kept...)
	onB.want(200, "GET /dashboard/gw/me", "", kept...)
	onB.want(200, "GET /dashboard/gw/me", "", other...)

	onA.want(204, "DELETE /dashboard/session", "", kept...)
	signedOut := time.Now()
	onA.want(401, "GET /dashboard/gw/me", "", kept...)
	for {
		resp, _ := onB.send("GET /dashboard/gw/me", "", kept...)
		if resp.StatusCode == http.StatusUnauthorized {
			break
		}
		if time.Since(signedOut) > 2*time.Second {
			t.Fatalf("the other instance still answers %d", resp.StatusCode)
		}
	}
	t.Logf("refused by the other instance after %s", time.Since(signedOut))
	onA.want(204, "DELETE /dashboard/session", "", kept...) // it is signed out already
	// Another session of the same key goes on, until all are signed out.
	onA.want(200, "GET /dashboard/gw/me", "", other...)
	third := []string{"Cookie", cookieOf(t, b.URL, "/dashboard", a.key)}
	onA.want(401, "DELETE /dashboard/session?everywhere=true", "", kept...)
	onA.want(400, "DELETE /dashboard/session?everywhere=perhaps", "", other...)
	onA.want(204, "DELETE /dashboard/session?everywhere=true", "", other...)
	onA.want(401, "GET /dashboard/gw/me", "", other...)
	onA.want(401, "GET /dashboard/gw/me", "", third...)
	onA.signIn("/dashboard", a.key) // and the key is as good as ever
	onA.want(200, "GET /dashboard/gw/me", "")
}

// TestSignOutWithoutADatabase clears the cookie and says that the session may
// go on elsewhere.
func TestSignOutWithoutADatabase(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgresCluster(t)
	g := newBench(t, testkit.GatewayOptions{Database: cluster.Database(t)})
	cookie := []string{"Cookie", cookieOf(t, g.URL, "/dashboard", g.key)}
	w := newBrowser(t, g.URL)
	w.want(200, "GET /dashboard/gw/me", "", cookie...)
	cluster.Stop(t)
	// What was looked up lately goes on, as it does for keys.
	w.want(200, "GET /dashboard/gw/me", "", cookie...)
	resp, text := w.send("DELETE /dashboard/session", "", cookie...)
	if resp.StatusCode != http.StatusServiceUnavailable || len(resp.Cookies()) != 1 || resp.Cookies()[0].MaxAge >= 0 {
		t.Errorf("signing out: %d %v %s", resp.StatusCode, resp.Cookies(), text)
	}
	w.want(503, "GET /dashboard/gw/me", "", cookie...) // here it is not known any more
	w.want(503, "POST /dashboard/session", fmt.Sprintf(`{"key":%q}`, g.key))
	cluster.Start(t)
	w.want(204, "DELETE /dashboard/session", "", cookie...)
	w.want(401, "GET /dashboard/gw/me", "", cookie...)
}
