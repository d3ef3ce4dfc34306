package manage_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"modelgate/internal/evidence"
	"modelgate/internal/gatetest"
)

// slowReader is a client that takes nothing of the answer before it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	begun, goOn chan struct{}
}

func (s *slowReader) Write(b []byte) (int, error) {
	select {
	case <-s.begun:
	default:
		close(s.begun)
	}
	<-s.goOn
	return s.ResponseRecorder.Write(b)
}

// TestOneEvidenceExportAtATime has a client ask for another export while one
// is under way: it waits, and nobody else does.
func TestOneEvidenceExportAtATime(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		key, second, other := g.rootKey(client), g.rootKey(client), g.rootKey(g.client(unchanged))
		first := &slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequestWithContext(g.Context(), http.MethodGet, "/gw/evidence", nil)
			r.Header.Set("Authorization", "Bearer "+key)
			g.handler.ServeHTTP(first, r)
		}()
		<-first.begun
		for _, k := range []string{key, second} {
			refused := g.do(k, "GET /gw/evidence", "").refused(429, "rate_limited", "")
			if refused.header.Get("Retry-After") != "1" {
				g.Errorf("Retry-After: %q, want 1", refused.header.Get("Retry-After"))
			}
		}
		g.do(other, "GET /gw/evidence", "").want(200, "")
		close(first.goOn)
		<-done
		for name, file := range map[string][]byte{
			"the first": first.Body.Bytes(), "the next": []byte(g.do(second, "GET /gw/evidence", "").want(200, "").body + "\n"),
		} {
			report, err := evidence.Verify(bytes.NewReader(file), evidence.Options{VKeys: []string{gatetest.EvidenceKey(g.T, 1).VKey()}})
			if err != nil || report.Class != evidence.OK {
				g.Errorf("%s export: %+v, %v", name, report, err)
			}
		}
	})
}
