package gateway

import (
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// What replies do not state is priced by what the request asked for.
func TestPricedByTheRequest(t *testing.T) {
	t.Parallel()
	price := &modelgate.Price{Images: []modelgate.MediaPrice{
		{Size: "1024x1024", Quality: "hd", USD: 80_000_000}, {Size: "1024x1024", USD: 40_000_000}, {Quality: "low", USD: 10_000_000},
	}}
	for unit, usd := range map[modelgate.Unit]modelgate.Nano{modelgate.UnitImage: 20_000_000, modelgate.UnitCharacters: 15_000_000_000} {
		if err := price.Base.Set(unit, usd); err != nil {
			t.Fatal(err)
		}
	}
	live := liveOf(t, []*modelgate.Model{
		{Slug: "acme/picture", Kind: modelgate.Image, Price: price, Routes: []modelgate.Route{{Provider: "openai", Model: "dall"}}},
		{Slug: "acme/voice", Kind: modelgate.Audio, Price: price, Routes: []modelgate.Route{{Provider: "openai", Model: "tts"}}},
	})
	const two, none = `{"created":1,"data":[{"url":"a"},{"url":"b"}]}`, `{"pictures":{"a":"b"}}`
	for name, tt := range map[string]struct {
		path, body, contentType, reply string
		cost                           modelgate.Nano
		parse                          modelgate.ParseStatus
	}{
		"size and quality": {"/v1/images/generations", `{"model":"acme/picture","size":"1024x1024","quality":"hd"}`, "application/json", two, 160_000_000, modelgate.ParseOK},
		"size":             {"/v1/images/generations", `{"model":"acme/picture","size":"1024x1024"}`, "application/json", two, 80_000_000, modelgate.ParseOK},
		"quality":          {"/v1/images/generations", `{"model":"acme/picture","size":"512x512","quality":"low"}`, "application/json", two, 20_000_000, modelgate.ParseOK},
		"neither":          {"/v1/images/generations", `{"model":"acme/picture"}`, "application/json", two, 80_000_000, modelgate.ParseOK},
		"number":           {"/v1/images/generations", `{"model":"acme/picture","n":3}`, "application/json", none, 120_000_000, modelgate.ParsePartial},
		"unknown number":   {"/v1/images/generations", `{"model":"acme/picture"}`, "application/json", none, 40_000_000, modelgate.ParsePartial},
		"characters":       {"/v1/audio/speech", `{"model":"acme/voice","input":"h\u00e9llo 🪁"}`, "audio/mpeg", "ID3", 105_000, modelgate.ParseOK},
		"proxy":            {"/openai/v1/audio/speech", `{"model":"tts","input":"hello"}`, "audio/mpeg", "ID3", 75_000, modelgate.ParseOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := rawUpstream(t, sends(sized(tt.contentType, tt.reply)))
			here := liveOf(t, live.Catalog.Models(), provider.Config{Format: "openai", BaseURL: u.URL})
			g := open(t, "", plan{live: here})
			if resp, answer, _ := g.do(t, tt.path, tt.body); resp.StatusCode != 200 || string(answer) != tt.reply {
				t.Fatalf("status %d, %s", resp.StatusCode, answer)
			}
			if end := g.books.only(t); end.Cost != tt.cost || end.ParseStatus != tt.parse {
				t.Errorf("END %+v, want %d, %s", end, tt.cost, tt.parse)
			}
		})
	}
}
