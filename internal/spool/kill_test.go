package spool

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// killDir names the directory in the environment of a child that writes until
// it is killed.
const killDir = "SPOOL_KILL_DIR"

func TestKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	t.Parallel()
	for _, fsync := range []Fsync{Always, Interval} {
		t.Run(string(fsync), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			acked := map[[16]byte]bool{}
			for round := range 10 {
				killAfter(t, dir, fsync, round, 300+round*200, acked)
			}
			s := openDir(t, dir, nil)
			defer s.Close()
			checkAcked(t, readAll(t, s), acked)
			if n := s.Stats().Quarantined; n != 0 {
				t.Errorf("%d places quarantined after a death that leaves no damage", n)
			}
		})
	}
}

// killAfter runs a child and kills it once it has acknowledged some calls.
func killAfter(t *testing.T, dir string, fsync Fsync, round, calls int, acked map[[16]byte]bool) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
	child.Env = append(os.Environ(), killDir+"="+dir, "SPOOL_KILL_FSYNC="+string(fsync), "SPOOL_KILL_ROUND="+strconv.Itoa(round))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == calls {
			if err := child.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		// What the pipe still holds was acknowledged too; a line that the kill
		// cut short is not one.
		if text, ok := strings.CutPrefix(lines.Text(), "acked "); ok && len(text) == 16 {
			acked[[16]byte([]byte(text))] = true
		}
	}
	_ = child.Wait() // killed
	if len(acked) < calls {
		t.Fatalf("round %d: the child acknowledged %d calls only", round, len(acked))
	}
}

func writeUntilKilled(t *testing.T, dir string) {
	round, err := strconv.Atoi(os.Getenv("SPOOL_KILL_ROUND"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{
		FS: Dir(dir), Log: slog.New(slog.DiscardHandler), Segment: 1 << 20,
		Fsync: Fsync(os.Getenv("SPOOL_KILL_FSYNC")), NewInstance: func() string { return "i" },
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				id := entryID(round*100_000_000 + w*1_000_000 + i)
				if s.Begin(id, killPayload(id, 300)) != nil || s.End(id, killPayload(id, 200)) != nil {
					return
				}
				if _, err := fmt.Printf("acked %s\n", id[:]); err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

func killPayload(id *[16]byte, n int) []byte {
	b := make([]byte, n)
	x := binary.LittleEndian.Uint64(id[8:])
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
	return b
}

// checkAcked wants the entries of every acknowledged call, and all entries to
// be what a child wrote.
func checkAcked(t *testing.T, entries []Entry, acked map[[16]byte]bool) {
	t.Helper()
	begun, ended := map[[16]byte]bool{}, map[[16]byte]bool{}
	for _, e := range entries {
		size := 300
		if e.Type == End {
			size = 200
		}
		if string(e.Payload) != string(killPayload(&e.ID, size)) {
			t.Fatalf("entry %d of call %s has another payload", e.Type, e.ID)
		}
		switch {
		case e.Type == Begin && !begun[e.ID]:
			begun[e.ID] = true
		case e.Type == End && begun[e.ID] && !ended[e.ID]:
			ended[e.ID] = true
		default:
			t.Fatalf("entry of type %d of call %s is out of order", e.Type, e.ID)
		}
	}
	for id := range acked {
		if !ended[id] {
			t.Errorf("acknowledged call %s is not there", id)
		}
	}
}
