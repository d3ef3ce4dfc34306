package config_test

import (
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
)

var genaiPrices = flag.String("genai-prices", "", "`directory` of the npm package @pydantic/genai-prices, to compare the starter catalog with")

// otherNames are genai-prices' names of providers that differ from ours.
var otherNames = map[string]string{"gemini": "google", "xai": "x-ai", "moonshot": "moonshotai", "zhipu": "zai"}

// otherwise are models whose cost is not what genai-prices computes, and why.
var otherwise = map[string]string{
	"google/gemini-2.5-flash-image": "all output is taken for pictures",
	"openai/gpt-image-1.5":          "all output is taken for pictures",
	"google/gemini-3-pro-image":     "all output is taken for pictures",
	"mistralai/mistral-embed":       "embeddings have no output",
}

// question is a usage to be priced by another implementation.
type question struct {
	slug     string
	ours     modelgate.Nano
	Provider string           `json:"provider"`
	Model    string           `json:"model"`
	Usage    map[string]int64 `json:"usage"`
}

// TestStarterCostsWhatGenaiPricesSays computes the cost of 200 random usages of each
// model with calcPrice of genai-prices: make prove-starter.
func TestStarterCostsWhatGenaiPricesSays(t *testing.T) {
	t.Parallel()
	if *genaiPrices == "" {
		t.Skip("compares with an npm package: make prove-starter")
	}
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	random := rand.New(rand.NewPCG(1, 2))
	var asked []question
	for slug, m := range starter(t) {
		if m.Price == nil || !m.Price.Base.Has(modelgate.UnitInput) || len(m.Price.Origin.Lists) == 0 || otherwise[slug] != "" {
			continue
		}
		route := m.Routes[0]
		provider := route.Provider
		if other := otherNames[provider]; other != "" {
			provider = other
		}
		for range 200 {
			size := int64(1) << random.IntN(21)
			u := modelgate.Usage{Input: random.Int64N(size), CachedInput: random.Int64N(size), Output: random.Int64N(size)}
			cost, _, _ := pricing.Cost(m.Price, &u, at)
			asked = append(asked, question{slug, cost, provider, route.Model, map[string]int64{
				"input_tokens": u.PromptTokens(), "cache_read_tokens": u.CachedInput, "output_tokens": u.Output,
			}})
		}
	}
	text, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	const script = `const { calcPrice } = require(process.argv[1] + '/dist/index.cjs');
let text = ''; process.stdin.on('data', d => text += d).on('end', () => console.log(JSON.stringify(JSON.parse(text).map(q => {
  const p = calcPrice(q.usage, q.model, { providerId: q.provider, timestamp: new Date('2026-11-25T12:00:00Z') });
  return p === null ? -1 : p.total_price;
}))));`
	node := exec.CommandContext(t.Context(), "node", "-e", script, *genaiPrices)
	node.Stdin = strings.NewReader(string(text))
	out, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs []float64
	if err := json.Unmarshal(out, &theirs); err != nil || len(theirs) != len(asked) {
		t.Fatalf("%d answers for %d questions, %v", len(theirs), len(asked), err)
	}
	failed := make(map[string]bool)
	for i, q := range asked {
		nano := theirs[i] * 1e9
		if math.Abs(nano-float64(q.ours)) > 0.5+nano*1e-12 && !failed[q.slug] {
			failed[q.slug] = true
			t.Errorf("%s: %v cost %s here and %.9f there", q.slug, q.Usage, q.ours, theirs[i])
		}
	}
	t.Logf("%d usages of %d models", len(asked), len(asked)/200)
}
