package prove

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
// one after the other, while rows are booked: in the end each chain is one,
// without a gap, and has each call exactly once.
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
		ids := modelgate.NewIDs(time.Now)
		var clients [3]modelgate.ClientID
		for i := range clients {
			clients[i] = modelgate.ClientID(ids.New().String())
		}
		var both [2]*exec.Cmd
		for i := range both {
			both[i] = startSequencer(t, url)
		}
		booked := make(chan struct{})
		var booking sync.WaitGroup
		want := make(map[modelgate.ClientID]map[string]bool)
		booking.Go(func() {
			defer close(booked)
			bookHistory(t, db, clients[:], rows, ids, want)
		})
		killed := killInTurn(t, url, &both, kills, booked)
		booking.Wait()
		for _, c := range both {
			_ = c.Process.Kill()
			_ = c.Wait() // its error is that it was killed
		}
		for _, c := range clients {
			if err := db.ChainAllEvidence(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			checkHistory(t, db, c, want[c])
		}
		t.Logf("%s: %d rows, %d kills", t.Name(), rows, killed)
	})
}

// bookHistory books rows of several clients in batches, as shippers do.
func bookHistory(t *testing.T, db *store.DB, clients []modelgate.ClientID, rows int, ids *modelgate.IDs, want map[modelgate.ClientID]map[string]bool) {
	for _, c := range clients {
		want[c] = make(map[string]bool)
	}
	for done, batch := 0, int64(1); done < rows; batch++ {
		b := store.Batch{Instance: "prove", Progress: store.Position{Segment: batch}}
		for range min(100, rows-done) {
			id, client := ids.New(), clients[done%len(clients)]
			b.Rows = append(b.Rows, modelgate.UsageRow{
				CallBegin: modelgate.CallBegin{ID: id, At: id.Time(), ClientID: client, KeyID: "k", Provider: "p", Model: "m"},
				CallEnd:   modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, Cost: 1000},
			})
			want[client][id.String()] = true
			done++
		}
		if _, err := db.Record(t.Context(), b); err != nil {
			t.Errorf("book: %v", err)
			return
		}
	}
}

// killInTurn kills and starts the sequencers again until it has done so often
// enough and all is booked.
func killInTurn(t *testing.T, url string, both *[2]*exec.Cmd, kills int, booked <-chan struct{}) (n int) {
	for ; ; n++ {
		select {
		case <-booked:
			if n >= kills {
				return n
			}
		default:
		}
		time.Sleep(time.Duration(20+rand.IntN(200)) * time.Millisecond)
		i := n % len(both)
		_ = both[i].Process.Kill()
		_ = both[i].Wait() // its error is that it was killed
		both[i] = startSequencer(t, url)
	}
}

// checkHistory reads a chain as it is exported, and verifies the file.
func checkHistory(t *testing.T, db *store.DB, client modelgate.ClientID, want map[string]bool) {
	t.Helper()
	part, err := db.Evidence(t.Context(), client, store.EvidenceRange{})
	if err != nil {
		t.Fatal(err)
	}
	seen, last := make(map[string]bool), int64(0)
	err = db.EvidenceLines(t.Context(), part, func(l store.EvidenceLine) error {
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
