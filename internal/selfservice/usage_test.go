package selfservice_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

// row is a booked call, age old.
func (g *gate) row(client modelgate.ClientID, age time.Duration, change func(*modelgate.UsageRow)) modelgate.UsageRow {
	at := time.Now().Add(-age).UTC().Truncate(time.Millisecond) // the instant is also in the id
	r := modelgate.UsageRow{
		CallBegin: modelgate.CallBegin{
			ID: modelgate.NewIDs(func() time.Time { return at }).New(), At: at, ClientID: client, KeyID: "k",
			Provider: "azure-eu", Model: "deployment-7", Slug: "openai/gpt-5-mini", Author: "openai", Kind: modelgate.LLM,
			Door: "/v1/chat/completions", ViaSDK: true, Attribution: map[string]string{"team": "search", "key_id": "k"},
		},
		CallEnd: modelgate.CallEnd{
			StatusCode: 200, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: 10, Output: 5}, Cost: 1_500_000, LatencyMS: 42,
		},
	}
	change(&r)
	return r
}

func asIs(*modelgate.UsageRow) {}

func uncatalogued(r *modelgate.UsageRow) {
	r.CallBegin.Provider, r.CallBegin.Model, r.Slug, r.Author = "groq", "native", "", ""
}

func TestUsageRows(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		g.do(root, "GET /gw/usage", "").want(200, `[]`)
		old, young := g.row(client, time.Hour, asIs), g.row(client, time.Minute, uncatalogued)
		g.book(old, young, g.row(g.client(unchanged), time.Minute, asIs))

		view := func(r modelgate.UsageRow, slug string) string {
			return fmt.Sprintf(`{"id":%q,"client_id":%q,"provider":%q,"model":%q,%s"cost_usd":0.0015,"total_tokens":15,`+
				`"status_code":200,"latency_ms":42,"parse_status":"ok","via_sdk":true,"attribution":{"key_id":"k","team":"search"},"created_at":%q,`+
				`"tokens":{"input":10,"cached_input":0,"cache_write":0,"output":5,"audio_input":0,"audio_output":0},"first_byte_ms":null,"key_name":null}`,
				r.CallBegin.ID, client, r.CallBegin.Provider, r.CallBegin.Model, slug, r.At.Format(time.RFC3339Nano))
		}
		first, second := view(young, ""), view(old, `"model_slug":"openai/gpt-5-mini","author":"openai",`)
		g.do(root, "GET /gw/usage", "").want(200, "["+first+","+second+"]")
		g.do(root, "GET /gw/usage?id="+strings.ToUpper(old.CallBegin.ID.String()), "").want(200, "["+second+"]")
		g.do(root, "GET /gw/usage?id="+unknownID, "").want(200, "[]")
		g.do(root, "GET /gw/usage?since=30m", "").want(200, "["+first+"]")
		g.do(root, "GET /gw/usage?provider=azure-eu", "").want(200, "["+second+"]")
		g.do(root, "GET /gw/usage?provider=Azure-EU", "").want(200, "[]")
		g.do(root, "GET /gw/usage?provider=openai", "").want(200, "[]")
		g.do(root, "GET /gw/usage?parse_status=ok&since=30d", "").want(200, "["+first+","+second+"]")
		g.do(root, "GET /gw/usage?parse_status=nonsense", "").want(200, "[]")
		// Attribution keys, and organizations, are no filters.
		g.do(root, "GET /gw/usage?team=ads&client_id="+unknownID, "").want(200, "["+first+","+second+"]")
		for _, bad := range []string{"limit=0", "limit=1001", "limit=abc", "limit=", "since=", "since=30", "since=-1h", "since=0s", "since=3651d",
			"since=99999999999999d", "cursor=abc", "cursor=", "id=abc", "provider=a&provider=b", "provider=%00", "parse_status=%ff", "since=1h;x=1"} {
			g.do(root, "GET /gw/usage?"+bad, "").refused(400, "bad_request", "")
		}
	})
}

func TestUsagePaging(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root := g.rootKey(client)
		var rows []modelgate.UsageRow
		same := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
		for i := range 105 {
			rows = append(rows, g.row(client, time.Duration(i)*time.Second, func(r *modelgate.UsageRow) {
				if i%3 == 0 { // many calls of one instant: the id decides
					r.At = same
				}
			}))
		}
		g.book(rows...)
		var all []object
		g.do(root, "GET /gw/usage?limit=1000", "").into(&all)
		if len(all) != 105 {
			g.Fatalf("%d rows, want 105", len(all))
		}
		for i := range all[1:] {
			a, b := fmt.Sprint(all[i]["created_at"], all[i]["id"]), fmt.Sprint(all[i+1]["created_at"], all[i+1]["id"])
			if len(a) == len(b) && a < b {
				g.Errorf("%s comes before %s", a, b)
			}
		}
		for _, c := range []struct{ query, limit string }{{"", ""}, {"", "limit=1000"}, {"", "limit=105"}, {"provider=azure-eu&since=30d&parse_status=ok", "limit=10"}} {
			var got []object
			next := ""
			for pages := 0; pages == 0 || next != ""; pages++ {
				target := "GET /gw/usage?" + c.query + "&" + c.limit
				if next != "" {
					target += "&cursor=" + url.QueryEscape(next)
				}
				var page []object
				next = g.do(root, target, "").into(&page).header.Get("X-Next-Cursor")
				got = append(got, page...)
			}
			if diff := cmp.Diff(all, got); diff != "" {
				g.Errorf("%+v: %s", c, diff)
			}
		}
		next := g.do(root, "GET /gw/usage?limit=10&provider=azure-eu", "").header.Get("X-Next-Cursor")
		g.do(root, "GET /gw/usage?limit=10&cursor="+next, "").refused(400, "bad_request", "")
		g.do(root, "GET /gw/usage?limit=20&provider=azure-eu&cursor="+next, "").want(200, "")
	})
}

func TestUsageOfABoundKey(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		root, sub, other := g.rootKey(client), g.subAccount(client, "shop"), g.subAccount(client, "other")
		key := g.key(client, func(k *modelgate.Key) { k.SubAccountID = sub })
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":33.333333}`).want(204, "")
		bound := func(id modelgate.SubAccountID, change func(*modelgate.UsageRow)) func(*modelgate.UsageRow) {
			return func(r *modelgate.UsageRow) { r.SubAccountID = id; change(r) }
		}
		catalogued, native := g.row(client, time.Hour, bound(sub, asIs)), g.row(client, 2*time.Hour, bound(sub, uncatalogued))
		foreign := g.row(client, time.Minute, bound(other, asIs))
		g.book(catalogued, native, foreign, g.row(client, time.Minute, asIs))

		var rows []object
		a := g.do(key, "GET /gw/usage", "").into(&rows)
		if len(rows) != 2 {
			g.Fatalf("a bound key sees %s, want its own two rows", a.body)
		}
		if r := rows[0]; r["provider"] != "openai" || r["model"] != "openai/gpt-5-mini" || r["cost_usd"] != 0.002 {
			g.Errorf("a catalogued row: %v", r)
		}
		if r := rows[1]; r["provider"] != "groq" || r["model"] != "native" || r["model_slug"] != nil {
			g.Errorf("a row that is not catalogued: %v", r)
		}
		if strings.Contains(a.body, "azure-eu") || strings.Contains(a.body, "deployment-7") || strings.Contains(a.body, "0.0015") {
			g.Errorf("routes or costs are shown: %s", a.body)
		}
		// Filters take what is shown, so that they give nothing away.
		for query, want := range map[string]int{"provider=openai": 1, "provider=azure-eu": 0, "provider=groq": 1, "id=" + foreign.CallBegin.ID.String(): 0,
			"id=" + catalogued.CallBegin.ID.String(): 1, "id=" + catalogued.CallBegin.ID.String() + "&provider=azure-eu": 0} {
			var got []object
			g.do(key, "GET /gw/usage?"+query, "").into(&got)
			if len(got) != want {
				g.Errorf("%s: %d rows, want %d", query, len(got), want)
			}
		}
		// The markup of this moment, not of the call.
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":100}`).want(204, "")
		g.do(key, "GET /gw/usage?limit=1", "").into(&rows)
		if rows[0]["cost_usd"] != 0.003 {
			g.Errorf("after the markup changed: %v, want 0.003", rows[0]["cost_usd"])
		}
		g.do(root, "GET /gw/usage", "").into(&rows)
		if len(rows) != 4 || rows[0]["cost_usd"] != 0.0015 {
			g.Errorf("the organization sees %v, want 4 rows at cost", rows)
		}
	})
}

func TestUsageReadsWhatWasJustBooked(t *testing.T) {
	g := setup(t, "sqlite")
	client := g.client(unchanged)
	root := g.rootKey(client)
	g.setFlushed(func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		if wait := time.Until(deadline); !ok || wait > 2*time.Second {
			t.Errorf("it waits %v for the shipper, want at most 2 s", wait)
		}
		g.book(g.row(client, 0, asIs))
		return nil
	})
	var rows []object
	g.do(root, "GET /gw/usage", "").into(&rows)
	if len(rows) != 1 {
		t.Errorf("%d rows, want the one that was about to be booked", len(rows))
	}
	g.setFlushed(func(context.Context) error { return errors.New("the shipper is slow") })
	g.do(root, "GET /gw/usage", "").into(&rows)
	if len(rows) != 1 {
		t.Errorf("%d rows while the shipper is slow, want those that are there", len(rows))
	}
}
