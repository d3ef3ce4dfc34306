package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

const (
	foreignPortal = "portal-of-the-neighbour"
	unknownUUID   = "00000000-0000-7000-8000-00000000ffff"
)

// ids are what one owner has.
type ids struct{ client, subAccount, key, row, task string }

// block is two organizations behind a running gateway, and everything that
// must not get from one to the other, or from one end customer to the next.
type block struct {
	*testing.T
	gateway *testkit.Gateway
	ledger  *simulator.Memory
	db      *sql.DB
	id      map[whose]ids
	cursor  map[whose]string
	holder  map[whose]string // a key of the owner
	filmed  map[whose]int    // jobs made besides the calls of the matrix
	manager string
	// customer is the key of a sub-account that manages.
	customer string
	// secrets are texts that no answer may hold: those of the other
	// organization, and those that a bound key must not see besides.
	foreign, neighbour []string
	routes             []string // names of where models run, for answers of the gateway itself
	names, passed      int
	errands            int      // of those that passed: about jobs, and not booked
	last               []string // the state before the next request
}

// spoof names another organization and sub-account where no route reads them.
func (b *block) spoof(w whose) string {
	if w == own {
		return ""
	}
	return "?client_id=" + b.id[w].client + "&sub_account_id=" + b.id[w].subAccount + "&key_id=" + b.id[w].key
}

// claim names another organization where every route ignores it.
func (b *block) claim(w whose) string {
	if w == own {
		return ""
	}
	return "?client_id=" + b.id[w].client
}

// fresh is a name that was not used.
func (b *block) fresh(prefix string) string {
	b.names++
	return fmt.Sprint(prefix, "-", b.names)
}

// victim is the id of a key; where the caller will revoke it, one made for
// that.
func (b *block) victim(c *caller, w whose) string {
	if !c.reaches(w) || !c.live || !slices.Contains(c.scopes, manageScope) {
		return b.id[w].key
	}
	body := `{"scopes":[]}`
	if w != ofOrganization {
		body = fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, b.id[w].subAccount)
	}
	id := b.member(b.call(b.manager, "POST /gw/keys", body, ""), "api_key_id")
	b.last = b.state()
	return id
}

// budgeted is the id of a key that has a budget, made again where the caller
// will remove it.
func (b *block) budgeted(c *caller, w whose) string {
	if c.reaches(w) && c.live && slices.Contains(c.scopes, manageScope) {
		setter := b.manager
		if c.bound { // a customer removes no budget but its own
			setter = b.customer
		}
		b.budget(setter, "key", b.id[w].key)
		b.last = b.state()
	}
	return b.id[w].key
}

// mapped is the id of a sub-account that is mapped, again where the caller will
// unmap it.
func (b *block) mapped(c *caller, w whose) string {
	b.Helper()
	if w != ofOrganization && c.reaches(w) && !c.bound && c.live && slices.Contains(c.scopes, manageScope) {
		if a := b.call(b.manager, "PUT /gw/processor/mappings/"+b.id[w].subAccount, `{"stripe_customer_id":"cus_again"}`, ""); a.status != 204 {
			b.Fatalf("map %s: %d %s", b.id[w].subAccount, a.status, a.body)
		}
		b.last = b.state()
	}
	return b.id[w].subAccount
}

// failedEvent is the id of a row whose billing event has failed, again where
// the caller will have it sent.
func (b *block) failedEvent(_ *caller, w whose) string {
	b.Helper()
	if u, ok := modelgate.ParseUUID(b.id[w].row); ok && w != unknown {
		_, err := b.db.ExecContext(b.Context(), `INSERT INTO processor_event VALUES ($1, $2, $3, $4, 'cus_gone', 0, 1, 'failed', 1, 0, 0, 0, 1, 0, 'no such customer')
			ON CONFLICT DO UPDATE SET status = 'failed'`, b.id[w].client, u.Time().UnixMicro(), b.id[w].row, b.id[w].subAccount)
		if err != nil {
			b.Fatal(err)
		}
	}
	return b.id[w].row
}

// budget sets one that no call of the matrix reaches.
func (b *block) budget(manager, scope, id string) {
	b.Helper()
	body := fmt.Sprintf(`{"scope":%q,"id":%q,"period":"day","limit_usd":1000}`, scope, id)
	if scope == "client" {
		body = `{"scope":"client","period":"day","limit_usd":1000}`
	}
	if a := b.call(manager, "PUT /gw/budgets", body, ""); a.status != http.StatusNoContent {
		b.Fatalf("%s: %d %s", body, a.status, a.body)
	}
}

// film makes a job of an owner's that has ended, and returns its task id.
func (b *block) film(w whose) string {
	b.Helper()
	b.filmed[w]++
	body := fmt.Sprintf(`{"model":"openai/sora-2","seconds":"4","prompt":"%s [[polls=1]]"}`, b.fresh("film"))
	id := b.member(b.call(b.holder[w], "POST /v1/videos", body, ""), "id")
	b.call(b.holder[w], "GET /v1/videos/"+id, "", "")
	return id
}

// task is the id of a job; where the caller will delete it, one made for that.
func (b *block) task(c *caller, w whose) string {
	if !c.reaches(w) || !c.live || c.barred || !slices.Contains(c.scopes, inferenceScope) {
		return b.id[w].task
	}
	return b.film(w)
}

// minted is the id of a browser token that a key of the owner has minted.
func (b *block) minted(w whose) string {
	if w == unknown || w == malformed {
		return b.id[w].key
	}
	id := b.member(b.call(b.holder[w], "POST /gw/tokens", `{"end_user":"u","models":["a/b"]}`, ""), "token_id")
	b.last = b.state()
	return id
}

// heard is how many requests the provider got on somebody's behalf: the
// gateway asks for pending jobs by itself.
func (b *block) heard() int {
	n := 0
	for _, s := range b.ledger.All() {
		if s.Header.Get("User-Agent") != "Modelgate/1" {
			n++
		}
	}
	return n
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *block) call(key, target, body, native string) answer {
	b.Helper()
	return b.send(&caller{key: key}, target, body, native)
}

// send makes a request with a caller's key, or its cookie.
func (b *block) send(c *caller, target, body, native string) answer {
	b.Helper()
	key := c.key
	method, path, _ := strings.Cut(target, " ")
	r, err := http.NewRequestWithContext(b.Context(), method, b.gateway.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	switch {
	case key == "":
	case native != "":
		r.Header.Set(native, key)
	default:
		r.Header.Set("Authorization", "Bearer "+key)
	}
	if c.cookie != "" {
		r.Header.Set("Cookie", c.cookie)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(body, "--"+boundary) {
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	}
	other := b.id[ofOther]
	for name, value := range map[string]string{"X-Client-Id": other.client, "X-Organization-Id": other.client, "X-Sub-Account-Id": other.subAccount, "X-Forwarded-User": other.key} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// member is a string in an answer that must be good.
func (b *block) member(a answer, name string) string {
	b.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.body), &object); err != nil || a.status != http.StatusOK {
		b.Fatalf("%d %s", a.status, a.body)
	}
	return fmt.Sprint(object[name])
}

// newBlock starts the gateway and fills it.
func newBlock(t *testing.T) (*block, []caller) {
	dir := t.TempDir()
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream", KeepRequests: true})
	const payerKey = "sk_test_matrix_of_access"
	payer := testkit.NewProcessor(t, payerKey)
	b := &block{T: t, ledger: upstream.Ledger, id: map[whose]ids{}, cursor: map[whose]string{}, holder: map[whose]string{}, filmed: map[whose]int{}}
	b.gateway = testkit.StartGateway(t, testkit.GatewayOptions{Dir: dir, Upstream: upstream.URL, Catalog: matrixCatalog, More: matrixPrices + payer.Config(payerKey)})
	db := testkit.OpenSQLite(t, filepath.Join(dir, "modelgate.db"))
	b.db = db

	mine, theirs := b.gateway.NewClient("Own organization"), b.gateway.NewClient("Neighbour-Marker organization")
	b.manager, _ = b.gateway.NewKey(mine)
	foreignManager, _ := b.gateway.NewKey(theirs)
	subAccount := func(manager, name string) string {
		slug := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		return b.member(b.call(manager, "POST /gw/subaccounts", fmt.Sprintf(`{"name":%q,"slug":%q}`, name, slug), ""), "id")
	}
	fill := func(w whose, client modelgate.ClientID, manager, name string) (bound string) {
		have := ids{client: string(client)}
		flags := []string{}
		if name != "" {
			have.subAccount = subAccount(manager, name)
			flags = []string{"--sub-account", have.subAccount}
		}
		bound, _ = b.gateway.NewKey(client, flags...)
		have.row = b.call(bound, "POST /v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"a question of `+string(w)+`"}]}`, "").
			header.Get("X-Gateway-Request-Id")
		b.holder[w] = bound
		have.task = b.film(w)
		var spare modelgate.KeyID
		_, spare = b.gateway.NewKey(client, flags...)
		have.key = string(spare)
		if name == "" {
			have.subAccount = have.key // a path that names no sub-account of this owner
		}
		b.id[w] = have
		return bound
	}
	own1 := fill(own, mine, b.manager, "Mine")
	fill(ofOrganization, mine, b.manager, "")
	sibling := fill(ofOtherSubAccount, mine, b.manager, "Sibling Marker")
	foreign := fill(ofOther, theirs, foreignManager, "Foreign Marker")
	b.id[unknown] = ids{client: unknownUUID, subAccount: unknownUUID, key: unknownUUID, row: unknownUUID, task: "video_0"}
	b.id[malformed] = ids{client: "x", subAccount: "not-a-uuid", key: "not-a-uuid", row: "not-a-uuid", task: "video_%F0%9F%8E%A5"}
	b.call(foreignManager, "PUT /gw/branding", `{"portal_slug":"`+foreignPortal+`","product_name":"Product-Marker","allow_self_issue":true}`, "")
	b.call(b.manager, "PUT /gw/branding", `{"portal_slug":"portal-own","product_name":"Own","allow_self_issue":true}`, "")
	b.call(b.manager, "PATCH /gw/subaccounts/"+b.id[own].subAccount, `{"markup_pct":50}`, "")
	for _, manager := range []string{b.manager, foreignManager} {
		if a := b.call(manager, "PUT /gw/processor/config", `{"enabled":false,"api_key":"`+payerKey+`"}`, ""); a.status != 204 {
			t.Fatalf("processor: %d %s", a.status, a.body)
		}
	}
	b.call(foreignManager, "PUT /gw/processor/mappings/"+b.id[ofOther].subAccount, `{"stripe_customer_id":"cus_of_the_neighbour"}`, "")
	b.budget(foreignManager, "client", "")
	b.budget(foreignManager, "sub_account", b.id[ofOther].subAccount)
	b.budget(foreignManager, "key", b.id[ofOther].key)
	b.budget(b.manager, "client", "")
	b.budget(b.manager, "sub_account", b.id[ofOtherSubAccount].subAccount)
	b.budget(b.manager, "key", b.id[ofOtherSubAccount].key)
	b.budget(b.manager, "key", b.id[ofOrganization].key)
	b.cursor[ofOther] = b.call(foreignManager, "GET /gw/keys?limit=1", "", "").header.Get("X-Next-Cursor")
	b.cursor[ofOtherSubAccount] = b.call(sibling, "GET /gw/keys?limit=1", "", "").header.Get("X-Next-Cursor")

	b.foreign = []string{string(theirs), b.id[ofOther].subAccount, b.id[ofOther].key, b.id[ofOther].row, b.id[ofOther].task, "Marker organization", "Foreign Marker",
		"foreign-marker", "Product-Marker", "cus_of_the_neighbour", payerKey, foreignManager[:16], foreign[:16]}
	b.neighbour = []string{b.id[ofOtherSubAccount].subAccount, b.id[ofOtherSubAccount].key, b.id[ofOtherSubAccount].row, b.id[ofOtherSubAccount].task, "Sibling Marker", "sibling-marker",
		sibling[:16], b.manager[:16], b.id[ofOrganization].key, b.id[ofOrganization].row, b.id[ofOrganization].task, "markup", b.cost(b.id[own].row)}
	b.routes = []string{"native-", `"region"`}
	for _, w := range []whose{own, ofOrganization, ofOtherSubAccount, ofOther} {
		if b.id[w].row == "" || b.id[w].key == "" {
			t.Fatalf("%s: nothing to name: %+v", w, b.id[w])
		}
	}
	if b.cursor[ofOther] == "" || b.cursor[ofOtherSubAccount] == "" {
		t.Fatal("no cursors")
	}
	return b, b.callers(mine, own1)
}

// cost is what a call cost the organization, as its manager sees it.
func (b *block) cost(row string) string {
	b.Helper()
	a := b.call(b.manager, "GET /gw/usage?id="+row, "", "")
	cost := regexp.MustCompile(`"cost_usd":[0-9.]*[1-9][0-9]*`).FindString(a.body)
	if cost == "" {
		b.Fatalf("the call is not booked with a cost: %s", a.body)
	}
	return cost
}

// callers are the keys of the matrix.
func (b *block) callers(client modelgate.ClientID, bound string) []caller {
	issue := func(flags ...string) string {
		key, _ := b.gateway.NewKey(client, flags...)
		return key
	}
	everything := []string{manageScope, statsScope, inferenceScope}
	mine := b.id[own].subAccount
	revoked, revokedID := b.gateway.NewKey(client)
	b.gateway.Admin(nil, "key", "revoke", string(revokedID))
	gone := b.member(b.call(b.manager, "POST /gw/subaccounts", `{"name":"Gone","slug":"gone"}`, ""), "id")
	suspended := issue("--sub-account", gone)
	b.call(suspended, "GET /gw/me", "", "")
	b.call(b.manager, "PATCH /gw/subaccounts/"+gone, `{"status":"suspended"}`, "")
	expired := issue("--expires-in-seconds", "1")
	for deadline := time.Now().Add(20 * time.Second); b.call(expired, "GET /gw/me", "", "").status != 401; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("a key with a second to live does not expire")
		}
	}
	b.customer = bound
	mint := func(key string) (token, id string) {
		a := b.call(key, "POST /gw/tokens", `{"end_user":"u","models":["*"],"max_usd":1000,"requests_per_minute":6000,"expires_in_seconds":3600}`, "")
		return b.member(a, "token"), b.member(a, "token_id")
	}
	token, _ := mint(b.manager)
	customers, _ := mint(bound)
	over, overID := mint(b.manager)
	b.call(b.manager, "DELETE /gw/tokens/"+overID, "", "")
	calls := []string{inferenceScope}
	return []caller{
		{name: "browser token", key: token, live: true, scopes: calls, token: true},
		{name: "browser token of a customer", key: customers, live: true, bound: true, scopes: calls, token: true},
		{name: "revoked browser token", key: over, token: true},
		{name: "no key"},
		{name: "malformed key", key: "gw_live_x"},
		{name: "unknown key", key: modelgate.NewSecret().Reveal()},
		{name: "revoked key", key: revoked},
		{name: "expired key", key: expired},
		{name: "key of a suspended sub-account", key: suspended},
		{name: "key without scopes", key: issue("--scopes", ""), live: true},
		{name: "key that manages", key: issue("--scopes", manageScope), live: true, scopes: []string{manageScope}},
		{name: "key that reads", key: issue("--scopes", statsScope), live: true, scopes: []string{statsScope}},
		{name: "key that calls", key: issue("--scopes", inferenceScope), live: true, scopes: []string{inferenceScope}},
		{name: "key barred from all models", key: issue("--entitlements", "[]"), live: true, scopes: everything, barred: true},
		{name: "manager", key: b.manager, live: true, scopes: everything},
		{name: "key of a sub-account", key: bound, live: true, bound: true, scopes: everything},
		{name: "key of a sub-account that reads", key: issue("--sub-account", mine, "--scopes", statsScope), live: true, bound: true, scopes: []string{statsScope}},
	}
}

// matrixCatalog has routes whose names no client may see.
const matrixCatalog = `
  - {slug: openai/gpt-5-mini, kind: llm, routes: [{provider: openai, model: native-gpt-5-mini}], price: {input: 0.25, output: 2}}
  - {slug: anthropic/claude-haiku-4.5, kind: llm, routes: [{provider: anthropic, model: native-claude}], price: {input: 1, output: 5}}
  - {slug: openai/text-embedding-3-small, kind: embedding, routes: [{provider: openai, model: native-embedding}], price: {input: 0.02}}
  - {slug: openai/gpt-image-1, kind: image, routes: [{provider: openai, model: native-image}], price: {input: 5, output: 40}}
  - {slug: openai/sora-2, kind: video, routes: [{provider: openai, model: native-sora}], price: {second: 0.1}}
  - {slug: openai/tts-1, kind: audio, routes: [{provider: openai, model: native-tts}], price: {characters: 15}}
  - {slug: openai/whisper-1, kind: audio, routes: [{provider: openai, model: native-whisper}], price: {second: 0.0001, input: 2.5, output: 10}}
  - {slug: cohere/rerank-v3.5, kind: rerank, routes: [{provider: cohere, model: native-rerank}], price: {search: 2}}`

// matrixPrices are for the proxy: where budgets apply nothing is free.
const matrixPrices = `prices:
  - {provider: openai, model: "*", price: {input: 1, output: 1}}
  - {provider: anthropic, model: "*", price: {input: 1, output: 1}}
  - {provider: cohere, model: "*", price: {search: 2}}
`

// state is every row that a change could touch. Usage is booked behind the
// calls, so its rows are counted at the end.
func (b *block) state() []string {
	b.Helper()
	var rows []string
	for table, columns := range map[string]string{
		"control": "version", "client": "*", "sub_account": "*", "branding": "*", "audit": "*", "budget": "*",
		"processor_config": "*", "processor_mapping": "*",
		"api_key": "id, client_id, sub_account_id, hex(digest), prefix, status, scopes, entitlements, denies, backing, limit_rps, limit_burst, limit_concurrency, created_at, expires_at",
	} {
		rows = append(rows, b.dump(table, columns, "")...)
	}
	slices.Sort(rows)
	return rows
}

// dump is a table's rows as text, those that hold only.
func (b *block) dump(table, columns, only string) []string {
	b.Helper()
	found, err := b.db.QueryContext(b.Context(), "SELECT "+columns+" FROM "+table)
	if err != nil {
		b.Fatal(err)
	}
	defer found.Close()
	names, err := found.Columns()
	if err != nil {
		b.Fatal(err)
	}
	var rows []string
	for found.Next() {
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := found.Scan(into...); err != nil {
			b.Fatal(err)
		}
		if text := fmt.Sprint(table, values); strings.Contains(text, only) {
			rows = append(rows, text)
		}
	}
	if err := found.Err(); err != nil {
		b.Fatal(err)
	}
	return rows
}

// TestAccessMatrix sends every route, as every kind of caller, after what is
// the caller's, another's, nobody's and nonsense.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	b, callers := newBlock(t)
	routes := slices.Concat(managementRoutes(), doorRoutes(), proxyRoutes(), jobRoutes())
	b.covers(routes)
	cases := 0
	b.last = b.state()
	for i := range routes {
		for j := range callers {
			for _, w := range everyOwner {
				// Before a token's refusal nothing is read of what the request names:
				// one owner does for the usual run.
				if !*full && callers[j].token && !routes[i].ofTokens() && w != own {
					continue
				}
				cases++
				b.play(&routes[i], &callers[j], w)
			}
		}
	}
	b.books()
	if cases < 1500 {
		t.Errorf("%d cases, want at least 1500", cases)
	}
	t.Logf("%d cases: %d routes, %d callers, %d owners; %d calls reached the provider", cases, len(routes), len(callers), len(everyOwner), b.passed)
}

// play makes one request and holds its answer, and what became of the rows, to
// the model.
func (b *block) play(r *accessRoute, c *caller, w whose) {
	target, body := r.request(b, c, w)
	want, ok := c.rights(r)
	if ok {
		want = r.expect(c, w)
	}
	served := b.heard()
	got := b.send(c, target, body, r.native)
	called := b.heard() > served
	what := fmt.Sprintf("%s as %s, %s: %s = %d %.200s", r.pattern, c.name, w, target, got.status, got.body)
	b.judge(what, want, got, called)
	if r.errand && want == passes {
		b.errands++
	}
	b.leaks(what, r, c, got)
	after := b.state()
	if !slices.Equal(b.last, after) {
		if !r.changes || want.status >= 300 {
			b.Errorf("%s: rows changed:\n%s", what, cmp.Diff(b.last, after))
		}
		if before, after := b.ofOther(b.last), b.ofOther(after); !slices.Equal(before, after) {
			b.Errorf("%s: rows of the other organization changed:\n%s", what, cmp.Diff(before, after))
		}
	} else if r.changes && want.status < 300 && !strings.HasPrefix(r.pattern, "PUT") {
		b.Errorf("%s: nothing changed", what)
	}
	b.last = after
}

// ofOther are the rows that belong to the other organization.
func (b *block) ofOther(rows []string) []string {
	return slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return !strings.Contains(row, b.id[ofOther].client) })
}

// judge compares an answer with what the model says.
func (b *block) judge(what string, want outcome, got answer, called bool) {
	b.Helper()
	var said struct {
		Error struct{ Type, Message string }
	}
	switch {
	case got.header.Get("X-Gateway-Request-Id") == "":
		b.Errorf("%s: no request id", what)
	case want == passes:
		b.passed++
		if !called || got.status >= 400 {
			b.Errorf("%s: want it to pass", what)
		}
	case called:
		b.Errorf("%s: the provider was called", what)
	case got.status != want.status:
		b.Errorf("%s: want %d", what, want.status)
	case want.kind != "":
		if err := json.Unmarshal([]byte(got.body), &said); err != nil || said.Error.Type != want.kind || want.message != "" && said.Error.Message != want.message {
			b.Errorf("%s: want %s %s", what, want.kind, want.message)
		}
	}
}

// leaks looks for what the caller must not see.
func (b *block) leaks(what string, r *accessRoute, c *caller, a answer) {
	b.Helper()
	text := a.body + fmt.Sprint(a.header)
	hidden := slices.Clone(b.foreign)
	if c.bound || !c.live {
		hidden = append(hidden, b.neighbour...)
		if r.scope != inferenceScope { // a provider's reply passes as it is
			hidden = append(hidden, b.routes...)
		}
	}
	for _, secret := range hidden {
		if strings.Contains(text, secret) {
			b.Errorf("%s: the answer holds %q", what, secret)
		}
	}
	if c.live && c.key != "" && strings.Contains(text, c.key) {
		b.Errorf("%s: the answer holds the caller's secret", what)
	}
}

// books checks that exactly the calls that passed are booked, to the caller's
// own organization.
func (b *block) books() {
	b.Helper()
	b.gateway.Stop()
	setup := 4 // the calls of newBlock, one of them the other organization's
	rows := b.dump("usage_row", "client_id, key_id, sub_account_id", "")
	want := b.passed - b.errands + setup
	for _, n := range b.filmed {
		want += n
	}
	if len(rows) != want {
		b.Errorf("%d calls are booked, want %d", len(rows), want)
	}
	if n := len(b.dump("usage_row", "client_id", b.id[ofOther].client)); n != 1+b.filmed[ofOther] {
		b.Errorf("%d calls are booked to the other organization, want its own", n)
	}
	if n := len(b.dump("usage_row", "sub_account_id", b.id[ofOtherSubAccount].subAccount)); n != 1+b.filmed[ofOtherSubAccount] {
		b.Errorf("%d calls are booked to the other sub-account, want its own", n)
	}
}

// covers fails when the gateway has a route that the matrix lacks: endpoints
// by the table in the source, doors by what the gateway says itself.
func (b *block) covers(routes []accessRoute) {
	b.Helper()
	var listed []string
	for _, r := range routes {
		listed = append(listed, r.pattern)
	}
	for _, pattern := range append(endpointTable(b.T), b.doors()...) {
		if !slices.Contains(listed, pattern) {
			b.Errorf("the matrix lacks %s", pattern)
		}
	}
}

// endpointTable reads the patterns of the management API's table.
func endpointTable(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/selfservice/routes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	pattern := regexp.MustCompile("^\"([A-Z]+ /[^\"]*)\"$")
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if m := pattern.FindStringSubmatch(text.Value); m != nil {
				found = append(found, m[1])
			}
		}
		return true
	})
	if len(found) < 10 {
		t.Fatalf("the endpoint table was not found: %q", found)
	}
	return found
}

// doors are the doors that the gateway names.
func (b *block) doors() []string {
	b.Helper()
	a := b.call(b.manager, "POST /v1/no-such-door", `{}`, "")
	var said struct{ Error struct{ Message string } }
	if err := json.Unmarshal([]byte(a.body), &said); err != nil {
		b.Fatal(err)
	}
	var found []string
	for _, path := range regexp.MustCompile(`/v\d/[a-z_/]+`).FindAllString(said.Error.Message, -1) {
		if path != "/v1/models" {
			found = append(found, "POST "+path)
		}
	}
	if len(found) < 10 {
		b.Fatalf("the gateway names no doors: %s", a.body)
	}
	return found
}
