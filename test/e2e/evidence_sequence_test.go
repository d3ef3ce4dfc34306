package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/store/evidence"
)

// sequenceURL names the database to a process that TestHistorySequencers
// starts.
const sequenceURL = "MODELGATE_PROVE_SEQUENCE"

// TestHistorySequencerProcess is the process that is killed: it takes records
// into chains, without a lease, until it dies.
func TestHistorySequencerProcess(t *testing.T) {
	url := os.Getenv(sequenceURL)
	if url == "" {
		t.Skip("started by TestHistorySequencers")
	}
	db, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, more, err := db.ChainEvidence(t.Context(), ""); err != nil || !more {
			time.Sleep(time.Millisecond)
		}
	}
}

func startSequencer(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHistorySequencerProcess$")
	c.Env = append(os.Environ(), sequenceURL+"="+url)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHistorySequencers has two sequencers race for the same chains, and kills
// one after the other in the middle of it, while rows are booked: in the end
// each chain is one, without a gap, and has each call exactly once.
func TestHistorySequencers(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, url string) {
		rows, kills := size(6_000, 200_000), size(6, 100)
		if url == "" {
			url = "sqlite:" + t.TempDir() + "/modelgate.db"
		}
		db, err := store.Open(t.Context(), store.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		h := chainHistory{T: t, db: db, ids: modelgate.NewIDs(time.Now), want: make(map[modelgate.ClientID]map[string]bool)}
		for i := range h.clients {
			h.clients[i] = modelgate.ClientID(h.ids.New().String())
			h.want[h.clients[i]] = make(map[string]bool)
		}
		for i := range h.both {
			h.both[i] = startSequencer(t, url)
		}
		for n := range kills {
			h.kill(n, url, rows*(n+1)/kills)
		}
		for _, c := range h.both {
			_ = c.Process.Kill()
			_ = c.Wait() // its error is that it was killed
		}
		last := h.chained()
		for _, c := range h.clients {
			if err := db.ChainAllEvidence(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			checkHistory(t, db, c, h.want[c])
		}
		t.Logf("%s: %d rows, %d kills; %d records were left to chain after the last", t.Name(), rows, kills, h.booked-int(last))
	})
}

// chainHistory is rows of some clients that two processes put into chains.
type chainHistory struct {
	*testing.T
	db      *store.DB
	ids     *modelgate.IDs
	clients [3]modelgate.ClientID
	both    [2]*exec.Cmd
	want    map[modelgate.ClientID]map[string]bool // calls by their client
	booked  int
	batches int64
}

// kill books up to so many rows, and ends a sequencer while they are chained
// and puts another in its place. It waits for the first of them to be chained:
// so at every kill there is one at work, however slow the machine is.
func (h *chainHistory) kill(n int, url string, rows int) {
	h.Helper()
	before := h.chained()
	var booking sync.WaitGroup
	booking.Go(func() { h.book(rows) })
	for h.chained() == before {
		if h.Failed() || h.Context().Err() != nil {
			h.FailNow()
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(rand.N(50 * time.Millisecond)) // any moment of what it does
	i := n % len(h.both)
	_ = h.both[i].Process.Kill()
	_ = h.both[i].Wait() // its error is that it was killed
	booking.Wait()
	h.both[i] = startSequencer(h.T, url)
}

// chained is how many records are in chains.
func (h *chainHistory) chained() (records int64) {
	h.Helper()
	for _, c := range h.clients {
		part, err := h.db.Evidence(h.Context(), c, evidence.Range{})
		if err != nil {
			h.Fatal(err)
		}
		records += part.Head.Seq
	}
	return records
}

// book books rows of several clients in batches, as shippers do.
func (h *chainHistory) book(rows int) {
	for h.booked < rows {
		h.batches++
		b := store.Batch{Instance: "prove", Progress: store.Position{Segment: h.batches}}
		for range min(100, rows-h.booked) {
			id, client := h.ids.New(), h.clients[h.booked%len(h.clients)]
			b.Rows = append(b.Rows, modelgate.UsageRow{
				CallBegin: modelgate.CallBegin{ID: id, At: id.Time(), ClientID: client, KeyID: "k", Provider: "p", Model: "m"},
				CallEnd:   modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: 1000},
			})
			h.want[client][id.String()] = true
			h.booked++
		}
		if _, err := h.db.Record(h.Context(), b); err != nil {
			h.Errorf("book: %v", err)
			return
		}
	}
}

// checkHistory reads a chain as it is exported, and verifies the file.
func checkHistory(t *testing.T, db *store.DB, client modelgate.ClientID, want map[string]bool) {
	t.Helper()
	part, err := db.Evidence(t.Context(), client, evidence.Range{})
	if err != nil {
		t.Fatal(err)
	}
	seen, last := make(map[string]bool), int64(0)
	err = db.EvidenceLines(t.Context(), part, func(l evidence.Line) error {
		id := gjson.GetBytes(l.Record, "id").String()
		if l.Seq != last+1 || seen[id] || !want[id] {
			return fmt.Errorf("record %d after %d is call %s (again: %v, booked: %v)", l.Seq, last, id, seen[id], want[id])
		}
		last, seen[id] = l.Seq, true
		return nil
	})
	if err != nil || len(seen) != len(want) {
		t.Errorf("client %s: %d of %d calls, %v", client, len(seen), len(want), err)
	}
	if found, err := db.Reconcile(t.Context(), client); err != nil || bytes.Contains(fmt.Append(nil, found), []byte("evidence")) {
		t.Errorf("reconcile: %v, %v", found, err)
	}
}
