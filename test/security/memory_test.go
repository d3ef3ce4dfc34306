package security

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// memory is what a process has in memory, in bytes.
func memory(t testing.TB, pid int) int64 {
	t.Helper()
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil {
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
				n, _ := strconv.ParseInt(fields[1], 10, 64)
				return n << 10
			}
		}
	}
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	n, convErr := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || convErr != nil {
		t.Fatalf("memory of the gateway: %v, %v", err, convErr)
	}
	return n << 10
}
