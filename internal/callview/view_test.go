package callview

import (
	"testing"

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
