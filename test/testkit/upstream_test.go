package testkit_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

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
