package selfservice_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"modelgate/internal/evidence"
	"modelgate/internal/selfservice"
	chain "modelgate/internal/store/evidence"
	"modelgate/test/testkit"
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
			report, err := evidence.Verify(bytes.NewReader(file), evidence.Options{VKeys: []string{testkit.EvidenceKey(g.T, 1).VKey()}})
			if err != nil || report.Class != evidence.OK {
				g.Errorf("%s export: %+v, %v", name, report, err)
			}
		}
	})
}

// TestEvidenceAfterALostKey prunes a chain with one key, which is lost then:
// a verifier who was told the next one finds nothing wrong with what stays.
func TestEvidenceAfterALostKey(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		reader := g.rootKey(client)
		lost, next := testkit.EvidenceKey(g.T, 1), testkit.EvidenceKey(g.T, 2)
		if err := g.db.ChainAllEvidence(g.Context(), client); err != nil {
			g.Fatal(err)
		}
		pruning := chain.Pruning{
			Before: time.Now().Add(time.Hour), Chunks: 100, Audit: g.operator("evidence.prune"),
			Sign: func(h evidence.Head) (string, error) { return lost.Anchor(h, time.Now()) },
		}
		if _, err := g.db.PruneEvidence(g.Context(), client, pruning); err != nil {
			g.Fatal(err)
		}
		verified := func(who string, vkey string) {
			g.Helper()
			file := g.do(reader, "GET /gw/evidence", "").want(200, "").body + "\n"
			r, err := evidence.Verify(bytes.NewReader([]byte(file)), evidence.Options{VKeys: []string{vkey}})
			if err != nil || r.Class != evidence.OK || r.From < 2 {
				g.Errorf("signed with %s: %+v, %v", who, r, err)
			}
		}
		verified("the first key", lost.VKey())
		g.remake(func(o *selfservice.Options) {
			o.Signer = func(context.Context) (*evidence.Signer, error) { return &evidence.Signer{Key: next}, nil }
		})
		verified("the next key", next.VKey())
	})
}

// TestEvidenceThatCannotBeRead: where the chain was damaged the answer is an
// error, and the next export does not have to wait.
func TestEvidenceThatCannotBeRead(t *testing.T) {
	each(t, func(g *gate) {
		client := g.client(unchanged)
		reader := g.rootKey(client)
		g.do(reader, "GET /gw/evidence", "").want(200, "")
		if _, err := g.raw.Exec("DELETE FROM evidence_batch WHERE id = (SELECT batch_id FROM evidence_chunk WHERE client_id = $1 AND first_seq = 2)", string(client)); err != nil {
			g.Fatal(err)
		}
		for range 2 {
			g.do(reader, "GET /gw/evidence", "").refused(500, "internal_error", "")
		}
		g.do(reader, "GET /gw/evidence?to_seq=1", "").want(200, "")
	})
}
