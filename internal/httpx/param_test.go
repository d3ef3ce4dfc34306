package httpx_test

import (
	"math/big"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/httpx"
)

func TestParams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query string
		want  int
		bad   bool
	}{
		{"", 100, false},
		{"limit=1", 1, false},
		{"limit=1000", 1000, false},
		{"other=5", 100, false},
		{"limit=%31", 1, false},
		{"limit=0", 0, true},
		{"limit=1001", 0, true},
		{"limit=-1", 0, true},
		{"limit=", 0, true},
		{"limit=abc", 0, true},
		{"limit=1.0", 0, true},
		{"limit=%2B1", 0, true},
		{"limit=1_0", 0, true},
		{"limit=99999999999999999999", 0, true},
		{"limit=1&limit=1", 0, true},
		{"limit=%00", 0, true},
		{"limit=%ff", 0, true},
		{"limit=%zz", 0, true},
		{"limit=1;x=2", 0, true},
	} {
		p := httpx.ParseParams(c.query)
		n, err := p.Int("limit", 1, 1000, 100), p.Err()
		if c.bad != (modelgate.KindOf(err) == modelgate.BadRequest) || !c.bad && n != c.want {
			t.Errorf("%q = %d, %v, want %d, bad %t", c.query, n, err, c.want, c.bad)
		}
	}
}

func TestParamsAsSent(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"a=100%": "100%", "a=%zz%41": "%zzA", "a=%4": "%4", "a=1;b=2": "1;b=2", "%61=x+y": "x y", "b=1&a=%C3%A9": "é", "a": "", "a=b=c": "b=c", "a=%+1": "% 1",
	} {
		p := httpx.ParseParams(query)
		if got, given := p.Text("a"); got != want || !given || p.Err() != nil {
			t.Errorf("%s: a = %q, %t, %v, want %q", query, got, given, p.Err(), want)
		}
	}
	p := httpx.ParseParams("x=1&limit=5&y&x=2&&=3")
	if n := p.Int("limit", 1, 9, 0); n != 5 || p.Err() != nil {
		t.Error(n, p.Err())
	}
	if diff := cmp.Diff([]string{"x", "y", ""}, p.Unknown()); diff != "" {
		t.Error(diff)
	}
	if err := p.ErrUnknownParam("limits"); err.Error() != `unknown parameter "limits"; did you mean "limit"?` {
		t.Error(err)
	}
	if got := httpx.ParseParams("a=").Filter("a"); got == "" {
		t.Errorf("an empty filter is %q", got)
	}
	if got := httpx.ParseParams("b=").Filter("a"); got != "" {
		t.Errorf("no filter is %q", got)
	}
	p = httpx.ParseParams("a=1&a=2&limit=x")
	p.Text("a")
	p.Int("limit", 1, 9, 0)
	if err := p.Err(); err == nil || err.Error() != "a must be given once" {
		t.Errorf("the first error is %v", err)
	}
	if got := httpx.OneOf(httpx.ParseParams("a=y"), "a", "z", "x", "y"); got != "y" {
		t.Errorf("a = %q", got)
	}
	for query, want := range map[string]string{"": "", "a=x": "", "a=": "a must be x, y or z", "a=X": "a must be x, y or z"} {
		p := httpx.ParseParams(query)
		httpx.OneOf(p, "a", "x", "x", "y", "z")
		if err := p.Err(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
}

func FuzzParams(f *testing.F) {
	for _, s := range []string{"a=1&b=%41", "a=100%", "%", "%4", "a;b=c", "a=b=c&&=", "+=%2B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p := httpx.ParseParams(query)
		want, err := url.ParseQuery(query)
		if err != nil {
			return // with what is no escape or with a semicolon
		}
		if got := len(p.Unknown()); got != len(want) {
			t.Errorf("%q: %d names, want %d", query, got, len(want))
		}
		for name, values := range want {
			if got, given := p.Text(name); given && got != values[0] {
				t.Errorf("%q: %s = %q, want %q", query, name, got, values[0])
			}
		}
	})
}

func TestSince(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "7d": 7 * day, "1.5d": 36 * time.Hour, "3650d": httpx.MaxSince, "24h": day, "90m": 90 * time.Minute,
		"1h30m": 90 * time.Minute, "87600h": httpx.MaxSince, "1ns": 1,
		// Refused: 0 stands for it.
		"": 0, "d": 0, "30": 0, "0d": 0, "0s": 0, "-1d": 0, "-1h": 0, "3650.1d": 0, "3651d": 0, "87601h": 0, "9999999999d": 0,
		"99999999999999999999d": 0, "1e9d": 0, "1h1d": 0, "1 d": 0, "٣d": 0, "1w": 0, "abc": 0, ".d": 0, "1..5d": 0, "+1d": 0,
		"1e309h": 0, "NaNh": 0, "infd": 0, "0x10d": 0, "1_0d": 0,
	} {
		got, err := httpx.ParseSince(text)
		if got != want || (want == 0) != (modelgate.KindOf(err) == modelgate.BadRequest) {
			t.Errorf("Since(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
}

var (
	sinceForm  = regexp.MustCompile(`^(?:\+?(?:([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\x{b5}s|\x{3bc}s|ms|s|m|h))+|([0-9]+\.?[0-9]*|\.[0-9]+)d)$`)
	sinceParts = regexp.MustCompile(`([0-9.]+)([^0-9.+]+)`)
)

// sinceOracle reads a window exactly, in rational numbers; nil is refused.
func sinceOracle(text string) *big.Rat {
	units := map[string]int64{"ns": 1, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86400e9}
	if !sinceForm.MatchString(text) {
		return nil
	}
	sum := new(big.Rat)
	for _, part := range sinceParts.FindAllStringSubmatch(text, -1) {
		number, ok := new(big.Rat).SetString(strings.TrimSuffix(part[1], "."))
		if !ok {
			return nil
		}
		sum.Add(sum, number.Mul(number, new(big.Rat).SetInt64(units[part[2]])))
	}
	return sum
}

func FuzzSince(f *testing.F) {
	for _, s := range []string{"30d", "24h", "90m", "9999999999d", "-1h", "1e309h", "\u00b5s", "1.5d", "1h30m", "+1h", ".5d", "5.d", "3650d", "1ns", "0.1ns", "2540400h10m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := httpx.ParseSince(text)
		if err != nil && modelgate.KindOf(err) != modelgate.BadRequest {
			t.Errorf("Since(%q): %v, want bad_request", text, err)
		}
		if err == nil && (d <= 0 || d > httpx.MaxSince) {
			t.Errorf("Since(%q) = %v, out of range", text, d)
		}
		exact := sinceOracle(text)
		if exact == nil {
			if err == nil {
				t.Errorf("Since(%q) = %v, which is no duration", text, d)
			}
			return
		}
		// What is finer than a nanosecond may be cut off in each part.
		slack := big.NewRat(24*int64(len(text)), 1)
		low, high := new(big.Rat).Sub(exact, slack), new(big.Rat).Add(exact, slack)
		switch got := new(big.Rat).SetInt64(int64(d)); {
		case err == nil && (got.Cmp(low) < 0 || got.Cmp(high) > 0):
			t.Errorf("Since(%q) = %v, want %s ns", text, d, exact.FloatString(1))
		case err != nil && low.Sign() > 0 && high.Cmp(new(big.Rat).SetInt64(int64(httpx.MaxSince))) < 0:
			t.Errorf("Since(%q) = %v, want %s ns", text, err, exact.FloatString(1))
		}
	})
}
