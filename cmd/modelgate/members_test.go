package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
	"modelgate/test/testkit/openid"
)

// signInAs signs somebody in at the provider, who is in groups, and returns the
// browser.
func signInAs(t *testing.T, p *openid.Provider, url, subject string, groups ...string) *browser {
	t.Helper()
	p.Claims = map[string]any{"sub": subject, "sid": "sid-" + subject, "email": subject + "@example.com", "name": subject, "groups": groups}
	w := newBrowser(t, url)
	if resp, text := arrive(t, p, w, url, url, ""); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %d %s", subject, resp.StatusCode, text)
	}
	return w
}

func readJSON[T any](t *testing.T, w *browser, target string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.want(200, target, "")), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

type memberRow struct {
	PersonID string `json:"person_id"`
	Email    string
	Role     string
	Source   string
	Status   string
}

type sessionRow struct {
	ID       string
	Kind     string
	PersonID *string `json:"person_id"`
	Current  bool
}

// TestMembersAndSessions: who manages the organization sees its people and ends
// their sessions, others end their own; roles are the provider's while a rule is
// about the member, and the organization's after that.
func TestMembersAndSessions(t *testing.T) {
	t.Parallel()
	p := openid.New(t, time.Now)
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	organization := g.NewClient("Acme")
	secret, _ := g.NewKey(organization)
	rules := func(groups ...string) string {
		var all []string
		for _, group := range groups {
			role, _, _ := strings.Cut(group, "s")
			all = append(all, fmt.Sprintf("{organization: %s, group: %s, role: %s}", organization, group, role))
		}
		return strings.Join(all, ", ")
	}
	with := func(rules string) {
		g.Stop()
		g.Configure(testkit.GatewayOptions{Server: `base_url: "http://gateway.test"`, More: signInConfig(p, rules)})
		g.Start()
	}
	with(rules("owners", "admins", "viewers"))
	contract := testkit.NewContract(t, fetch(t, g.URL+"/openapi.json"))

	owner, admin, viewer := signInAs(t, p, g.URL, "olga", "owners"), signInAs(t, p, g.URL, "adam", "admins"), signInAs(t, p, g.URL, "vera", "viewers")
	for _, w := range []*browser{owner, admin, viewer} {
		w.contract = contract
	}
	id := map[string]string{}
	for _, m := range readJSON[[]memberRow](t, admin, "GET /dashboard/gw/people") {
		name, _, _ := strings.Cut(m.Email, "@")
		id[name] = m.PersonID
		if m.Source != "rule" || m.Status != "active" {
			t.Errorf("%+v", m)
		}
	}
	if len(id) != 3 {
		t.Fatalf("members: %v", id)
	}
	first, _ := admin.send("GET /dashboard/gw/people?limit=1", "")
	if rest := readJSON[[]memberRow](t, admin, "GET /dashboard/gw/people?limit=2&cursor="+first.Header.Get("X-Next-Cursor")); len(rest) != 2 || rest[0].PersonID == id["olga"] {
		t.Errorf("second page: %+v", rest)
	}

	// Who they are, said by the API itself.
	type me struct {
		APIKey *struct{ ID string } `json:"api_key"`
		Person *struct{ ID, Name, Email string }
		Role   string
	}
	if who := readJSON[me](t, viewer, "GET /dashboard/gw/me"); who.APIKey != nil || who.Role != "viewer" || who.Person == nil || who.Person.ID != id["vera"] || who.Person.Email != "vera@example.com" {
		t.Errorf("%+v", who)
	}

	// A viewer sees and ends what is its own.
	viewer.want(403, "GET /dashboard/gw/people", "")
	if list := readJSON[[]sessionRow](t, viewer, "GET /dashboard/gw/sessions"); len(list) != 1 || !list[0].Current || *list[0].PersonID != id["vera"] {
		t.Errorf("a viewer's sessions: %+v", list)
	}
	all := readJSON[[]sessionRow](t, admin, "GET /dashboard/gw/sessions")
	if len(all) != 3 {
		t.Fatalf("an admin's sessions: %+v", all)
	}
	if list := readJSON[[]sessionRow](t, viewer, "GET /dashboard/gw/sessions?person_id="+id["adam"]); len(list) != 0 {
		t.Errorf("another's: %+v", list)
	}
	for _, s := range all {
		if *s.PersonID == id["adam"] {
			viewer.want(404, "DELETE /dashboard/gw/sessions/"+s.ID, "")
		}
	}
	viewer.want(403, "DELETE /dashboard/gw/sessions?person_id="+id["adam"], "")
	viewer.want(400, "DELETE /dashboard/gw/sessions", "")
	viewer.want(400, "GET /dashboard/gw/sessions?person_id=x", "")
	viewer.want(404, "DELETE /dashboard/gw/sessions/x", "")

	// Their groups decide while a rule is about them.
	const grouped = "this member comes from groups of Acme SSO; change them there"
	for _, target := range []string{"PATCH /dashboard/gw/people/" + id["vera"], "DELETE /dashboard/gw/people/" + id["vera"]} {
		if text := admin.want(409, target, `{"role":"admin"}`); !strings.Contains(text, grouped) {
			t.Errorf("%s: %s", target, text)
		}
	}
	if text := admin.want(403, "DELETE /dashboard/gw/people/"+id["olga"], ""); !strings.Contains(text, "only an owner can change owners") {
		t.Error(text)
	}
	admin.want(403, "PATCH /dashboard/gw/people/"+id["vera"], `{"role":"owner"}`)
	admin.want(400, "PATCH /dashboard/gw/people/"+id["vera"], `{"role":"boss"}`)
	admin.want(400, "PATCH /dashboard/gw/people/"+id["vera"], `{"roles":"viewer"}`)
	admin.want(404, "PATCH /dashboard/gw/people/x", `{"role":"viewer"}`)

	// Signed out everywhere by somebody else, at once.
	other := signInAs(t, p, g.URL, "vera", "viewers")
	admin.want(204, "DELETE /dashboard/gw/sessions?person_id="+id["vera"], "")
	viewer.want(401, "GET /dashboard/gw/me", "")
	other.want(401, "GET /dashboard/gw/me", "")
	viewer = signInAs(t, p, g.URL, "vera", "viewers")
	viewer.contract = contract
	mine := readJSON[[]sessionRow](t, viewer, "GET /dashboard/gw/sessions")
	viewer.want(204, "DELETE /dashboard/gw/sessions/"+mine[0].ID, "")
	viewer.want(401, "GET /dashboard/gw/me", "")

	// A key manages as an admin does, and sees its own session with theirs.
	key := newBrowser(t, g.URL)
	key.signIn("/dashboard", secret)
	key.want(403, "DELETE /dashboard/gw/people/"+id["olga"], "")
	kinds := map[string]int{}
	for _, s := range readJSON[[]sessionRow](t, key, "GET /dashboard/gw/sessions") {
		kinds[s.Kind]++
	}
	if kinds["key"] != 1 || kinds["person"] != 2 {
		t.Errorf("sessions by kind: %v", kinds)
	}

	metrics := string(fetch(t, g.URL+"/metrics"))
	for _, want := range []string{
		`modelgate_sessions{kind="key"} 1`, `modelgate_sessions{kind="person"} `, `modelgate_sign_ins_total{method="corp",outcome="signed_in"} 5`,
		`modelgate_sign_ins_total{method="key",outcome="signed_in"} 1`, `modelgate_oidc_seconds_count{step="code"} 5`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}

	// Without a rule the organization decides.
	with("")
	for _, w := range []*browser{owner, admin, key} {
		w.url = g.URL
	}
	owner.want(409, "PATCH /dashboard/gw/people/"+id["olga"], `{"role":"viewer"}`)
	owner.want(204, "PATCH /dashboard/gw/people/"+id["vera"], `{"role":"owner"}`)
	owner.want(204, "PATCH /dashboard/gw/people/"+id["olga"], `{"role":"viewer"}`)
	owner.want(403, "GET /dashboard/gw/people", "") // the role is another at once
	admin.want(204, "DELETE /dashboard/gw/people/"+id["adam"], "")
	admin.want(401, "GET /dashboard/gw/me", "")
	key.want(404, "DELETE /dashboard/gw/people/"+id["adam"], "")
	if left := readJSON[[]memberRow](t, key, "GET /dashboard/gw/people"); len(left) != 2 || left[0].Source != "manual" {
		t.Errorf("%+v", left)
	}

	if missing := slices.DeleteFunc(contract.Missing(), func(op string) bool { return !isOfPeople(op) }); len(missing) > 0 {
		t.Errorf("not answered with success: %v", missing)
	}

	// What was done is recorded by the ids of those who did it.
	evidence := key.want(200, "GET /dashboard/gw/evidence", "")
	type deed struct{ Action, Actor, Target string }
	done := map[deed]bool{}
	for line := range strings.Lines(evidence) {
		var r struct {
			Rec struct {
				Action string
				Actor  struct {
					PersonID string `json:"person_id"`
				}
				Target struct{ ID string }
			}
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		done[deed{r.Rec.Action, r.Rec.Actor.PersonID, r.Rec.Target.ID}] = true
	}
	for _, want := range []deed{
		{"person.role", id["olga"], id["vera"]}, {"person.leave", id["adam"], id["adam"]}, {"session.revoke", id["adam"], id["vera"]},
	} {
		if !done[want] {
			t.Errorf("no record of %v among %v", want, done)
		}
	}
	// Who is forgotten leaves the chain whole.
	g.Admin(new(any), "person", "erase", id["vera"])
	evidence = key.want(200, "GET /dashboard/gw/evidence", "")
	file := filepath.Join(t.TempDir(), "evidence.ndjson")
	if err := os.WriteFile(file, []byte(evidence), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := g.Run("evidence", "verify", file); code != 0 {
		t.Errorf("verification ends with %d: %s%s", code, stdout, stderr)
	}
	for _, name := range []string{"olga", "adam", "vera", "example.com"} {
		if strings.Contains(evidence, name) {
			t.Errorf("the evidence names %s", name)
		}
	}
}
