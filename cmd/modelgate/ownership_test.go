package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/test/testkit"
)

// line is an organization with a customer whose key may issue keys.
type line struct {
	*bench
	manager string
	client  modelgate.ClientID
	sub     string
	// customer is the key bound to the sub-account, and customerID its id.
	customer, customerID string
}

// onBoth runs a test with a reseller on either database.
func onBoth(t *testing.T, more string, test func(t *testing.T, r *line)) {
	t.Helper()
	for name, url := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "" }, "postgres": func(t *testing.T) string { return testkit.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := testkit.StartGateway(t, testkit.GatewayOptions{Database: url(t), More: more})
			client := g.NewClient("reseller")
			manager, _ := g.NewKey(client)
			r := &line{bench: &bench{g, manager}, manager: manager, client: client}
			r.sub = r.gw(t, "POST", "/gw/subaccounts", `{"name":"Globex","slug":"globex"}`, 200)["id"].(string)
			r.customer, r.customerID = r.issue(t, manager, fmt.Sprintf(`,"sub_account_id":%q`, r.sub))
			test(t, r)
		})
	}
}

// gw asks the management API as the current key and wants a status.
func (r *line) gw(t *testing.T, method, path, body string, status int) map[string]any {
	t.Helper()
	req, err := http.NewRequest(method, r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	resp, answer := exchange(t, req)
	if resp.StatusCode != status {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, resp.StatusCode, answer, status)
	}
	out := map[string]any{}
	_ = json.Unmarshal([]byte(answer), &out) // a list stays out
	if e, ok := out["error"].(map[string]any); ok {
		return e
	}
	return out
}

// as lets a key speak from here on.
func (r *line) as(key string) *line {
	r.key = key
	return r
}

const allScopes = `{"scopes":["inference:use","stats:read","keys:manage"]`

// issue issues a key with every scope in the name of another.
func (r *line) issue(t *testing.T, by, more string) (key, id string) {
	t.Helper()
	out := r.as(by).gw(t, "POST", "/gw/keys", allScopes+more+"}", 200)
	return out["key"].(string), out["api_key_id"].(string)
}

// call is the status of a call of a model.
func (r *line) call(t *testing.T, key string) int {
	t.Helper()
	resp, _ := r.as(key).post(t, "/v1/chat/completions", aChat)
	return resp.StatusCode
}

// list is what a list shows to a key.
func (r *line) list(t *testing.T, key, path string) (out []map[string]any) {
	t.Helper()
	resp, answer := r.as(key).get(t, path)
	if resp.StatusCode != 200 {
		t.Fatalf("%s: %d %s", path, resp.StatusCode, answer)
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A key that a bound key issued ends with it, by time and by revocation.
func TestChildKeyEndsWithItsIssuer(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, r *line) {
		out := r.as(r.customer).gw(t, "POST", "/gw/keys", allScopes+`,"expires_in_seconds":90}`, 200)
		brief, briefID, ends := out["key"].(string), out["api_key_id"], out["expires_at"]
		if child := r.as(brief).gw(t, "POST", "/gw/keys", `{"scopes":["inference:use"]}`, 200); child["expires_at"] != ends {
			t.Errorf("the child of a key that ends at %v ends at %v", ends, child["expires_at"])
		}
		if e := r.gw(t, "POST", "/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":91}`, 403); e["message"] != "expires after the issuing key" {
			t.Errorf("a longer life: %v", e)
		}
		earlier := r.gw(t, "POST", "/gw/keys", `{"scopes":["inference:use"],"expires_in_seconds":30}`, 200)
		grandchild, key := earlier["api_key_id"], earlier["key"].(string)
		if got := r.call(t, key); got != 200 {
			t.Errorf("an honest child: %d", got)
		}
		for _, k := range r.list(t, r.manager, "/gw/keys") {
			if k["id"] == grandchild && k["issued_by"] != briefID {
				t.Errorf("the child shows issued_by %v, want %v", k["issued_by"], briefID)
			}
			if k["id"] == r.customerID && k["issued_by"] != nil {
				t.Errorf("a key of the organization's shows issued_by %v", k["issued_by"])
			}
		}
		r.as(r.manager).gw(t, "DELETE", "/gw/keys/"+r.customerID, "", 204)
		for name, k := range map[string]string{"the revoked key": r.customer, "its child": brief, "its grandchild": key} {
			if got := r.call(t, k); got != 401 {
				t.Errorf("%s: %d, want 401", name, got)
			}
		}
	})
}

// The organization may keep the children of a key that it revokes.
func TestChildKeysAreKept(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, r *line) {
		middle, middleID := r.issue(t, r.customer, "")
		leaf, leafID := r.issue(t, middle, "")
		r.as(r.customer).gw(t, "DELETE", "/gw/keys/"+middleID+"?children=keep", "", 403)
		r.as(r.manager).gw(t, "DELETE", "/gw/keys/"+middleID+"?children=some", "", 400)
		r.gw(t, "DELETE", "/gw/keys/"+middleID+"?children=keep", "", 204)
		if a, b := r.call(t, middle), r.call(t, leaf); a != 401 || b != 200 {
			t.Errorf("the revoked key %d, its kept child %d, want 401 and 200", a, b)
		}
		for _, k := range r.list(t, r.manager, "/gw/keys") {
			if k["id"] == leafID && k["issued_by"] != r.customerID {
				t.Errorf("the kept child shows issued_by %v, want %v", k["issued_by"], r.customerID)
			}
		}
		r.gw(t, "DELETE", "/gw/keys/"+r.customerID, "", 204)
		if got := r.call(t, leaf); got != 401 {
			t.Errorf("the kept child of a revoked line: %d, want 401", got)
		}
	})
}

// Four generations below the reseller's key there is no further one.
func TestLineageIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, r *line) {
		key := r.customer
		for range 4 {
			key, _ = r.issue(t, key, "")
		}
		if got := r.call(t, key); got != 200 {
			t.Errorf("the fourth generation: %d", got)
		}
		e := r.as(key).gw(t, "POST", "/gw/keys", `{"scopes":[]}`, 403)
		if e["message"] != "keys cannot be issued this far below the reseller's" {
			t.Errorf("a fifth: %v", e)
		}
		key = r.manager
		for range 6 {
			key, _ = r.issue(t, key, "")
		}
	})
}

// The limits that the operator set on a key bind its descendants with it.
func TestChildKeySharesLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, r *line) {
		r.Admin(nil, "key", "limits", r.customerID, "--rps", "1", "--burst", "4")
		child, _ := r.issue(t, r.customer, "")
		began, admitted := time.Now(), 0
		for i := range 12 {
			if resp, _ := r.as([]string{r.customer, child}[i%2]).get(t, "/gw/me"); resp.StatusCode == 200 {
				admitted++
			}
		}
		if most := 4 + int(time.Since(began).Seconds()) + 1; admitted > most {
			t.Errorf("a key and its child passed %d requests, want at most %d together", admitted, most)
		}
		if resp, _ := r.as(r.manager).get(t, "/gw/me"); resp.StatusCode != 200 {
			t.Errorf("a key outside the line: %d", resp.StatusCode)
		}
	})
}

const enforced = "enforcement: {budgets: estimate}\n"

// A budget that the reseller set on a key binds its descendants with it, and
// shows what they spend.
func TestChildKeySharesBudgets(t *testing.T) {
	t.Parallel()
	onBoth(t, enforced, func(t *testing.T, r *line) {
		child, childID := r.issue(t, r.customer, "")
		grandchild, _ := r.issue(t, child, "")
		budget := `{"scope":"key","id":%q,"period":"month","limit_usd":%s}`
		r.as(r.manager).gw(t, "PUT", "/gw/budgets", fmt.Sprintf(budget, r.customerID, "0.0006"), 204)
		served := 0
		for i := range 8 {
			if r.call(t, []string{child, grandchild}[i%2]) == 200 {
				served++
			}
		}
		if served < 1 || served > 4 { // each costs some 0.0002
			t.Errorf("%d of 8 calls of descendants passed their ancestor's budget, want about 3", served)
		}
		if got := r.call(t, r.customer); got != 402 {
			t.Errorf("the key whose descendants used its budget up: %d, want 402", got)
		}
		own := r.list(t, r.manager, "/gw/budgets")[0]["spend_usd"].(float64)
		r.as(r.manager).gw(t, "PUT", "/gw/budgets", fmt.Sprintf(budget, childID, "1"), 204)
		for _, b := range r.list(t, r.manager, "/gw/budgets") {
			if b["id"] == r.customerID && (b["spend_usd"].(float64) != own || own == 0) {
				t.Errorf("the shared budget shows %v, before %v", b["spend_usd"], own)
			}
			if b["id"] == childID && (b["spend_usd"].(float64) == 0 || b["spend_usd"].(float64) > own) {
				t.Errorf("the child's own budget shows %v of %v", b["spend_usd"], own)
			}
		}
		r.Kill() // what was reserved is settled with the same budgets
		r.Start()
		if got := r.call(t, grandchild); got != 402 {
			t.Errorf("after a restart: %d, want 402", got)
		}
		if stdout, stderr, code := r.Run("reconcile", "--config", r.ConfigFile); code != 0 {
			t.Errorf("reconcile: %d\n%s\n%s", code, stdout, stderr)
		}
	})
}

// Each owner changes and removes its own budgets alone, and the smallest binds.
func TestBudgetsHaveOwners(t *testing.T) {
	t.Parallel()
	onBoth(t, enforced, func(t *testing.T, r *line) {
		put := func(limit string) string {
			return fmt.Sprintf(`{"scope":"key","id":%q,"period":"month","limit_usd":%s}`, r.customerID, limit)
		}
		path := fmt.Sprintf("/gw/budgets?scope=key&id=%s&period=month", r.customerID)
		r.as(r.manager).gw(t, "PUT", "/gw/budgets", put("0.0001"), 204)
		if e := r.as(r.customer).gw(t, "DELETE", path, "", 403); e["message"] != "set by the reseller" {
			t.Errorf("a customer's DELETE of the reseller's: %v", e)
		}
		r.gw(t, "PUT", "/gw/budgets", put("1000"), 204)
		if a, b := r.call(t, r.customer), r.call(t, r.customer); a != 200 || b != 402 { // the call that crosses it completes
			t.Errorf("two calls beside a larger budget of the customer's: %d, %d, want 200 and 402", a, b)
		}
		owners := func(key string) (out []any) {
			for _, b := range r.list(t, key, "/gw/budgets") {
				out = append(out, b["owner"], b["limit_usd"])
			}
			return out
		}
		if got := fmt.Sprint(owners(r.manager)); got != "[<nil> 0.0001 sub_account 1000]" {
			t.Errorf("the organization reads %s", got)
		}
		if got := fmt.Sprint(owners(r.customer)); got != "[reseller 0.0001 <nil> 1000]" {
			t.Errorf("the customer reads %s", got)
		}
		r.as(r.customer).gw(t, "DELETE", path, "", 204)
		r.gw(t, "DELETE", path, "", 403)
		r.gw(t, "PUT", "/gw/budgets", put("500"), 204)
		r.gw(t, "DELETE", path+"&owner=sub_account", "", 403)
		r.as(r.manager).gw(t, "DELETE", path+"&owner=operator", "", 400)
		r.gw(t, "DELETE", path+"&owner=sub_account", "", 204)
		r.gw(t, "DELETE", path+"&owner=sub_account", "", 404)
		r.gw(t, "DELETE", path, "", 204)
		r.gw(t, "DELETE", path, "", 404)
		if got := r.call(t, r.customer); got != 200 {
			t.Errorf("without budgets: %d", got)
		}
		r.Admin(nil, "budget", "set", "--client", string(r.client), "--scope", "key", "--id", r.customerID, "--period", "month", "--usd", "0.0002")
		eventually(t, "the operator's budget binds", func() bool { return r.call(t, r.customer) == 402 })
		if e := r.as(r.manager).gw(t, "DELETE", path, "", 403); e["message"] != "set by the operator" {
			t.Errorf("the organization's DELETE of the operator's: %v", e)
		}
		r.Admin(nil, "budget", "remove", "--client", string(r.client), "--scope", "key", "--id", r.customerID, "--period", "month")
		eventually(t, "nothing binds any more", func() bool { return r.call(t, r.customer) == 200 })
	})
}

// The keys of a sub-account are bounded: by 100 where a bound key issues, and
// for everybody by max_keys.
func TestSubAccountMaxKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, "", func(t *testing.T, r *line) {
		const full = "active key limit reached: revoke a key that is no longer used"
		bound := fmt.Sprintf(`{"scopes":[],"sub_account_id":%q}`, r.sub)
		for range 99 {
			r.as(r.customer).gw(t, "POST", "/gw/keys", `{"scopes":[]}`, 200)
		}
		if e := r.gw(t, "POST", "/gw/keys", `{"scopes":[]}`, 403); e["message"] != full {
			t.Errorf("key 101 of a bound key: %v", e)
		}
		r.as(r.manager).gw(t, "POST", "/gw/keys", bound, 200)
		for _, bad := range []string{"0", "1001", "1.5", `"7"`} {
			r.gw(t, "PATCH", "/gw/subaccounts/"+r.sub, `{"max_keys":`+bad+`}`, 400)
		}
		r.gw(t, "PATCH", "/gw/subaccounts/"+r.sub, `{"max_keys":102}`, 204)
		if got := r.list(t, r.manager, "/gw/subaccounts")[0]["max_keys"]; got != 102.0 {
			t.Errorf("max_keys reads %v", got)
		}
		r.as(r.customer).gw(t, "POST", "/gw/keys", `{"scopes":[]}`, 200)
		if e := r.as(r.manager).gw(t, "POST", "/gw/keys", bound, 403); e["message"] != full {
			t.Errorf("key 103 of the organization: %v", e)
		}
		r.gw(t, "POST", "/gw/keys", `{"scopes":[]}`, 200)
	})
}

// A new budget counts what was answered before it.
func TestNewBudgetCountsCallsBefore(t *testing.T) {
	t.Parallel()
	onBoth(t, enforced, func(t *testing.T, r *line) {
		for range 10 {
			key, id := r.issue(t, r.manager, "")
			if got := r.call(t, key); got != 200 {
				t.Fatalf("the call: %d", got)
			}
			r.as(r.manager).gw(t, "PUT", "/gw/budgets", fmt.Sprintf(`{"scope":"key","id":%q,"period":"day","limit_usd":0.0001}`, id), 204)
			if got := r.call(t, key); got != 402 {
				t.Errorf("a call after a budget below what was spent: %d, want 402", got)
			}
		}
	})
}
