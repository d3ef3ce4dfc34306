package prove

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/gatetest"
	"modelgate/internal/store"
)

// shop is a gateway with resellers that have a history: customers, keys,
// budgets and calls of the last forty days.
type shop struct {
	*gatetest.Gateway
	resellers map[string]*reseller
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
	Neighbor string                 `json:"neighbor"` // key of another organization
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
  - {slug: openai/tts-1, display_name: TTS 1, kind: audio, routes: [{provider: openai, model: native-tts}], price: {characters: 15}}
  - {slug: cohere/rerank-v3.5, display_name: Rerank 3.5, kind: rerank, routes: [{provider: cohere, model: native-rerank}], price: {search: 2}}
  - {slug: acme/unpriced, display_name: Unpriced, kind: llm, routes: [{provider: openai, model: native-unpriced}]}`

// newShop starts a shop with resellers of the names, all alike.
func newShop(t *testing.T, n shopSize, names ...string) *shop {
	t.Helper()
	dir := t.TempDir()
	s := &shop{resellers: make(map[string]*reseller)}
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
	s.Gateway = gatetest.StartGateway(t, gatetest.GatewayOptions{Dir: dir, Catalog: shopCatalog})
	neighbor, _ := s.NewKey(s.NewClient("Neighbour"))
	for _, r := range s.resellers {
		r.Neighbor = neighbor
		s.furnish(t, r)
	}
	return s
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
	b.calls(n.rows)
	return r
}

// furnish sets what the API sets.
func (s *shop) furnish(t *testing.T, r *reseller) {
	t.Helper()
	b := r.books
	put := func(path, body string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+r.Manager)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			text, _ := io.ReadAll(resp.Body)
			t.Fatalf("PUT %s = %d %s", path, resp.StatusCode, text)
		}
	}
	put("/gw/branding", fmt.Sprintf(`{"portal_slug":%q,"product_name":"Acme Intelligence","accent_color":"#0f766e","allow_self_issue":true}`, r.Portal))
	month, day := b.spent(30), b.spent(1)
	put("/gw/budgets", fmt.Sprintf(`{"scope":"client","period":"month","limit_usd":%.2f}`, month*1.4+1))
	put("/gw/budgets", fmt.Sprintf(`{"scope":"client","period":"day","limit_usd":%.2f}`, day*1.1+1))
	for i, c := range b.customers[:3] {
		put("/gw/budgets", fmt.Sprintf(`{"scope":"sub_account","id":%q,"period":"month","limit_usd":%.2f}`, c.ID, month/float64(6+4*i)+1))
	}
	put("/gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":5}`, b.keys[3].id))
}

// shopBooks writes a history straight into the database.
type shopBooks struct {
	*testing.T
	db        *store.DB
	ids       *modelgate.IDs
	random    *rand.Rand
	name      string // of the batches' instance
	client    modelgate.Client
	customers []modelgate.SubAccount
	keys      []shopKey
	daily     [41]modelgate.Nano // by age in days
}

type shopKey struct {
	id  modelgate.KeyID
	sub modelgate.SubAccountID
}

func (b *shopBooks) audit(action string) modelgate.Audit {
	return modelgate.Audit{ID: b.ids.New().String(), At: time.Now(), Action: action, Actor: modelgate.Actor{Operator: "test"}}
}

func (b *shopBooks) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *shopBooks) organization(name string) {
	b.Helper()
	b.client = modelgate.Client{
		ID: modelgate.ClientID(b.ids.New().String()), Name: name, RoutingPolicy: modelgate.RouteAny, Billing: modelgate.Invoiced,
		MaxKeys: 2000, Ceiling: modelgate.OpenCeiling(), CreatedAt: time.Now().AddDate(0, -3, 0),
	}
	b.must(b.db.CreateClient(b.Context(), b.client, b.audit("client.create")))
}

func (b *shopBooks) customer(name, slug string, markup modelgate.Markup) {
	b.Helper()
	c := modelgate.SubAccount{
		ID: modelgate.SubAccountID(b.ids.New().String()), ClientID: b.client.ID, Name: name, Slug: slug,
		Status: modelgate.SubAccountActive, Markup: markup, CreatedAt: time.Now().AddDate(0, 0, -60),
	}
	b.must(b.db.CreateSubAccount(b.Context(), c, b.audit("sub_account.create")))
	b.must(b.db.PatchSubAccount(b.Context(), b.client.ID, c.ID, modelgate.SubAccountPatch{Markup: &markup}, b.audit("sub_account.update")))
	b.customers = append(b.customers, c)
}

func (b *shopBooks) key(scopes []modelgate.Scope, sub modelgate.SubAccountID) string {
	b.Helper()
	catalog, err := modelgate.NewCatalog(nil, nil)
	b.must(err)
	var secret modelgate.Secret
	k, err := b.db.IssueKey(b.Context(), b.client.ID, store.IssueRequest{
		SubAccountID: sub,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			wish := modelgate.KeyWish{Scopes: scopes, SubAccountID: sub}
			key, drawn, err := wish.Issue(b.client.ID, c.Ceiling, catalog, b.ids.New())
			secret = drawn
			return key, drawn.Digest(), err
		},
	}, b.audit("key.issue"))
	b.must(err)
	b.keys = append(b.keys, shopKey{k.ID, sub})
	return secret.Reveal()
}

// calls books n calls of the last forty days, more by day than by night and
// more lately than long ago.
func (b *shopBooks) calls(n int) {
	b.Helper()
	type model struct {
		provider, native, slug, author string
		in, out                        float64
	}
	models := []model{
		{"openai", "native-gpt-5-mini", "openai/gpt-5-mini", "openai", 0.25, 2}, {"openai", "native-gpt-5-mini", "openai/gpt-5-mini", "openai", 0.25, 2},
		{"anthropic", "native-claude", "anthropic/claude-haiku-4.5", "anthropic", 1, 5}, {"openai", "native-gpt-5", "openai/gpt-5", "openai", 1.25, 10},
		{"gemini", "native-gemini", "google/gemini-2.5-flash", "google", 0.3, 2.5}, {"openai", "native-embedding", "openai/text-embedding-3-small", "openai", 0.02, 0},
	}
	teams := []string{"search", "support", "agents", "batch"}
	now := time.Now()
	batch := store.Batch{Instance: "history-" + b.name}
	flush := func() {
		batch.Progress.Offset++
		if _, err := b.db.Record(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		batch.Rows = batch.Rows[:0]
	}
	for range n {
		age := time.Duration(math.Pow(b.random.Float64(), 1.3) * 40 * 24 * float64(time.Hour))
		at := now.Add(-age).Truncate(time.Millisecond)
		if h := at.Hour(); (h < 6 || h > 20) && b.random.IntN(3) > 0 {
			at = at.Add(-time.Duration(h) * time.Hour / 2)
		}
		m, k := models[b.random.IntN(len(models))], b.keys[b.random.IntN(min(len(b.keys), 40))]
		in, out := int64(2000+b.random.ExpFloat64()*60000), int64(200+b.random.ExpFloat64()*6000)
		status := 200
		if b.random.IntN(40) == 0 {
			status = []int{429, 500, 502, 400}[b.random.IntN(4)]
			out = 0
		}
		cost := modelgate.Nano(float64(in)*m.in*1000 + float64(out)*m.out*1000)
		stated := modelgate.ParseOK
		if b.random.IntN(60) == 0 {
			stated = modelgate.ParsePartial
		}
		b.daily[min(40, int(now.Sub(at)/(24*time.Hour)))] += cost
		batch.Rows = append(batch.Rows, modelgate.Row(modelgate.CallBegin{
			ID: modelgate.NewIDs(func() time.Time { return at }).New(), At: at, ClientID: b.client.ID, KeyID: k.id, SubAccountID: k.sub,
			Provider: m.provider, Model: m.native, Slug: m.slug, Author: m.author, Kind: modelgate.LLM, Region: "us", Door: "/v1/chat/completions",
			ViaSDK: b.random.IntN(3) > 0, Attribution: map[string]string{"team": teams[b.random.IntN(4)], "env": "prod"},
		}, modelgate.CallEnd{
			StatusCode: status, ParseStatus: stated, Usage: modelgate.Usage{Input: in, Output: out}, Cost: cost, PriceLabel: "test",
			LatencyMS: int64(120 + b.random.ExpFloat64()*1400), FirstByteMS: 100,
		}))
		if len(batch.Rows) == 500 {
			flush()
		}
	}
	flush()
}

// spent is the cost of the last days, in USD.
func (b *shopBooks) spent(days int) float64 {
	var sum modelgate.Nano
	for _, n := range b.daily[:days] {
		sum += n
	}
	return float64(sum) / 1e9
}

// env is what the browser's scripts need to know.
func (s *shop) env() string {
	text, _ := json.Marshal(map[string]any{"url": s.URL, "resellers": s.resellers}) // strings only
	return "SHOP=" + string(text)
}
