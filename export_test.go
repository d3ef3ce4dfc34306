package modelgate

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cost    Nano
		markup  string
		carried Carry
		value   Micro
		carry   Carry
	}{
		{1_000, "0", 0, 1, 0},
		{999, "0", 0, 0, 99_900_000_000},
		{1, "0", 99_900_000_000, 1, 0},
		{1_000, "20", 0, 1, 20_000_000_000},
		{1_000_000, "0.000001", 0, 1000, 1_000_000},
		{0, "50", 7, 0, 7},
		{-5, "50", 7, 0, 7},
		{math.MaxInt64, "10000", 99_999_999_999, 931_559_539_646_303_357, 99_999_999_999 + 80_700_000_000 - 100_000_000_000},
	} {
		m, err := ParseMarkup(c.markup)
		if err != nil {
			t.Fatal(err)
		}
		if c.cost == math.MaxInt64 { // figures of that size are big's
			all := new(big.Int).Mul(big.NewInt(int64(c.cost)), big.NewInt(int64(wholeMarkup+m)))
			q, r := all.Add(all, big.NewInt(int64(c.carried))).DivMod(all, big.NewInt(int64(wholeCarry)), new(big.Int))
			c.value, c.carry = Micro(q.Int64()), Carry(r.Int64())
		}
		if value, carry := c.cost.Bill(m, c.carried); value != c.value || carry != c.carry {
			t.Errorf("%d at %s%% with %d = %d and %d, want %d and %d", c.cost, c.markup, c.carried, value, carry, c.value, c.carry)
		}
	}
}

// Whatever the costs and however the markup changes, what is sent is less than
// a micro-USD below the exact sum.
func TestBillLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		exact, sent, carry := new(big.Int), new(big.Int), Carry(0)
		for range rapid.IntRange(1, 50).Draw(t, "calls") {
			cost := Nano(rapid.Int64Range(0, 1e15).Draw(t, "cost"))
			m := Markup(rapid.Int64Range(0, int64(maxMarkup)).Draw(t, "markup"))
			exact.Add(exact, new(big.Int).Mul(big.NewInt(int64(cost)), big.NewInt(int64(wholeMarkup+m))))
			var value Micro
			value, carry = cost.Bill(m, carry)
			sent.Add(sent, new(big.Int).Mul(big.NewInt(int64(value)), big.NewInt(int64(wholeCarry))))
		}
		if rest := exact.Sub(exact, sent); rest.Cmp(big.NewInt(int64(carry))) != 0 || carry < 0 || uint64(carry) >= wholeCarry {
			t.Fatalf("%v not sent, %d carried", rest, carry)
		}
	})
}

func TestExportPause(t *testing.T) {
	t.Parallel()
	for attempts, want := range map[int]time.Duration{
		0: 5 * time.Second, 1: 5 * time.Second, 2: 10 * time.Second, 8: 640 * time.Second, 9: 15 * time.Minute, 1000: 15 * time.Minute,
	} {
		if got := ExportPause(attempts); got != want {
			t.Errorf("ExportPause(%d) = %v, want %v", attempts, got, want)
		}
	}
}

func TestCheckCustomerID(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"cus_123": true, "A-b_9": true, strings.Repeat("c", 255): true,
		"": false, "cus 1": false, "cus/1": false, "cüs": false, strings.Repeat("c", 256): false,
	} {
		if err := CheckCustomerID(id); (err == nil) != ok || err != nil && KindOf(err) != BadRequest {
			t.Errorf("CheckCustomerID(%q) = %v", id, err)
		}
	}
}
