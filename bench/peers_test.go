package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Every model's own answer passes, and one that lacks anything of it does not.
func TestAnswersAreChecked(t *testing.T) {
	t.Parallel()
	said := newAnswers()
	type call struct {
		format api
		model  string
	}
	wires := map[call][]byte{{apiChat, modelPlain}: said.whole, {apiChat, modelBurst}: bytes.Join(said.stream, nil)}
	for a := range apiPaths {
		wires[call{api(a), modelShort}], wires[call{api(a), modelShortStream}] = said.short[a], bytes.Join(said.shortStream[a], nil)
	}
	for model, wire := range wires {
		want := (&scenario{API: model.format, Model: model.model}).saying()
		read := func(wire []byte) error {
			var answer bytes.Buffer
			return readAnswer(bufio.NewReader(bytes.NewReader(wire)), &answer, want)
		}
		if err := read(wire); err != nil {
			t.Errorf("%v: its own answer counts as a failure: %v", model, err)
		}
		for _, text := range want {
			other := bytes.ReplaceAll(wire, text, bytes.Repeat([]byte("x"), len(text)))
			if read(other) == nil {
				t.Errorf("%v: an answer without %s counts", model, text)
			}
		}
		if read(bytes.Replace(wire, []byte("200 OK"), []byte("429 No"), 1)) == nil {
			t.Errorf("%v: an answer with status 429 counts", model)
		}
	}
}

// Gateways write the header in their own way and may move the model to the end.
func TestProviderFindsTheModel(t *testing.T) {
	t.Parallel()
	late := fmt.Sprintf(`{"messages":[{"role":"user","content":%q}],"model":%q}`, strings.Repeat("word ", 100), modelBurst)
	for name, request := range map[string]string{
		"usual header":      fmt.Sprintf("POST /v1/messages HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", len(late), late),
		"lower case header": fmt.Sprintf("POST /v1/messages HTTP/1.1\r\ncontent-length:%d\r\n\r\n%s", len(late), late),
		"chunks":            fmt.Sprintf("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(late), late),
	} {
		r := bufio.NewReader(strings.NewReader(request + "next"))
		if format, model, err := readRequest(r); format != apiMessages || model != modelBurst || err != nil {
			t.Errorf("%s: API %d, model %q, %v; want %d, %s", name, format, model, err, apiMessages, modelBurst)
		}
		if rest, err := r.Peek(4); string(rest) != "next" {
			t.Errorf("%s: after the request come %q, %v", name, rest, err)
		}
	}
}

// A product that fails is in every table by name, with the reason, and without
// figures; one that could not be had is named too.
func TestFailedPeersAreShown(t *testing.T) {
	t.Parallel()
	turns := func(cpu float64, failures int) []turn {
		return []turn{{CPU: cpu, Calls: 100, Rate: 10, P50: time.Millisecond, P99: time.Millisecond, Failures: failures, FirstFail: errors.New("answer 500")}}
	}
	peer := &way{set: "keys and logs", of: program{version: "1.2.3"}}
	r := results{
		Lines: []line{
			{Scenario: "door", Target: nameDirect, Turns: turns(1, 0)},
			{Scenario: "door", Target: nameProxy, Turns: turns(10, 0)},
			{Scenario: "door", Target: nameInterval, Own: true, Turns: turns(5, 0)},
			{Scenario: "door", Target: "Silent", Peer: peer, Failed: errors.New("dial tcp 127.0.0.1:99: refused")},
			{Scenario: "door", Target: "Erring", Peer: peer, Turns: turns(1, 50)},
			{Scenario: "door", Target: "Sound", Peer: peer, Turns: turns(40, 1)},
		},
		Missing: []absent{{"Elsewhere 2.0", "403 of https://registry.example/x, see /root/log/file"}, {"Nowhere 1.0", ""}, {"Neverland 3.0", ""}},
	}
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "performance.md"), filepath.Join(dir, "guides", "comparison.md")}
	for _, file := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("before\n"+peersStart+"\nold\n"+peersEnd+"\nafter\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time replaces what the first wrote
		if err := r.writePeers(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"before\n", "\nafter\n", "- Silent failed in \"door\": `dial tcp … : refused`", "- Erring failed in \"door\": `50 of 150 calls failed, one with: answer 500`",
			"- Elsewhere 2.0 could not be measured on this machine: `403 of … see … file`", "could not obtain them: Nowhere 1.0, Neverland 3.0\n", "| 4.00",
		} {
			if strings.Count(string(got), want) != 1 {
				t.Errorf("%s has not exactly one %q:\n%s", file, want, got)
			}
		}
		if strings.Contains(string(got), "old") || strings.Count(string(got), "| failed |") != 2 {
			t.Errorf("%s still says what it said, or does not show two failures:\n%s", file, got)
		}
	}
	if chart, err := os.ReadFile(filepath.Join(dir, "peers.svg")); err != nil || strings.Count(string(chart), ">failed<") != 2 {
		t.Errorf("peers.svg does not show two failures: %v\n%s", err, chart)
	}
}
