package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profile drives the first gateway with every scenario in turn and writes a
// CPU profile of it.
func profile(o *options, targets []*target) error {
	var t *target
	for _, candidate := range targets {
		if candidate.gateway && t == nil {
			t = candidate
		}
	}
	var chosen []scenario
	for _, sc := range scenarios() {
		if o.only.MatchString(sc.Name) {
			chosen = append(chosen, sc)
		}
	}
	if t == nil || len(chosen) == 0 {
		return fmt.Errorf("nothing to profile: no gateway or no scenario is chosen")
	}
	if err := awaitOK(t.admin, "/metrics", 10*time.Second); err != nil {
		return err
	}
	seconds := int(o.slice.Seconds())*len(chosen) + 1
	done := make(chan error, 1)
	go func() { done <- record(t, seconds, o.profile, o.binary) }()
	for i := range chosen {
		if _, err := drive(t, &chosen[i], o.slice, chosen[i].Rate); err != nil {
			return err
		}
	}
	return <-done
}

// record writes a profile of some seconds to a file.
func record(t *target, seconds int, file, binary string) error {
	resp, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", t.admin, seconds))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", resp.Status)
	}
	zipped, err := gzip.NewReader(resp.Body)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(zipped)
	if err != nil {
		return err
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return err
	}
	// A profile names the file of the program, which would tell where somebody
	// keeps their work. Lengths stand in front of names, so this one keeps its.
	raw = bytes.ReplaceAll(raw, []byte(binary), []byte(strings.Repeat(".", len(binary))))
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
