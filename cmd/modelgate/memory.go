package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// unknownMemory is what a machine that does not say is taken to have, in
// bytes.
const unknownMemory = 2 << 30

// bodyMemory is how many bytes of request bodies may be in memory: half of
// what GOMEMLIMIT allows, else half of what the machine or container has.
func bodyMemory(lookup func(string) (string, bool)) int64 {
	if _, set := lookup("GOMEMLIMIT"); set {
		return debug.SetMemoryLimit(-1) / 2
	}
	most := int64(unknownMemory)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "MemTotal:"); ok {
			if kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64); err == nil {
				most = kib << 10
			}
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(file)
		if bytes, parseErr := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && parseErr == nil {
			most = min(most, bytes)
		}
	}
	return most / 2
}
