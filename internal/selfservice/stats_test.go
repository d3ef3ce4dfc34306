package selfservice_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"modelgate"
)

// bucket is a bucket of statistics as a client sees it.
type bucket struct {
	Key      string
	Requests int64
	Tokens   int64          `json:"total_tokens"`
	Cost     modelgate.Nano `json:"total_cost_usd"`
}

func TestStats(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		g.do(root, "GET /gw/stats", "").want(200, `[]`)
		g.book(
			g.row(client, 50*time.Hour, asIs), g.row(client, 50*time.Hour, asIs), g.row(client, time.Minute, uncatalogued),
			g.row(client, 40*24*time.Hour, asIs), g.row(g.client(unchanged), time.Minute, asIs),
		)
		both := `{"key":%q,"requests":2,"total_tokens":30,"total_cost_usd":0.003}`
		one := `{"key":%q,"requests":1,"total_tokens":15,"total_cost_usd":0.0015}`
		for query, want := range map[string]string{
			"":                                  fmt.Sprintf("["+both+","+one+"]", "azure-eu", "groq"),
			"?since=49h":                        fmt.Sprintf("["+one+"]", "groq"),
			"?provider=groq":                    fmt.Sprintf("["+one+"]", "groq"),
			"?provider=openai":                  `[]`,
			"?group_by=model":                   fmt.Sprintf("["+both+","+one+"]", "deployment-7", "native"),
			"?group_by=model_slug":              fmt.Sprintf("["+both+","+one+"]", "openai/gpt-5-mini", "other"),
			"?group_by=author":                  fmt.Sprintf("["+both+","+one+"]", "openai", "other"),
			"?group_by=region":                  `[{"key":"unknown","requests":3,"total_tokens":45,"total_cost_usd":0.0045}]`,
			"?group_by=team":                    `[{"key":"search","requests":3,"total_tokens":45,"total_cost_usd":0.0045}]`,
			"?group_by=nobody&provider=groq":    fmt.Sprintf("["+one+"]", ""),
			"?group_by=day&since=100d":          "",
			"?group_by=provider&client_id=else": fmt.Sprintf("["+both+","+one+"]", "azure-eu", "groq"),
		} {
			g.do(root, "GET /gw/stats"+query, "").want(200, want)
		}
		for _, bad := range []string{"since=soon", "since=0s", "since=-1h", "since=3651d", "since=", "group_by=", "group_by=a%20b",
			"group_by=day&group_by=day", "provider=%ff", "group_by=" + url.QueryEscape("naïve")} {
			g.do(root, "GET /gw/stats?"+bad, "").refused(400, "bad_request", "")
		}
	})
}

// TestStatsAreTheSumOfUsage reads both as an organization and as its end
// customer, who sees billed prices.
func TestStatsAreTheSumOfUsage(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		sub := g.subAccount(client, "globex")
		root := g.rootKey(client)
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":33.3333}`).want(204, "")
		customer := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		random := rand.New(rand.NewPCG(1, 2))
		var rows []modelgate.UsageRow
		for range 400 {
			rows = append(rows, g.row(client, time.Duration(random.Int64N(int64(60*time.Hour))), func(r *modelgate.UsageRow) {
				if random.IntN(2) == 0 {
					r.SubAccountID = sub
				}
				if random.IntN(3) == 0 {
					uncatalogued(r)
				}
				r.Cost = modelgate.Nano(random.Int64N(1000))
				r.Attribution["user"] = fmt.Sprint("u", random.IntN(30))
				if random.IntN(4) == 0 {
					delete(r.Attribution, "team")
				}
			}))
		}
		g.book(rows...)
		for who, key := range map[string]string{"organization": root, "end customer": customer} {
			var listed []struct {
				Provider    string
				Model       string
				Slug        string `json:"model_slug"`
				Author      string
				Cost        modelgate.Nano `json:"cost_usd"`
				Tokens      int64          `json:"total_tokens"`
				Attribution map[string]string
				CreatedAt   time.Time `json:"created_at"`
			}
			g.do(key, "GET /gw/usage?limit=1000", "").into(&listed)
			for _, by := range []string{"provider", "model", "model_slug", "author", "day", "team", "user"} {
				want := map[string]*bucket{}
				for _, r := range listed {
					k := map[string]string{"provider": r.Provider, "model": r.Model, "model_slug": r.Slug, "author": r.Author,
						"day": r.CreatedAt.Format(time.DateOnly), "team": r.Attribution["team"], "user": r.Attribution["user"]}[by]
					if k == "" && (by == "model_slug" || by == "author") {
						k = "other"
					}
					if want[k] == nil {
						want[k] = &bucket{Key: k}
					}
					want[k].Requests++
					want[k].Tokens += r.Tokens
					want[k].Cost += r.Cost
				}
				var got []bucket
				g.do(key, "GET /gw/stats?group_by="+by, "").into(&got)
				if len(got) != len(want) || len(got) == 0 {
					g.Errorf("%s, %s: %d buckets, want %d", who, by, len(got), len(want))
				}
				for i, b := range got {
					w := want[b.Key]
					// Billed prices are rounded for each row, and once for a sum.
					var slack int64
					if key == customer {
						slack = b.Requests
					}
					if w == nil || w.Requests != b.Requests || w.Tokens != b.Tokens || int64(max(w.Cost-b.Cost, b.Cost-w.Cost)) > slack {
						g.Errorf("%s, %s: %+v, want %+v", who, by, b, w)
					}
					if i > 0 && (by == "day" && got[i-1].Key >= b.Key || by != "day" && got[i-1].Cost < b.Cost) {
						g.Errorf("%s, %s: %+v comes after %+v", who, by, b, got[i-1])
					}
				}
			}
		}
		var regions []bucket
		g.do(customer, "GET /gw/stats?group_by=region", "").into(&regions)
		if text, _ := json.Marshal(regions); len(regions) != 1 || regions[0].Key != "unknown" {
			g.Errorf("an end customer sees the regions %s", text)
		}
	})
}
