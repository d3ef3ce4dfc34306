package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"modelgate/internal/evidence"
	"modelgate/test/testkit"
)

// TestHistorySpeed has the real binary verify a long file from a pipe, with
// what little memory it needs for any.
func TestHistorySpeed(t *testing.T) {
	t.Parallel()
	lines := size(50_000, 1_000_000)
	short := testkit.NewEvidence(t).Usage(100)
	chain := evidence.Chain{Head: evidence.Head{ClientID: short.Org}}
	for n := range lines {
		chain.Append(short.Records[n%100])
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), testkit.Binary(t), "evidence", "verify", "--json", "-")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out := bufio.NewWriterSize(in, 1<<20)
	part := evidence.Part{Org: short.Org, From: 1, To: int64(lines), Latest: int64(lines), Last: chain.Hash, At: short.At}
	header, err := short.Header(part)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = out.Write(header) // a reader that has ended says so by its code
	var line []byte
	c := evidence.Chain{Head: evidence.Head{ClientID: short.Org}}
	for n := range lines {
		prev, record := c.Hash, short.Records[n%100]
		c.Append(record)
		line = evidence.AppendRecord(line[:0], c.Seq, prev, c.Hash, record)
		_, _ = out.Write(line)
	}
	head, err := short.Head(part, header)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = out.Write(head)
	_ = out.Flush()
	peak := peakMemory(command.Process.Pid)
	_ = in.Close()
	if err := command.Wait(); err != nil {
		t.Fatalf("verify: %v", err)
	}
	mib := peak >> 20
	busy := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	t.Logf("%d lines in %v, %.0f lines a second of the verifier's own time, %d MiB at most", lines, time.Since(began).Round(time.Millisecond), float64(lines)/busy.Seconds(), mib)
	if peak == 0 {
		t.Log("NOT CHECKED: what memory verify took; this system has no /proc")
	}
	if mib > 64*raceFactor {
		t.Errorf("verify took %d MiB, want at most 64", mib)
	}
	if rate := float64(lines) / busy.Seconds(); *full && raceFactor == 1 && rate < 100_000 {
		t.Errorf("verify took %.0f lines a second, want 100,000", rate)
	}
}

// peakMemory is the most memory that a process has had so far, in bytes, or 0
// where there is no /proc. What the system reports of a process that has ended
// counts the memory of the one that started it, this test's.
func peakMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}
