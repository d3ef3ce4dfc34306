package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

func TestAttribution(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf("k%d=v", i))
		}
		return strings.Join(pairs, ",")
	}
	tests := map[string]struct {
		lines []string
		want  map[string]string // nil: refused
	}{
		"pairs":            {[]string{"team=search,env=prod"}, map[string]string{"team": "search", "env": "prod"}},
		"white space":      {[]string{" team=search , env=prod,"}, map[string]string{"team": "search", "env": "prod"}},
		"percent-encoded":  {[]string{"team=na%C3%AFve%2C%20two"}, map[string]string{"team": "naïve, two"}},
		"two lines":        {[]string{"a=1", "b=2"}, map[string]string{"a": "1", "b": "2"}},
		"empty value":      {[]string{"a="}, map[string]string{"a": ""}},
		"plus stays":       {[]string{"a=1+1"}, map[string]string{"a": "1+1"}},
		"json":             {[]string{`{"team":"search","Env.X":"p,q"}`}, map[string]string{"team": "search", "Env.X": "p,q"}},
		"built-in name":    {[]string{"provider=x"}, map[string]string{"provider": "x"}},
		"sixteen":          {[]string{many(16)}, nil},
		"longest":          {[]string{strings.Repeat("k", 64) + "=" + strings.Repeat("v", 256)}, map[string]string{strings.Repeat("k", 64): strings.Repeat("v", 256)}},
		"seventeen":        {[]string{many(17)}, nil},
		"key too long":     {[]string{strings.Repeat("k", 65) + "=v"}, nil},
		"value too long":   {[]string{"k=" + strings.Repeat("v", 257)}, nil},
		"no value":         {[]string{"team"}, nil},
		"empty key":        {[]string{"=v"}, nil},
		"bad key":          {[]string{"te am=x"}, nil},
		"bad escape":       {[]string{"a=%zz"}, nil},
		"not UTF-8":        {[]string{"a=%ff"}, nil},
		"twice":            {[]string{"a=1,a=2"}, nil},
		"twice over lines": {[]string{"a=1", "a=2"}, nil},
		"json number":      {[]string{`{"a":1}`}, nil},
		"json null":        {[]string{`{"a":null}`}, nil},
		"json duplicate":   {[]string{`{"a":"1","a":"2"}`}, nil},
		"json nested":      {[]string{`{"a":{}}`}, nil},
		"json and pairs":   {[]string{`{"a":"1"}`, "b=2"}, nil},
		"key_id":           {[]string{"key_id=x"}, nil},
		"sub_account_id":   {[]string{`{"sub_account_id":"x"}`}, nil},
	}
	tests["sixteen"] = struct {
		lines []string
		want  map[string]string
	}{tests["sixteen"].lines, func() map[string]string {
		m := map[string]string{}
		for i := range 16 {
			m[fmt.Sprintf("k%d", i)] = "v"
		}
		return m
	}()}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := attribution(http.Header{AttributionHeader: tt.lines})
			if tt.want == nil {
				if modelgate.KindOf(err) != modelgate.BadRequest {
					t.Fatalf("attribution(%q) = %v, %v, want bad_request", tt.lines, got, err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Fatalf("attribution(%q): %v\n%s", tt.lines, err, diff)
			}
		})
	}
	if got, err := attribution(http.Header{}); got != nil || err != nil {
		t.Errorf("no header: %v, %v", got, err)
	}
}
