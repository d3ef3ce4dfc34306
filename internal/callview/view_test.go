package callview

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"modelgate"
)

// The path of a call to the provider proxy names the provider, which an end
// customer is not told.
func TestCustomersSeeNoProviderInPaths(t *testing.T) {
	t.Parallel()
	row := &modelgate.UsageRow{CallBegin: modelgate.CallBegin{Provider: "secret-route", Door: "/secret-route/v1/chat/completions"}}
	if got := (&Viewer{Customer: true}).Own(row).Door; got != "/v1/chat/completions" {
		t.Errorf("a customer is shown %s", got)
	}
	if got := (&Viewer{}).Own(row).Door; got != row.Door {
		t.Errorf("the organization is shown %s", got)
	}
}

// What a reply said that it cost is the reseller's affair: its own keys are shown it
// where it is what the call costs, and no end customer ever.
func TestStatedCostIsForTheOrganization(t *testing.T) {
	t.Parallel()
	stated := 42 * modelgate.USD / 1000
	row := modelgate.UsageRow{CallEnd: modelgate.CallEnd{Cost: stated, StatedCost: &stated, PriceLabel: modelgate.StatedLabel}}
	priced := row
	priced.PriceLabel = "1"
	for _, c := range []struct {
		by    Viewer
		row   *modelgate.UsageRow
		shown bool
	}{{Viewer{}, &row, true}, {Viewer{All: true}, &row, true}, {Viewer{Customer: true}, &row, false}, {Viewer{}, &priced, false}} {
		for name, v := range map[string]any{"usage": c.by.Row(c.row), "calls": c.by.Own(c.row).Call} {
			text, err := json.Marshal(v)
			if shown := strings.Contains(string(text), `"stated_cost_usd":0.042`); err != nil || shown != c.shown || !c.shown && strings.Contains(string(text), "stated") {
				t.Errorf("%s, %+v: %s, %v", name, c.by, text, err)
			}
		}
	}
}

// What a wallet has paid is shown at the markup of the call's admission, on either
// side, and in files.
func TestDebitsAreShown(t *testing.T) {
	t.Parallel()
	markup := modelgate.Markup(50_000_000) // 50 %
	row := modelgate.UsageRow{
		CallBegin: modelgate.CallBegin{SubAccountID: "s", WalletMarkup: &markup}, CallEnd: modelgate.CallEnd{Cost: modelgate.USD / 100},
	}
	exported := row
	exported.WalletMarkup = nil
	accounts := map[modelgate.SubAccountID]modelgate.SubAccount{"s": {Markup: 10_000_000}} // 10 % by now
	for _, by := range []Viewer{{Accounts: accounts}, {Customer: true, Markup: 10_000_000, Accounts: accounts}} {
		for want, r := range map[string]*modelgate.UsageRow{"0.015": &row, "": &exported} {
			v := by.Any(r)
			text, err := json.Marshal(v)
			if err != nil || strings.Contains(string(text), `"debited_usd":0.015`) != (want != "") || want == "" && strings.Contains(string(text), "debited_usd") {
				t.Errorf("%s, %v", text, err)
			}
			cells := map[string]string{}
			for _, c := range by.Columns() {
				cells[c.Name] = c.Text(&v)
			}
			if got, there := cells["debited_usd"]; !there || got != want || cells["billed_usd"] != "0.011" {
				t.Errorf("customer %v: a file has debited_usd %q, billed_usd %q, want %q, 0.011", by.Customer, got, cells["billed_usd"], want)
			}
		}
	}
}
