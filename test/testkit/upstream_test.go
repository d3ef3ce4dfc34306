package testkit_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

func post(t *testing.T, url, body string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

func TestUpstream(t *testing.T) {
	t.Parallel()
	u := testkit.Upstream(t, simulator.Options{})
	const body = `{"model":"m","messages":[{"role":"user","content":"hi [[mark=a]]"}]}`
	if res, text, err := post(t, u.URL+"/v1/chat/completions", body); err != nil || res.StatusCode != 200 {
		t.Fatalf("answer = %s, %v", text, err)
	}
	if got, err := u.Ledger.Wait(t.Context(), "a", 1); err != nil || got[0].InputTokens != 1 {
		t.Errorf("ledger = %+v, %v, want one input token", got, err)
	}
	u.Close()
	if _, _, err := post(t, u.URL+"/v1/chat/completions", body); err == nil {
		t.Error("a closed upstream answered")
	}
	own := &simulator.Memory{}
	other := testkit.Upstream(t, simulator.Options{Ledger: own})
	post(t, other.URL+"/v1/chat/completions", body)
	if _, err := own.Wait(t.Context(), "a", 1); err != nil || other.Ledger.Len() != 0 {
		t.Errorf("own ledger: %v; the server's has %d records, want 0", err, other.Ledger.Len())
	}
}

const sseRecording = `why this was recorded
-- request --
{"model":"m"}
-- headers --
X-Request-Id: req_1
Content-Type: text/event-stream; charset=utf-8
-- response.sse --
data: {"a":1}

: comment

data: [DONE]

`

const errorRecording = `-- response.json --
{"error":{}}
-- headers --
Status: 429
Retry-After: 3
`

func writeRecordings(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReplay(t *testing.T) {
	t.Parallel()
	dir := writeRecordings(t, map[string]string{"1.txtar": errorRecording, "2.txtar": sseRecording, "notes.md": "not a recording"})
	s := testkit.Replay(t, dir)

	res, body, err := post(t, s.URL+"/v1/x?y=%2F", "one")
	if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After") != "3" || res.Header.Get("Content-Type") != "application/json" || body != "{\"error\":{}}\n" {
		t.Errorf("first answer = %v %q, %v", res, body, err)
	}
	const stream = "data: {\"a\":1}\n\n: comment\n\ndata: [DONE]\n\n"
	for range 2 {
		res, body, err = post(t, s.URL+"/v1/x", "more")
		if err != nil || res.StatusCode != 200 || res.Header.Get("X-Request-Id") != "req_1" || res.Header.Get("Status") != "" || body != stream {
			t.Errorf("later answer = %v %q, %v", res, body, err)
		}
	}
	s.CutAfter(20)
	if _, body, err = post(t, s.URL+"/v1/x", ""); err == nil || body != stream[:20] {
		t.Errorf("cut answer = %q, %v, want 20 bytes and an error", body, err)
	}
	s.CutAfter(-1)
	if _, body, err = post(t, s.URL+"/v1/x", ""); err != nil || body != stream {
		t.Errorf("whole answer = %q, %v", body, err)
	}
	calls := s.Calls()
	if len(calls) != 5 || calls[0].URI != "/v1/x?y=%2F" || string(calls[0].Body) != "one" || calls[0].Method != "POST" {
		t.Errorf("calls = %+v, want five", calls)
	}
	if diff := cmp.Diff("{\"model\":\"m\"}\n", string(s.Recordings[1].Request)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestReplayOneFile(t *testing.T) {
	t.Parallel()
	dir := writeRecordings(t, map[string]string{"a.txtar": errorRecording})
	s := testkit.Replay(t, filepath.Join(dir, "a.txtar"))
	for range 2 {
		if res, _, err := post(t, s.URL, ""); err != nil || res.StatusCode != 429 {
			t.Errorf("answer = %v, %v, want 429", res, err)
		}
	}
}
