package selfservice_test

import (
	"fmt"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/spend"
)

func TestQuota(t *testing.T) {
	each(t, func(g *gate) {
		manual := g.client(func(c *modelgate.Client) { c.Billing = modelgate.Manual })
		sub := g.subAccount(manual, "shop")
		var keyID, boundID modelgate.KeyID
		root := g.rootKey(manual)
		rps, burst, calls := 2, 5, 3
		own := g.key(manual, func(k *modelgate.Key) {
			keyID, k.Scopes = k.ID, nil
			k.Limits = modelgate.Limits{RequestsPerSecond: &rps, Burst: &burst, Concurrency: &calls}
		})
		bound := g.key(manual, func(k *modelgate.Key) { boundID, k.SubAccountID = k.ID, sub })
		g.do(root, "GET /gw/quota?x=1", "").refused(400, "bad_request", "")
		g.do(root, "PATCH /gw/subaccounts/"+string(sub), `{"markup_pct":100}`).want(204, "")
		if err := g.db.Credit(g.Context(), manual, spend.BalanceEntry{ID: g.ids.New().String(), At: time.Now(), Amount: 20 * modelgate.USD}, g.operator("balance.credit")); err != nil {
			g.Fatal(err)
		}
		g.put(root, `{"scope":"client","period":"month","limit_usd":9}`)
		g.put(root, fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":1}`, keyID))
		g.put(root, fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":4}`, boundID))
		g.put(bound, fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":6}`, boundID))
		g.book(g.row(manual, 0, func(r *modelgate.UsageRow) { r.KeyID, r.Cost = keyID, modelgate.USD/4 }))

		day, month := modelgate.Day.End(time.Now()), modelgate.Month.End(time.Now())
		stamp := func(t time.Time) string { return t.Format(time.RFC3339) }
		// The request itself is drawn from the bucket.
		g.do(own, "GET /gw/quota", "").want(200, fmt.Sprintf(`{"limits":[`+
			`{"kind":"rate","scope":"key","id":%q,"unit":"requests","window":"second","limit":2,"used":1,"remaining":4,"resets_at":null},`+
			`{"kind":"rate","scope":"key","id":%q,"unit":"concurrency","limit":3,"used":0,"remaining":3,"resets_at":null},`+
			`{"kind":"balance","scope":"client","unit":"usd","limit":20,"used":0.25,"remaining":19.75,"resets_at":null},`+
			`{"kind":"budget","scope":"client","unit":"usd","period":"month","limit":9,"used":0.25,"remaining":8.75,"resets_at":%q},`+
			`{"kind":"budget","scope":"key","id":%q,"unit":"usd","period":"day","limit":1,"used":0.25,"remaining":0.75,"resets_at":%q}]}`,
			keyID, keyID, stamp(month), keyID, stamp(day)))
		// A customer sees nothing above its sub-account, and amounts as billed.
		g.do(bound, "GET /gw/quota", "").want(200, fmt.Sprintf(`{"limits":[`+
			`{"kind":"budget","scope":"key","id":%q,"unit":"usd","period":"day","limit":8,"used":0,"remaining":8,"resets_at":%q,"owner":"reseller"},`+
			`{"kind":"budget","scope":"key","id":%q,"unit":"usd","period":"day","limit":6,"used":0,"remaining":6,"resets_at":%q}]}`,
			boundID, stamp(day), boundID, stamp(day)))
	})
}

// A key that nothing limits has an empty list.
func TestQuotaOfAFreeKey(t *testing.T) {
	each(t, func(g *gate) {
		g.do(g.rootKey(g.client(unchanged)), "GET /gw/quota", "").want(200, `{"limits":[]}`)
	})
}
