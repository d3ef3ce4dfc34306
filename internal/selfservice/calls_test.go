package selfservice_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

// resold is a booked call of a customer, named where the file's reader would
// take a name for a formula.
func (g *gate) resold(client modelgate.ClientID, sub modelgate.SubAccountID, age time.Duration) modelgate.UsageRow {
	return g.row(client, age, func(r *modelgate.UsageRow) {
		r.SubAccountID, r.StatusCode, r.CallBegin.Region, r.PriceLabel, r.FirstByteMS = sub, 429, "eu-west", "input=1", 7
		r.Usage = modelgate.Usage{Input: 10, CachedInput: 5, Seconds: 1_500_000}
		r.Attribution = map[string]string{"team": "=1+1", "key_id": "k", "sub_account_id": string(sub)}
	})
}

func TestCalls(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		sub := g.subAccount(client, "-shop")
		root := g.rootKey(client)
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":50}`).want(204, "")
		g.do(root, "GET /gw/calls", "").want(200, "[]")
		own, theirs := g.row(client, time.Hour, asIs), g.resold(client, sub, time.Minute)
		g.book(own, theirs, g.row(g.client(unchanged), time.Minute, asIs), g.row(client, 8*24*time.Hour, asIs))

		head := fmt.Sprintf(`{"id":%q,"client_id":%q,"provider":"azure-eu","model":"deployment-7","model_slug":"openai/gpt-5-mini","author":"openai",`, theirs.ID, client)
		middle := fmt.Sprintf(`"total_tokens":15,"status_code":429,"latency_ms":42,"parse_status":"ok","via_sdk":true,`+
			`"attribution":{"key_id":"k","sub_account_id":%[1]q,"team":"=1+1"},"created_at":%[2]q,`+
			`"tokens":{"input":10,"cached_input":5,"cache_write":0,"output":0,"audio_input":0,"audio_output":0},"first_byte_ms":7,"key_name":null,`+
			`"key_id":"k","sub_account_id":%[1]q,"sub_account_name":"-shop","kind":"llm","door":"/v1/chat/completions","units":{"cached_input":5,"input":10,"seconds":1.5},`+
			`"billed_usd":0.00225`, sub, theirs.At.Format(time.RFC3339Nano))
		g.do(root, "GET /gw/calls?status=4xx", "").want(200, "["+head+`"cost_usd":0.0015,`+middle+`,"margin_usd":0.00075,"region":"eu-west","rates":"input=1"}]`)
		shown := strings.Replace(strings.Replace(head, "azure-eu", "openai", 1), "deployment-7", "openai/gpt-5-mini", 1)
		g.do(bound, "GET /gw/calls", "").want(200, "["+shown+`"cost_usd":0.00225,`+middle+`}]`)

		for query, want := range map[string]int{
			"": 2, "since=30d": 3, "since=30m": 1, "model=openai/gpt-5-mini": 2, "model=deployment-7": 0, "author=openai": 2, "provider=azure-eu": 2,
			"key_id=k": 2, "key_id=k&key_id=x": 2, "key_id=x": 0, "sub_account_id=none": 1, "sub_account_id=" + string(sub): 1,
			"sub_account_id=none&sub_account_id=" + string(sub): 2, "status=ok": 1, "status=429&status=500": 1, "parse_status=ok&door=/v1/messages": 0,
			"kind=llm&tag=team:search": 1, "tag=team:search&tag=team:%3D1%2B1": 2, "id=" + strings.ToUpper(own.ID.String()): 1,
			"min_cost_usd=0.0015": 2, "min_cost_usd=0.001500001": 0, "min_latency_ms=43": 0, "client_id=x&organization=y": 2,
			"from=2020-01-01T00:00:00Z": 3, "to=2020-01-01T00:00:00Z": 0, "from=2020-01-01T00:00:00Z&to=2021-01-01T00:00:00%2B02:00": 0,
		} {
			var rows []object
			if g.do(root, "GET /gw/calls?"+query, "").into(&rows); len(rows) != want {
				g.Errorf("GET /gw/calls?%s has %d rows, want %d", query, len(rows), want)
			}
		}
		// The customer's thresholds are those of its prices.
		for query, want := range map[string]int{"min_cost_usd=0.00225": 1, "min_cost_usd=0.002250001": 0, "provider=openai": 1, "provider=azure-eu": 0, "sort=-cost_usd": 1} {
			var rows []object
			if g.do(bound, "GET /gw/calls?"+query, "").into(&rows); len(rows) != want {
				g.Errorf("GET /gw/calls?%s of a customer has %d rows, want %d", query, len(rows), want)
			}
		}
		g.do(bound, "GET /gw/calls?sub_account_id="+string(sub), "").refused(403, "forbidden", "")
		for _, bad := range []string{"limit=0", "limit=1001", "sort=cost", "since=0s", "since=1d&from=2020-01-01T00:00:00Z", "from=yesterday", "from=30d",
			"from=2020-01-02T00:00:00Z&to=2020-01-01T00:00:00Z", "status=6xx", "status=20", "status=abc", "tag=team", "tag=:x", "id=1", "min_cost_usd=-1",
			"min_cost_usd=x", "min_latency_ms=-1", "model=", "model=%ff", "format=xml", "format=csv&limit=5", "format=csv&cursor=x", "cursor=x", "modle=x",
			strings.Repeat("key_id=x&", 51)} {
			g.do(root, "GET /gw/calls?"+bad, "").refused(400, "bad_request", "")
		}
	})
}

func TestCallsPages(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		var rows []modelgate.UsageRow
		for n := range 7 {
			rows = append(rows, g.row(client, time.Duration(n)*time.Minute, func(r *modelgate.UsageRow) { r.LatencyMS = int64(n % 3) }))
		}
		g.book(rows...)
		for _, sort := range []string{"created_at", "-created_at", "-latency_ms"} {
			seen, cursor := map[any]bool{}, ""
			for page := range 5 {
				var got []object
				a := g.do(root, "GET /gw/calls?limit=2&sort="+sort+cursor, "").into(&got)
				for _, row := range got {
					seen[row["id"]] = true
				}
				next := a.header.Get("X-Next-Cursor")
				if (next == "") != (page == 3) {
					g.Errorf("sort=%s, page %d: cursor %q", sort, page, next)
				}
				if cursor = "&cursor=" + next; next == "" {
					break
				}
			}
			if len(seen) != 7 {
				g.Errorf("sort=%s: %d calls, want 7", sort, len(seen))
			}
			g.do(root, "GET /gw/calls?limit=2&status=ok&sort="+sort+cursor, "").refused(400, "bad_request", "")
		}
	})
}

// TestCallsTag answers 304 until something has changed.
func TestCallsTag(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		ask := func(query, tag string) *reply {
			r := httptest.NewRequestWithContext(g.Context(), "GET", "/gw/calls?from=2020-01-01T00:00:00Z"+query, nil)
			r.Header.Set("Authorization", "Bearer "+root)
			r.Header.Set("If-None-Match", tag)
			return g.send(r)
		}
		g.book(g.row(client, time.Hour, asIs))
		first := ask("", "")
		tag := first.want(200, "").header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) {
			g.Fatalf("ETag %q", tag)
		}
		for _, value := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
			if a := ask("", value); a.status != 304 || a.body != "" || a.header.Get("ETag") != tag {
				g.Errorf("If-None-Match %s: %d %s", value, a.status, a.body)
			}
		}
		ask("&limit=5", tag).want(200, "")
		other := g.rootKey(g.client(unchanged))
		r := httptest.NewRequestWithContext(g.Context(), "GET", "/gw/calls?from=2020-01-01T00:00:00Z", nil)
		r.Header.Set("Authorization", "Bearer "+other)
		r.Header.Set("If-None-Match", tag)
		g.send(r).want(200, "[]")
		g.book(g.row(client, time.Minute, asIs))
		if a := ask("", tag).want(200, ""); a.header.Get("ETag") == tag {
			g.Error("the tag is the same after a call")
		}
	})
}

// TestCallsFile holds the file against the list.
func TestCallsFile(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		sub := g.subAccount(client, "-shop")
		root := g.rootKey(client)
		bound := g.key(client, func(k *modelgate.Key) { k.SubAccountID, k.Name = sub, "k" })
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":50}`).want(204, "")
		rows := []modelgate.UsageRow{g.resold(client, sub, time.Minute)}
		for n := range 2500 { // more than are read at once
			rows = append(rows, g.row(client, time.Hour+time.Duration(n)*time.Second, func(r *modelgate.UsageRow) { r.Cost = modelgate.Nano(n) }))
		}
		g.book(rows...)
		for key, columns := range map[string]int{root: 32, bound: 29} {
			a := g.do(key, "GET /gw/calls?format=csv", "")
			text, mark := strings.CutPrefix(a.body, "\ufeff")
			if a.status != 200 || !mark || a.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(text, "\r\n") {
				g.Fatalf("%s = %d %v %.300s", a.what, a.status, a.header, a.body)
			}
			records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			if err != nil || len(records[0]) != columns {
				g.Fatalf("%d columns, %v", len(records[0]), err)
			}
			at := map[string]int{}
			for i, name := range records[0] {
				at[name] = i
			}
			var want, got []string
			cursor := ""
			for {
				var page []struct {
					ID          string      `json:"id"`
					CostUSD     json.Number `json:"cost_usd"`
					TotalTokens int64       `json:"total_tokens"`
				}
				a := g.do(key, "GET /gw/calls?limit=1000"+cursor, "").into(&page)
				for _, row := range page {
					want = append(want, fmt.Sprint(row.ID, " ", row.CostUSD, " ", row.TotalTokens))
				}
				next := a.header.Get("X-Next-Cursor")
				if cursor = "&cursor=" + next; next == "" {
					break
				}
			}
			for _, r := range records[1:] {
				got = append(got, r[at["id"]]+" "+r[at["cost_usd"]]+" "+r[at["total_tokens"]])
			}
			if d := cmp.Diff(want, got); d != "" {
				g.Errorf("the file's rows (-want +got):\n%s", d)
			}
			if name := records[1][at["sub_account_name"]]; name != "'-shop" {
				g.Errorf("the name -shop is the cell %q", name)
			}
			if pairs := records[1][at["attribution"]]; !strings.Contains(pairs, `"team":"=1+1"`) {
				g.Errorf("attribution is the cell %q", pairs)
			}
		}
	})
}

// TestCallsFileOneAtATime asks for a file while another is being written.
func TestCallsFileOneAtATime(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		g.book(g.row(client, time.Hour, asIs))
		again := true
		g.setFlushed(func(context.Context) error { return nil })
		w := &interrupted{ResponseRecorder: httptest.NewRecorder(), then: func() {
			if again {
				again = false
				g.do(root, "GET /gw/calls?format=csv", "").refused(429, "rate_limited", "")
				g.do(root, "GET /gw/calls", "").want(200, "")
			}
		}}
		r := httptest.NewRequestWithContext(g.Context(), "GET", "/gw/calls?format=csv", nil)
		r.Header.Set("Authorization", "Bearer "+root)
		g.handler.ServeHTTP(w, r)
		if w.Code != 200 || again {
			g.Errorf("the first file: %d, interrupted %t", w.Code, !again)
		}
		g.do(root, "GET /gw/calls?format=csv", "").want(200, "")
	})
}

// interrupted does something at each write.
type interrupted struct {
	*httptest.ResponseRecorder
	then func()
}

func (w *interrupted) Write(b []byte) (int, error) {
	w.then()
	return w.ResponseRecorder.Write(b)
}
