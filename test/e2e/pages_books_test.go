package e2e

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/store/access"
)

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
	k, err := b.db.IssueKey(b.Context(), b.client.ID, access.IssueRequest{
		SubAccountID: sub,
		Admit: func(c modelgate.Client) (modelgate.Key, modelgate.Digest, error) {
			wish := modelgate.KeyRequest{Scopes: scopes, SubAccountID: sub}
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
