package spool

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// seeds is how many histories or rounds a test tries: MODELGATE_SEEDS, or the
// given number without it.
func seeds(t *testing.T, n uint64) uint64 {
	t.Helper()
	v := os.Getenv("MODELGATE_SEEDS")
	if v == "" {
		return n
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPowerCuts(t *testing.T) {
	t.Parallel()
	histories, acked := seeds(t, 100), 0
	for seed := range histories {
		h := newHistory(t, seed)
		for life := range 4 {
			if life%2 == 0 {
				h.live()
			} else {
				h.liveAtOnce()
			}
			h.disk.powerCut()
			h.recoverInVain()
			h.check()
		}
		acked += len(h.acked)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if acked < int(histories)*10 {
		t.Errorf("only %d ends were acknowledged in %d histories: the test tries too little", acked, histories)
	}
}

// written names an entry that was given to a spool.
type written struct {
	t  Type
	id [16]byte
}

// history is a sequence of lives of one spool on one disk, with a shipper
// that books what it reads.
type history struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	disk    *disk
	ids     int
	tried   map[written][]byte
	acked   map[[16]byte]bool
	booked  map[written]bool
	openPos map[[16]byte]Position // begun, as the shipper knows it
	at      Position
}

func newHistory(t *testing.T, seed uint64) *history {
	return &history{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 2)), disk: newDisk(seed),
		tried: map[written][]byte{}, acked: map[[16]byte]bool{}, booked: map[written]bool{}, openPos: map[[16]byte]Position{},
	}
}

func (h *history) open() *Spool {
	s, err := Open(Options{
		FS: h.disk, Log: slog.New(slog.DiscardHandler), Segment: 64 << 10, Bound: 1 << 20,
		NewInstance: func() string { return "i" }, Fatal: func(error) {},
	})
	if errors.Is(err, errPower) {
		return nil
	}
	if err != nil {
		h.t.Fatalf("seed %d: Open: %v", h.seed, err)
	}
	return s
}

func (h *history) payload() []byte {
	b := make([]byte, h.rng.IntN(900))
	for i := range b {
		b[i] = byte(h.rng.Uint32())
	}
	return b
}

// live runs a life until the power goes.
func (h *history) live() {
	h.disk.mu.Lock()
	h.disk.left = h.rng.IntN(400)
	h.disk.mu.Unlock()
	s := h.open()
	if s == nil {
		return
	}
	defer s.Close()
	r := s.Reader(h.at)
	var open [][16]byte
	for {
		h.disk.mu.Lock()
		off := h.disk.off
		h.disk.mu.Unlock()
		if off {
			return
		}
		switch n := h.rng.IntN(10); {
		case n < 4:
			id := *entryID(h.ids)
			h.ids++
			p := h.payload()
			h.tried[written{Begin, id}] = p
			if s.Begin(&id, p) == nil {
				open = append(open, id)
			}
		case n < 5 && len(open) > 0:
			id := open[h.rng.IntN(len(open))]
			if _, twice := h.tried[written{Mark, id}]; !twice {
				p := h.payload()
				h.tried[written{Mark, id}] = p
				s.Mark(&id, p)
			}
		case n < 9 && len(open) > 0:
			k := min(1+h.rng.IntN(4), len(open))
			h.end(s, open[:k])
			open = open[k:]
		default:
			h.ship(s, r)
		}
	}
}

// liveAtOnce runs a life in which goroutines write until the power goes, with
// nothing between them.
func (h *history) liveAtOnce() {
	h.disk.mu.Lock()
	h.disk.left = h.rng.IntN(400)
	h.disk.mu.Unlock()
	s := h.open()
	if s == nil {
		return
	}
	defer s.Close()
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for range 4 {
		mine := &history{t: h.t, rng: rand.New(rand.NewPCG(h.rng.Uint64(), 0)), tried: map[written][]byte{}, acked: map[[16]byte]bool{}}
		first := h.ids
		h.ids += 1000
		wg.Go(func() {
			mine.callUntilOff(s, first)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(h.tried, mine.tried)
			maps.Copy(h.acked, mine.acked)
		})
	}
	wg.Wait()
}

func (h *history) callUntilOff(s *Spool, first int) {
	for n := first; n < first+1000; n++ {
		id := *entryID(n)
		begin, mark, end := h.payload(), h.payload(), h.payload()
		h.tried[written{Begin, id}] = begin
		if s.Begin(&id, begin) != nil {
			return
		}
		if h.rng.IntN(3) == 0 {
			h.tried[written{Mark, id}] = mark
			s.Mark(&id, mark)
		}
		h.tried[written{End, id}] = end
		if s.End(&id, end) != nil {
			return
		}
		h.acked[id] = true
	}
}

// recoverInVain has the power go during recovery, a few times.
func (h *history) recoverInVain() {
	for range h.rng.IntN(4) {
		h.disk.mu.Lock()
		h.disk.left = h.rng.IntN(8)
		h.disk.mu.Unlock()
		if s := h.open(); s != nil {
			s.Close()
		}
		h.disk.powerCut()
	}
}

// end ends calls at the same time.
func (h *history) end(s *Spool, ids [][16]byte) {
	var wg sync.WaitGroup
	ok := make([]bool, len(ids))
	for i, id := range ids {
		p := h.payload()
		h.tried[written{End, id}] = p
		wg.Go(func() { ok[i] = s.End(&id, p) == nil })
	}
	wg.Wait()
	for i, id := range ids {
		h.acked[id] = h.acked[id] || ok[i]
	}
}

func (h *history) ship(s *Spool, r *Reader) {
	for {
		entries, err := r.Poll(1 + h.rng.IntN(20))
		if err != nil || len(entries) == 0 {
			break
		}
		h.book(entries)
	}
	h.at = r.At()
	for id, p := range h.openPos {
		if h.booked[written{End, id}] || p.Segment < s.Start().Segment {
			delete(h.openPos, id)
			continue
		}
		if p.Before(h.at) {
			h.at = p
		}
	}
	if err := s.Release(h.at); err != nil && !errors.Is(err, errPower) {
		h.t.Errorf("seed %d: Release: %v", h.seed, err)
	}
}

// book takes entries as durable in a database, after comparing them with what
// was written.
func (h *history) book(entries []Entry) {
	for _, e := range entries {
		w := written{e.Type, e.ID}
		p, known := h.tried[w]
		if !known || !bytes.Equal(p, e.Payload) {
			h.t.Errorf("seed %d: entry %d %s at %v was never written", h.seed, e.Type, e.ID, e.At)
		}
		if e.Type == Begin {
			h.openPos[e.ID] = e.At
		}
		h.booked[w] = true
	}
}

// check opens the spool after a power cut: every acknowledged call must be
// booked or be there, whole and in order, and nothing else may.
func (h *history) check() {
	s := h.open()
	defer s.Close()
	there := map[written]int{}
	r := s.Reader(Position{})
	for n := 0; ; {
		entries, err := r.Poll(50)
		if err != nil {
			h.t.Fatalf("seed %d: Poll: %v", h.seed, err)
		}
		if len(entries) == 0 {
			break
		}
		for _, e := range entries {
			w := written{e.Type, e.ID}
			if _, twice := there[w]; twice {
				h.t.Errorf("seed %d: entry %d %s is there twice", h.seed, e.Type, e.ID)
			}
			if p, known := h.tried[w]; !known || !bytes.Equal(p, e.Payload) {
				h.t.Errorf("seed %d: %s", h.seed, fmt.Sprintf("entry %d %s at %v was never written", e.Type, e.ID, e.At))
			}
			n++
			there[w] = n
		}
	}
	for id, ok := range h.acked {
		if !ok || h.booked[written{End, id}] {
			continue
		}
		b, e := there[written{Begin, id}], there[written{End, id}]
		if e == 0 || (b == 0 || b > e) && !h.booked[written{Begin, id}] {
			h.t.Errorf("seed %d: acknowledged call %s: BEGIN is entry %d, END entry %d", h.seed, id, b, e)
		}
	}
}
