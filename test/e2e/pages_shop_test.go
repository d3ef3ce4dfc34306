package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// shop is a gateway with resellers that have a history: customers, keys,
// budgets, jobs, billing events and calls of the last forty days.
type shop struct {
	*testkit.Gateway
	resellers map[string]*reseller
	processor *testkit.Processor
	program   string // path of the gateway's binary
	bank      string // where a payment is made: POST ?session=
	prepaid   string // key of an organization that pays in advance
	bounded   string // key of one whose ceiling is low
}

// reseller is an organization of a shop.
type reseller struct {
	Portal   string                 `json:"portal"`
	Manager  string                 `json:"manager"`  // key of the organization, all scopes
	Reader   string                 `json:"reader"`   // stats:read only
	Customer string                 `json:"customer"` // key of the first customer, all scopes
	Sibling  string                 `json:"sibling"`  // of the second one
	First    modelgate.SubAccountID `json:"first"`
	Second   modelgate.SubAccountID `json:"second"`
	Fresh    string                 `json:"fresh"`    // of one that has never called
	Neighbor string                 `json:"neighbor"` // key of another organization, which has nothing yet
	books    *shopBooks
}

// shopSize says how much a shop has.
type shopSize struct{ rows, keys, customers int }

const shopCatalog = `
  - {slug: openai/gpt-5-mini, display_name: GPT-5 mini, kind: llm, context_length: 400000, max_output: 128000, routes: [{provider: openai, model: native-gpt-5-mini}], price: {input: 0.25, cached_input: 0.025, output: 2.00}}
  - {slug: openai/gpt-5, display_name: GPT-5, kind: llm, context_length: 400000, max_output: 128000, routes: [{provider: openai, model: native-gpt-5}], price: {input: 1.25, cached_input: 0.125, output: 10.00}}
  - {slug: anthropic/claude-haiku-4.5, display_name: Claude Haiku 4.5, kind: llm, context_length: 200000, routes: [{provider: anthropic, model: native-claude}], price: {input: 1, cached_input: 0.1, cache_write: 1.25, output: 5}}
  - {slug: google/gemini-2.5-flash, display_name: Gemini 2.5 Flash, kind: llm, context_length: 1048576, routes: [{provider: gemini, model: native-gemini}], price: {input: 0.3, output: 2.5}}
  - {slug: openai/text-embedding-3-small, display_name: Text embedding 3 small, kind: embedding, routes: [{provider: openai, model: native-embedding}], price: {input: 0.02}}
  - {slug: openai/gpt-image-1, display_name: GPT Image 1, kind: image, routes: [{provider: openai, model: native-image}], price: {input: 5, output: 40}}
  - {slug: openai/sora-2, display_name: Sora 2, kind: video, routes: [{provider: openai, model: native-sora}], price: {second: 0.1}}
  - {slug: openai/tts-1, display_name: TTS 1, kind: audio, routes: [{provider: openai, model: native-tts}], price: {characters: 15}}
  - {slug: cohere/rerank-v3.5, display_name: Rerank 3.5, kind: rerank, routes: [{provider: cohere, model: native-rerank}], price: {search: 2}}
  - {slug: acme/unpriced, display_name: Unpriced, kind: llm, routes: [{provider: openai, model: native-unpriced}]}`

// newShop starts a shop with resellers of the names, all alike.
func newShop(t *testing.T, n shopSize, names ...string) *shop {
	t.Helper()
	dir := t.TempDir()
	s := &shop{program: testkit.Binary(t), resellers: make(map[string]*reseller), processor: testkit.NewProcessor(t, sellerKey, operatorKey)}
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:modelgate.db", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s.resellers[name] = newReseller(t, db, name, n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s.Gateway = testkit.StartGateway(t, testkit.GatewayOptions{Dir: dir, Catalog: shopCatalog, More: s.processor.Config(operatorKey)})
	s.openBank(t)
	neighbor, _ := s.NewKey(s.NewClient("Neighbour"))
	s.prepaid, _ = s.NewKey(s.NewClient("Prepaid", "--billing", "manual"))
	s.bounded = s.lowCeiling(t)
	for _, r := range s.resellers {
		r.Neighbor = neighbor
		s.furnish(t, r)
	}
	return s
}

// lowCeiling makes an organization whose keys read no usage and call models
// of one author only, and no pictures.
func (s *shop) lowCeiling(t *testing.T) (key string) {
	t.Helper()
	client := s.NewClient("Bounded")
	key, _ = s.NewKey(client)
	file := filepath.Join(t.TempDir(), "ceiling.json")
	ceiling := `{"max_scopes":["inference:use","keys:manage"],"entitlements":[{"axis":"vendor","provider":"openai","model_pattern":"*","effect":"allow"},
		{"axis":"kind","provider":"image","model_pattern":"*","effect":"deny"}]}`
	if err := os.WriteFile(file, []byte(ceiling), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Admin(nil, "ceiling", "set", "--client", string(client), "--file", file)
	return key
}

func newReseller(t *testing.T, db *store.DB, name string, n shopSize) *reseller {
	t.Helper()
	b := &shopBooks{T: t, db: db, ids: modelgate.NewIDs(time.Now), random: rand.New(rand.NewPCG(7, 9)), name: name}
	b.organization("Northwind Labs")
	r := &reseller{Portal: "acme-" + name, books: b}
	r.Manager = b.key(modelgate.AllScopes(), "")
	r.Reader = b.key([]modelgate.Scope{modelgate.StatsRead}, "")
	customers := []string{"Globex", "Initech", "Umbrella Analytics", "Stark Industries", "Wayne Foundation", "Hooli", "Vandelay Imports", "Massive Dynamic", "Wonka Media"}
	for i := range n.customers {
		customer := fmt.Sprintf("Customer %03d", i+1)
		if i < len(customers) {
			customer = customers[i]
		}
		b.customer(customer, fmt.Sprintf("customer-%03d", i+1), modelgate.Markup(int64(i%5)*10_000_000+15_000_000))
	}
	r.First, r.Second = b.customers[0].ID, b.customers[1].ID
	r.Customer, r.Sibling = b.key(modelgate.AllScopes(), r.First), b.key(modelgate.AllScopes(), r.Second)
	for i := len(b.keys); i < n.keys; i++ {
		b.key([]modelgate.Scope{modelgate.InferenceUse}, b.customers[i%len(b.customers)].ID)
	}
	b.customer("Tyrell", "tyrell", 0)
	r.Fresh = b.key(modelgate.AllScopes(), b.customers[len(b.customers)-1].ID)
	b.calls(n.rows)
	return r
}

// furnish sets what the API sets.
func (s *shop) furnish(t *testing.T, r *reseller) {
	t.Helper()
	b := r.books
	put := func(path, body string) { s.ask(t, r.Manager, "PUT "+path, body) }
	put("/gw/branding", fmt.Sprintf(`{"portal_slug":%q,"product_name":"Acme Intelligence","accent_color":"#0f766e","allow_self_issue":true}`, r.Portal))
	month, day := b.spent(30), b.spent(1)
	put("/gw/budgets", fmt.Sprintf(`{"scope":"client","period":"month","limit_usd":%.2f}`, month*1.4+1))
	put("/gw/budgets", fmt.Sprintf(`{"scope":"client","period":"day","limit_usd":%.2f}`, day*1.3+3))
	// The first two make calls: theirs must not be used up on any day of a month.
	for i, c := range b.customers[:3] {
		put("/gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":%.2f}`, c.ID, month/float64(2+i)+5))
	}
	for i, c := range b.customers[3 : len(b.customers)-1] { // all but the one that has nothing yet
		put("/gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":%.2f}`, c.ID, month*float64(1+i%5)/20+1))
	}
	put("/gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":%.2f}`, b.keys[3].id, day/20+5)) // one of forty keys in use
	put("/gw/processor/config", fmt.Sprintf(`{"enabled":true,"api_key":%q}`, sellerKey))
	put("/gw/processor/mappings/"+string(r.First), `{"stripe_customer_id":"cus_globex"}`)
	put("/gw/processor/mappings/"+string(r.Second), `{"stripe_customer_id":"cus_gone_initech"}`) // which the processor does not know
	for _, key := range []string{r.Customer, r.Customer, r.Sibling} {
		s.ask(t, key, "POST /v1/chat/completions", `{"model":"openai/gpt-5","messages":[{"role":"user","content":"[[words=400]]"}]}`)
	}
	for _, prompt := range []string{"A kite over the sea [[after=1h]]", "A storm [[job=failed]] [[polls=1]]", "A walk by the river [[polls=1]]"} {
		s.film(t, r.Customer, prompt)
	}
}

// film asks for a video and looks whether it is there.
func (s *shop) film(t *testing.T, key, prompt string) {
	t.Helper()
	var job struct{ ID string }
	if err := json.Unmarshal(s.ask(t, key, "POST /v1/videos", fmt.Sprintf(`{"model":"openai/sora-2","prompt":%q,"seconds":"4"}`, prompt)), &job); err != nil {
		t.Fatal(err)
	}
	s.ask(t, key, "GET /v1/videos/"+job.ID, "")
}

// ask makes a request that must succeed and returns the answer's body.
func (s *shop) ask(t *testing.T, key, target, body string) []byte {
	t.Helper()
	method, path, _ := strings.Cut(target, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s = %d %s %v", target, resp.StatusCode, text, err)
	}
	return text
}

// openBank starts what a payer uses at the processor: POST ?session= pays for
// it and has the processor tell the gateway, at hook where one is named; the
// answer is where the payer is sent back to.
func (s *shop) openBank(t *testing.T) {
	t.Helper()
	bank := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paid := s.processor.Pay(r.URL.Query().Get("session"))
		body, signature := s.processor.Notice("checkout.session.completed", paid)
		hook := cmp.Or(r.URL.Query().Get("hook"), s.URL+"/webhooks/processor")
		notice, err := http.NewRequestWithContext(r.Context(), http.MethodPost, hook, bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		notice.Header.Set("Stripe-Signature", signature)
		resp, err := http.DefaultClient.Do(notice)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("X-Return-To", paid.SuccessURL)
		w.WriteHeader(resp.StatusCode)
	}))
	t.Cleanup(bank.Close)
	s.bank = bank.URL
}

// env is what the browser's scripts need to know.
func (s *shop) env() string {
	text, _ := json.Marshal(map[string]any{ // strings only
		"url": s.URL, "resellers": s.resellers, "bank": s.bank, "prepaid": s.prepaid, "processor": s.processor.URL, "seller": sellerKey,
		"bounded": s.bounded, "deliveries": s.processor.Secret, "modelgate": s.program, "config": s.ConfigFile,
	})
	return "SHOP=" + string(text)
}
