package spool

import (
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
)

func benchSpool(b *testing.B, fsync Fsync) *Spool {
	b.Helper()
	s, err := Open(Options{
		FS: Dir(b.TempDir()), Log: slog.New(slog.DiscardHandler), Fsync: fsync, Bound: 1 << 40,
		NewInstance: func() string { return "i" }, Fatal: func(err error) { b.Error(err) },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// A call is a BEGIN of 300 bytes and an END of 200; released as it goes.
func BenchmarkCall(b *testing.B) {
	for _, fsync := range []Fsync{Always, Interval} {
		b.Run(string(fsync), func(b *testing.B) {
			s := benchSpool(b, fsync)
			var ids atomic.Int64
			begin, end := make([]byte, 300), make([]byte, 200)
			b.ReportAllocs()
			b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				var id [16]byte
				for pb.Next() {
					n := ids.Add(1)
					id[0], id[1], id[2], id[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
					if err := s.Begin(&id, begin); err != nil {
						b.Error(err)
						return
					}
					if err := s.End(&id, end); err != nil {
						b.Error(err)
						return
					}
					if n%100_000 == 0 {
						if err := s.Release(s.Tail()); err != nil {
							b.Error(err)
							return
						}
					}
				}
			})
		})
	}
}

// One caller with nobody beside it: the whole cost of an entry, the system
// call included. The END of an interval spool waits for nothing.
func BenchmarkEntry(b *testing.B) {
	for _, kind := range []Type{Begin, End} {
		b.Run(map[Type]string{Begin: "begin", End: "end"}[kind], func(b *testing.B) {
			s := benchSpool(b, Interval)
			id, payload := entryID(1), make([]byte, 300)
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				s.mu.Lock()
				s.open = 1
				s.mu.Unlock()
				var err error
				if kind == Begin {
					err = s.Begin(id, payload)
				} else {
					err = s.End(id, payload)
				}
				if err == nil && n%100_000 == 0 {
					err = s.Release(s.Tail())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// One caller that waits for each END.
func BenchmarkCallAlone(b *testing.B) {
	s := benchSpool(b, Always)
	id, payload := entryID(1), make([]byte, 300)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Begin(id, payload); err != nil {
			b.Fatal(err)
		}
		if err := s.End(id, payload[:200]); err != nil {
			b.Fatal(err)
		}
	}
}

// Opening reads what earlier lives left: here 16 segments of 64 MiB, full.
func BenchmarkOpenBacklog(b *testing.B) {
	d := Dir(b.TempDir())
	open := func() *Spool {
		s, err := Open(Options{FS: d, Log: slog.New(slog.DiscardHandler), Fsync: Interval, NewInstance: func() string { return "i" }})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
	s := open()
	payload := make([]byte, 400)
	for s.Tail().Segment < 16 {
		for i := range 1000 {
			if err := s.Begin(entryID(i), payload); err != nil {
				b.Fatal(err)
			}
			if err := s.End(entryID(i), payload); err != nil {
				b.Fatal(err)
			}
		}
	}
	s.Close()
	b.ReportAllocs()
	for b.Loop() {
		s = open()
		b.StopTimer()
		s.Close()
		b.StartTimer()
	}
}
