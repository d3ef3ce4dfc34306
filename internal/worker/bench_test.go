package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/spool"
	"modelgate/internal/store"
)

// discard is a database that takes everything and costs nothing.
type discard struct{}

func (discard) Record(_ context.Context, b store.Batch) (int, error) { return len(b.Rows), nil }
func (discard) SpoolProgress(context.Context, string) (store.Position, bool, error) {
	return store.Position{}, false, nil
}

// usual is a call as most are: of one of some hundred keys of a sub-account,
// to one of a few models, with what a program says of itself.
func usual(n uint64) (modelgate.CallBegin, modelgate.CallEnd) {
	b := modelgate.CallBegin{
		At: time.UnixMicro(int64(1_700_000_000_000_000 + n)).UTC(), ClientID: "0191b3c4-0000-7000-8000-000000000001",
		KeyID:        modelgate.KeyID(fmt.Sprintf("0191b3c4-0000-7000-8000-%012x", n%256)),
		SubAccountID: "0191b3c4-0000-7000-8000-000000000002", Provider: "openai", Model: fmt.Sprintf("gpt-%d", n%7),
		Slug: fmt.Sprintf("openai/gpt-%d", n%7), Author: "openai", Kind: "llm", Region: "us", Door: "/v1/chat/completions",
		Attribution: map[string]string{"user": fmt.Sprintf("user-%d", n%1000), "feature": "search"}, Holds: 0x15,
	}
	return b, modelgate.CallEnd{
		StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: modelgate.Nano(1000 + n%1000), PriceLabel: "catalog", LatencyMS: 812, FirstByteMS: 240,
		Usage: modelgate.Usage{Input: int64(n % 3000), CachedInput: 1024, Output: 233, ServiceTier: "default"},
	}
}

// What the books of a call cost beside the database: its entries, and reading
// them back into a row.
func BenchmarkBooks(b *testing.B) {
	s, err := spool.Open(spool.Options{
		FS: spool.Dir(b.TempDir()), Log: slog.New(slog.DiscardHandler), Fsync: spool.Interval, NewInstance: func() string { return "i" },
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	calls, shipper := spool.NewCalls(s), NewShipper(s, discard{}, slog.New(slog.DiscardHandler), nil)
	const part = 2000 // calls at a time
	var begins [part]modelgate.CallBegin
	var ends [part]modelgate.CallEnd
	for n := range begins {
		begins[n], ends[n] = usual(uint64(n))
	}
	n := uint64(0)
	write := func() {
		for i := range begins {
			n++
			binary.BigEndian.PutUint64(begins[i].ID[8:], n)
			if err := calls.Begin(&begins[i]); err != nil {
				b.Fatal(err)
			}
			if i >= 32 { // as many are under way
				if err := calls.End(begins[i-32].ID, &ends[i-32]); err != nil {
					b.Fatal(err)
				}
			}
		}
		for i := part - 32; i < part; i++ {
			if err := calls.End(begins[i].ID, &ends[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	read := func() {
		if err := shipper.Drain(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := s.Release(shipper.needed()); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%part == 0 {
				write()
				b.StopTimer()
				read()
				b.StartTimer()
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%part == 0 {
				b.StopTimer()
				write()
				b.StartTimer()
				read()
			}
		}
	})
}
