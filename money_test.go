package modelgate_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"modelgate"
)

var decimalForm = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// exactUnits reads s as an integer of 10^-scale units with rational numbers.
// It fails where s is no decimal number, needs more decimals or does not fit.
func exactUnits(s string, scale int64) (int64, bool) {
	if !decimalForm.MatchString(s) {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, false
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)
	r.Mul(r, new(big.Rat).SetInt(unit))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// beyondReference reports whether the exponent is larger than the reference
// should follow. Only zero has an amount with such a one.
func beyondReference(s string) bool {
	_, exponent, has := strings.Cut(strings.ToLower(s), "e")
	e, err := strconv.Atoi(exponent)
	return has && (err != nil || e > 1000 || e < -1000)
}

func checkUSD(t interface{ Fatalf(string, ...any) }, s string) {
	got, err := modelgate.ParseUSD(s)
	if err != nil && !errors.Is(err, modelgate.ErrAmount) {
		t.Fatalf("ParseUSD(%q): %v is no ErrAmount", s, err)
	}
	if beyondReference(s) {
		if err == nil && got != 0 {
			t.Fatalf("ParseUSD(%q) = %d, want a refusal of its exponent", s, got)
		}
		return
	}
	want, ok := exactUnits(s, 9)
	if ok != (err == nil) || ok && int64(got) != want {
		t.Fatalf("ParseUSD(%q) = %d, %v; exactly it is %d (representable: %v)", s, got, err, want, ok)
	}
}

func TestParseUSD(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]modelgate.Nano{
		"0": 0, "-0": 0, "0.000": 0, "1": modelgate.USD, strings.Repeat("0", 65): 0, "12.5": 12_500_000_000,
		"0.000000001": 1, "-0.000000001": -1, "0.0000000010": 1, "1e-9": 1, "1E-9": 1, "10e-10": 1,
		"2.5e3": 2_500 * modelgate.USD, "2.5e+3": 2_500 * modelgate.USD, "0.1": 100_000_000,
		"9223372036.854775807": math.MaxInt64, "-9223372036.854775808": math.MinInt64,
		// As a float this sum of decimals would be off by a nano-USD.
		"9007199.254740993": 9_007_199_254_740_993,
	} {
		if got, err := modelgate.ParseUSD(s); err != nil || got != want {
			t.Errorf("ParseUSD(%q) = %d, %v, want %d", s, got, err, want)
		}
		checkUSD(t, s)
	}
	for _, s := range []string{
		"", "-", ".", "1.", ".5", "+1", " 1", "1 ", "1,5", "1.2.3", "--1", "0x10", "1_000", "NaN", "Infinity", "1e", "e1", "1e1e1",
		"1e41", "1e-41", "0.0000000001", "1e-10", "9223372036.854775808", "-9223372036.854775809", "1e10", "null", `"1"`, "٣",
		"1" + strings.Repeat("0", 65), "1e99999999999999999999",
	} {
		if got, err := modelgate.ParseUSD(s); !errors.Is(err, modelgate.ErrAmount) {
			t.Errorf("ParseUSD(%q) = %d, %v, want ErrAmount", s, got, err)
		}
	}
}

func TestRoundUSD(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		scale int
		want  modelgate.Nano // -1: an error
	}{
		{"0", 0, 0}, {"0.25", 0, 250_000_000}, {"1e-9", 0, 1}, {"0.0000000005", 0, 0}, {"0.0000000015", 0, 2}, {"0.00000000050001", 0, 1},
		{"1.5e-99999999999", 0, 0}, {"0e999999999999", 0, 0}, {"999999999.999999999", 0, 999_999_999_999_999_999},
		{"10000000000", 10, 1_000_000_000}, {"5", 10, 0}, {"15", 10, 2}, {"1e10", 10, 1_000_000_000},
		{"1e999", 0, -1}, {"1000000000", 0, -1}, {"NaN", 0, -1}, {"", 0, -1}, {"1.", 0, -1},
	} {
		got, err := modelgate.RoundUSD(tt.text, tt.scale)
		if err != nil {
			got = -1
		}
		if got != tt.want {
			t.Errorf("RoundUSD(%q, %d) = %d, %v, want %d", tt.text, tt.scale, got, err, tt.want)
		}
	}
	if got, err := modelgate.RoundUSD("-0.0000000015", 0); got != -2 || err != nil {
		t.Errorf("a negative amount: %d, %v", got, err)
	}
}

func TestMoneyRoundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := modelgate.Nano(rapid.Int64().Draw(t, "nano"))
		back, err := modelgate.ParseUSD(n.String())
		if err != nil || back != n {
			t.Fatalf("ParseUSD(%q) = %d, %v, want %d", n, back, err, n)
		}
		if s := n.String(); strings.Contains(s, ".") && strings.HasSuffix(s, "0") {
			t.Fatalf("%d prints as %q, with a trailing zero", n, s)
		}
		b, err := json.Marshal(n)
		if err != nil || !json.Valid(b) {
			t.Fatalf("Marshal(%d) = %s, %v", n, b, err)
		}
		var decoded modelgate.Nano
		if err := json.Unmarshal(b, &decoded); err != nil || decoded != n {
			t.Fatalf("Unmarshal(%s) = %d, %v, want %d", b, decoded, err, n)
		}
	})
}

func TestMoneyRefusesJSONText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`"1"`, `null`, `true`, `[1]`, `0.0000000001`} {
		n := modelgate.Nano(7)
		if err := json.Unmarshal([]byte(s), &n); err == nil || n != 7 {
			t.Errorf("Unmarshal(%s) = %d, %v, want an error and no change", s, n, err)
		}
	}
}

func TestAddHoldsAtTheEnds(t *testing.T) {
	t.Parallel()
	low, high := big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b))
		if want.Cmp(low) < 0 {
			want = low
		}
		if want.Cmp(high) > 0 {
			want = high
		}
		if got := modelgate.Nano(a).Add(modelgate.Nano(b)); int64(got) != want.Int64() {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
	})
}

// halfEven rounds r to an integer, held at the largest Nano.
func halfEven(r *big.Rat) modelgate.Nano {
	negative := r.Sign() < 0
	abs := new(big.Rat).Abs(r)
	q, rest := new(big.Int).QuoRem(abs.Num(), abs.Denom(), new(big.Int))
	switch rest.Lsh(rest, 1).Cmp(abs.Denom()) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, big.NewInt(int64(q.Bit(0))))
	}
	if !q.IsInt64() {
		q.SetInt64(math.MaxInt64)
	}
	if negative {
		q.Neg(q)
	}
	return modelgate.Nano(q.Int64())
}

func TestBilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cost   modelgate.Nano
		markup string
		want   modelgate.Nano
	}{
		{1_000, "0", 1_000},
		{1_000, "25", 1_250},
		{1, "50", 2}, // 1.5, to even
		{3, "50", 4}, // 4.5, to even
		{5, "50", 8}, // 7.5, to even
		{-1, "50", -2},
		{-3, "50", -4},
		{1, "49.999999", 1},
		{modelgate.USD, "12.5", 1_125_000_000},
		{1, "10000", 101},
		{math.MaxInt64, "0.000001", math.MaxInt64},
		{math.MaxInt64, "10000", math.MaxInt64},
		{0, "10000", 0},
	} {
		m, err := modelgate.ParseMarkup(c.markup)
		if err != nil {
			t.Fatalf("ParseMarkup(%s): %v", c.markup, err)
		}
		if got := c.cost.Billed(m); got != c.want {
			t.Errorf("%d billed with %s %% = %d, want %d", c.cost, c.markup, got, c.want)
		}
	}
}

func TestBilledIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cost := rapid.Int64Min(-math.MaxInt64).Draw(t, "cost")
		markup := rapid.Int64Range(0, 10_000_000_000).Draw(t, "markup")
		want := new(big.Rat).SetInt64(cost)
		want.Mul(want, new(big.Rat).Add(big.NewRat(1, 1), big.NewRat(markup, 100_000_000)))
		if got := modelgate.Nano(cost).Billed(modelgate.Markup(markup)); got != halfEven(want) {
			t.Fatalf("%d billed with %d millionths = %d, want %d", cost, markup, got, halfEven(want))
		}
	})
}

func TestMarkup(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]modelgate.Markup{
		"0": 0, "10000": 10_000_000_000, "12.5": 12_500_000, "0.000001": 1, "1e4": 10_000_000_000,
		"33.3333333333333333333": 33_333_333, "0.0000001": 0, "0.0000005": 0, "0.00000050000000000000000000000000001": 1, "0.0000015": 2,
		"0.0000025": 2, "9999.9999999": 10_000_000_000, "9999.99999949999": 9_999_999_999, "10000.000000000": 10_000_000_000, "-0.0": 0,
		"1e-999999999999999999999": 0, "0e99999999999999999999": 0, "100000000000000e-10": 10_000_000_000, "0.00001e9": 10_000_000_000,
	} {
		var m modelgate.Markup
		if err := json.Unmarshal([]byte(s), &m); err != nil || m != want {
			t.Errorf("Unmarshal(%s) = %d, %v, want %d", s, m, err, want)
		}
		b, err := json.Marshal(want)
		if back, parseErr := modelgate.ParseMarkup(string(b)); err != nil || parseErr != nil || back != want {
			t.Errorf("markup %d prints as %s", want, b)
		}
	}
	for _, s := range []string{"-0.000001", "-1", "10000.000001", "10001", "10000.0000000000000000001", "1e5", "1e99999999999999999999", "-1e-99", "1e", "1.", `"5"`, "", "null", "NaN"} {
		m := modelgate.Markup(7)
		if err := m.UnmarshalJSON([]byte(s)); !errors.Is(err, modelgate.ErrMarkup) || m != 7 {
			t.Errorf("markup %q = %d, %v, want ErrMarkup and no change", s, m, err)
		}
	}
}

func FuzzMoney(f *testing.F) {
	for _, s := range []string{
		"0", "-1.5", "1e-9", "9223372036.854775807", "9223372036.854775808", "0.0000000001", "100e-11", "1E+9", "00012.50", "1.", ".1", "-", "1e99",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkUSD(t, s) })
}

// FuzzMarkup holds what is read against exact arithmetic.
func FuzzMarkup(f *testing.F) {
	for _, s := range []string{"0", "12.5", "0.0000005", "0.0000015", "9999.9999999", "10000.0000001", "1e4", "1E-7", "-0", "00", "1.", "5e-7"} {
		f.Add(s)
	}
	form := regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := modelgate.ParseMarkup(s)
		if !form.MatchString(s) {
			return
		}
		exact, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatal(s)
		}
		if exact.Sign() < 0 || exact.Cmp(big.NewRat(10_000, 1)) > 0 {
			if err == nil {
				t.Errorf("ParseMarkup(%q) = %d, want an error", s, got)
			}
			return
		}
		exact.Mul(exact, big.NewRat(1_000_000, 1))
		low := new(big.Int).Quo(exact.Num(), exact.Denom())
		rest := new(big.Rat).Sub(exact, new(big.Rat).SetInt(low)).Cmp(big.NewRat(1, 2))
		if rest > 0 || rest == 0 && low.Bit(0) == 1 {
			low.Add(low, big.NewInt(1))
		}
		if err != nil || int64(got) != low.Int64() {
			t.Errorf("ParseMarkup(%q) = %d, %v, want %s", s, got, err, low)
		}
	})
}
