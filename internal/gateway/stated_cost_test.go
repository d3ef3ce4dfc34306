package gateway

import (
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// What a reply says that it costs is charged, noted or ignored, as the operator
// has it; what cannot be a cost makes the row partial, and only where it counts.
func TestStatedCost(t *testing.T) {
	t.Parallel()
	const usd = modelgate.USD
	for name, tt := range map[string]struct {
		use    provider.StatedCostUse
		format string
		says   string // in the usage object
		stream bool
		cost   modelgate.Nano
		stated modelgate.Nano // -1: none
		status modelgate.ParseStatus
	}{
		"the default of openrouter":   {"", "openrouter", `"cost":0.25`, false, usd / 4, usd / 4, modelgate.ParseOK},
		"the default of openai":       {"", "openai", `"cost":0.25`, false, chatCost, -1, modelgate.ParseOK},
		"used, in a stream":           {provider.UseStatedCost, "openai", `"cost":0.25,"is_byok":false`, true, usd / 4, usd / 4, modelgate.ParseOK},
		"used, ticks":                 {provider.UseStatedCost, "openai", `"cost_in_usd_ticks":2500000015`, false, usd/4 + 2, usd/4 + 2, modelgate.ParseOK},
		"used, zero":                  {provider.UseStatedCost, "openai", `"cost":0`, false, 0, 0, modelgate.ParseOK},
		"used, the operator's key":    {provider.UseStatedCost, "openai", `"cost":0.01,"is_byok":true`, false, chatCost, -1, modelgate.ParseOK},
		"recorded":                    {provider.RecordStatedCost, "openai", `"cost":{"total_cost":0.5,"input_tokens_cost":0.1}`, false, chatCost, usd / 2, modelgate.ParseOK},
		"off":                         {provider.IgnoreStatedCost, "openrouter", `"cost":-1`, false, chatCost, -1, modelgate.ParseOK},
		"negative":                    {provider.UseStatedCost, "openai", `"cost":-0.1`, false, chatCost, -1, modelgate.ParsePartial},
		"absurd":                      {provider.RecordStatedCost, "openai", `"cost":10000.01`, false, chatCost, -1, modelgate.ParsePartial},
		"past every number":           {provider.UseStatedCost, "openai", `"cost":1e999`, false, chatCost, -1, modelgate.ParsePartial},
		"no number":                   {provider.UseStatedCost, "openai", `"cost":"cheap"`, false, chatCost, -1, modelgate.ParsePartial},
		"null":                        {provider.UseStatedCost, "openai", `"cost":null`, false, chatCost, -1, modelgate.ParseOK},
		"used, more than nine places": {provider.UseStatedCost, "openai", `"cost":1.23456789049e-7`, false, 123, 123, modelgate.ParseOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usage := `"usage":{"prompt_tokens":10,"completion_tokens":5,` + tt.says + `}`
			answer, body := sized("application/json", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],`+usage+`}`), chatBody
			if tt.stream {
				body = streamBody
				answer = reply(eventHead, chunks(events(`{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, `{"choices":[],`+usage+`}`, "[DONE]"))+lastChunk)
			}
			g := open(t, rawUpstream(t, sends(answer)).URL, plan{configure: func(c *provider.Config) {
				if c.Name == "openai" {
					c.Format, c.StatedCost, c.Paths = tt.format, tt.use, map[string]string{"chat": "/v1/chat/completions"}
				}
			}})
			if resp, _, err := g.do(t, "/v1/chat/completions", body); err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			end := g.books.only(t)
			stated := modelgate.Nano(-1)
			if end.StatedCost != nil {
				stated = *end.StatedCost
			}
			if end.Cost != tt.cost || stated != tt.stated || end.ParseStatus != tt.status {
				t.Errorf("cost %s, stated %s, %s; want %s, %s, %s", end.Cost, stated, end.ParseStatus, tt.cost, tt.stated, tt.status)
			}
			if used := end.PriceLabel == modelgate.StatedLabel; used != (tt.stated >= 0 && tt.cost == tt.stated) {
				t.Errorf("label %q", end.PriceLabel)
			}
		})
	}
}
