package selfservice_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelgate"
)

func TestReport(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		sub := g.subAccount(client, "shop")
		root := g.rootKey(client)
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":50}`).want(204, "")
		own := g.row(client, time.Hour, asIs)
		g.book(own, g.resold(client, sub, time.Hour), g.resold(client, sub, 2*time.Hour), g.row(client, 9*24*time.Hour, asIs))

		day := own.At.Truncate(24 * time.Hour).Format(time.RFC3339)
		window := "from=" + own.At.Add(-3*time.Hour).Format(time.RFC3339) + "&to=" + own.At.Add(time.Hour).Format(time.RFC3339)
		durations := func(ms string) string {
			return fmt.Sprintf(`{"mean":%[1]s,"p50":%[1]s,"p90":%[1]s,"p95":%[1]s,"p99":%[1]s}`, ms)
		}
		theirs := func(cost string) string {
			return `"requests":2,"errors":2,"cost_usd":` + cost + `,"billed_usd":0.0045,"total_tokens":30,` +
				`"tokens":{"input":20,"cached_input":10,"cache_write":0,"output":0,"audio_input":0,"audio_output":0},` +
				`"latency_ms":` + durations("42") + `,"first_byte_ms":` + durations("7") + `,"percentiles":"exact"`
		}
		const margin = `"margin_usd":0.0015,"margin_percent":33.3333,"collected_usd":0`
		ours := `"requests":1,"errors":0,"cost_usd":0.0015,"billed_usd":null,"total_tokens":15,` +
			`"tokens":{"input":10,"cached_input":0,"cache_write":0,"output":5,"audio_input":0,"audio_output":0},` +
			`"latency_ms":` + durations("42") + `,"first_byte_ms":` + durations("null") + `,"percentiles":"exact","margin_usd":null,"margin_percent":null,"collected_usd":null`
		totals := `"requests":3,"errors":2,"cost_usd":0.0045,"billed_usd":0.0045,"total_tokens":45,` +
			`"tokens":{"input":30,"cached_input":10,"cache_write":0,"output":5,"audio_input":0,"audio_output":0},` +
			`"latency_ms":` + durations("42") + `,"first_byte_ms":` + durations("7") + `,"percentiles":"exact",` + margin
		head := fmt.Sprintf(`{"from":%q,"to":%q,`, own.At.Add(-3*time.Hour).Format(time.RFC3339), own.At.Add(time.Hour).Format(time.RFC3339))
		g.do(root, "GET /gw/report?group_by=sub_account_id&"+window, "").want(200, head+`"totals":{`+totals+`},"previous":null,"rows":[`+
			`{"at":null,"group":["`+string(sub)+`"],"label":["shop"],"other":false,`+theirs("0.003")+`,`+margin+`},`+
			`{"at":null,"group":[""],"label":[""],"other":false,`+ours+`}]}`)
		g.do(bound, "GET /gw/report?"+window, "").want(200, head+`"totals":{`+theirs("0.0045")+`},"previous":null,"rows":[`+
			`{"at":null,"group":[],"label":[],"other":false,`+theirs("0.0045")+`}]}`)
		if a := g.do(root, "GET /gw/report?sub_account_id=none&interval=month&group_by=model&group_by=status&"+window, ""); !strings.Contains(a.body,
			`"rows":[{"at":"`+day[:8]+`01T00:00:00Z","group":["openai/gpt-5-mini","200"],"label":["openai/gpt-5-mini","200"],"other":false,`+ours+`}]`) {
			g.Errorf("%s = %s", a.what, a.body)
		}
		// The seven days before hold the call of nine days ago.
		if a := g.do(root, "GET /gw/report?compare=previous", ""); a.status != 200 || !strings.Contains(a.body, `"previous":{`+ours+`}`) {
			g.Errorf("%s = %d %s", a.what, a.status, a.body)
		}

		for _, what := range []string{"group_by=region", "group_by=native_model", "group_by=provider&group_by=sub_account_id", "sub_account_id=" + string(sub)} {
			g.do(bound, "GET /gw/report?"+what, "").refused(403, "forbidden", "")
			g.do(root, "GET /gw/report?"+what, "").want(200, "")
		}
		for _, bad := range []string{"group_by=cost", "group_by=tag:", "group_by=tag:a%20b", "group_by=", "group_by=model&group_by=model",
			"group_by=model&group_by=author&group_by=kind", "interval=minute", "interval=hour&since=63d", "top=0", "top=51", "order=name", "compare=next",
			"format=xml", "limit=5", "sort=created_at"} {
			g.do(root, "GET /gw/report?"+bad, "").refused(400, "bad_request", "")
		}
	})
}

// TestReportFile holds the file against the calls.
func TestReportFile(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		sub := g.subAccount(client, "=shop")
		root := g.rootKey(client)
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		rows := []modelgate.UsageRow{g.resold(client, sub, time.Minute)}
		for n := range 60 {
			rows = append(rows, g.row(client, time.Duration(n)*time.Hour, func(r *modelgate.UsageRow) { r.Cost = modelgate.Nano(n) * 1000 }))
		}
		g.book(rows...)
		for key, columns := range map[string]int{root: 31, bound: 28} {
			a := g.do(key, "GET /gw/report?format=csv&interval=day&group_by=tag:team", "")
			text, mark := strings.CutPrefix(a.body, "\ufeff")
			records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if a.status != 200 || !mark || err != nil || len(records[0]) != columns || len(records) < 2 {
				g.Fatalf("%s = %d %.300s: %v", a.what, a.status, a.body, err)
			}
			var cost modelgate.Nano
			for _, r := range records[1:] {
				n, err := modelgate.ParseUSD(r[8])
				if err != nil {
					g.Fatal(err)
				}
				cost += n
				if r[1] == "=1+1" {
					g.Errorf("a cell is a formula: %v", r)
				}
			}
			var sum struct {
				Totals struct {
					CostUSD modelgate.Nano `json:"cost_usd"`
				} `json:"totals"`
			}
			g.do(key, "GET /gw/report", "").into(&sum)
			if cost != sum.Totals.CostUSD || cost == 0 {
				g.Errorf("the file has %s, the report %s", cost, sum.Totals.CostUSD)
			}
		}
	})
}
