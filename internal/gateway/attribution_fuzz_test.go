package gateway

import (
	"net/http"
	"testing"
	"unicode/utf8"

	"modelgate"
)

// Whatever a client sends, what is kept of it fits into a row.
func FuzzAttribution(f *testing.F) {
	for _, seed := range []string{"team=search,env=prod", `{"team":"search"}`, "a=%2C", "a=1,a=2", `{"a":"1","a":"2"}`, "a=%ff", "key_id=x", `{"a":"\u0000"}`, " , ,=", `{"a":1}`} {
		f.Add(seed, "b=2")
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		pairs, err := attribution(http.Header{AttributionHeader: {first, second}})
		if err != nil {
			if modelgate.KindOf(err) != modelgate.BadRequest {
				t.Fatalf("error %v, want bad_request", err)
			}
			return
		}
		if len(pairs) > maxPairs {
			t.Fatalf("%d pairs", len(pairs))
		}
		for k, v := range pairs {
			if !modelgate.IsAttributionKey(k) || modelgate.SetByGateway(k) || len(v) > modelgate.MaxAttributionValue || !utf8.ValidString(v) {
				t.Fatalf("pair %q=%q", k, v)
			}
		}
	})
}
