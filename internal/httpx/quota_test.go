package httpx_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

// body reads a body of a size in a memory.
func body(size int, p *httpx.Reservation) error {
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(strings.Repeat("x", size))))
	r.ContentLength = int64(size)
	_, err := httpx.ReadBody(r, 10<<20, p)
	return err
}

func TestQuotaHasAShareForEach(t *testing.T) {
	t.Parallel()
	quota := httpx.NewMemoryQuota(8<<20, 0)
	a, b, c, d := quota.For("a"), quota.For("b"), quota.For("b"), quota.For("c")
	if err := body(3<<20, &a); err != nil {
		t.Errorf("a body within the quota: %v", err)
	}
	again := quota.For("a")
	if err := body(3<<20, &again); modelgate.KindOf(err) != modelgate.RateLimited {
		t.Errorf("past an owner's share: %v, want rate_limited", err)
	}
	if err := body(60<<10, &again); err != nil {
		t.Errorf("a small body past the share: %v", err)
	}
	again.Release()
	if err := body(3<<20, &b); err != nil {
		t.Errorf("another owner: %v", err)
	}
	if err := body(3<<20, &d); modelgate.KindOf(err) != modelgate.Unavailable {
		t.Errorf("past the quota: %v, want unavailable", err)
	}
	for range 2 {
		a.Release()
		d.Release()
	}
	if err := body(3<<20, &d); err != nil {
		t.Errorf("once a memory is left: %v", err)
	}
	if err := body(60<<10, &c); err != nil {
		t.Errorf("a small body in a full quota: %v", err)
	}
	if err := body(9<<20, nil); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

// TestQuotaIsGivenBack ends empty whatever happens in between.
func TestQuotaIsGivenBack(t *testing.T) {
	t.Parallel()
	quota := httpx.NewMemoryQuota(20<<20, 0)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 20 {
				p := quota.For(string(rune('a' + i%3)))
				_ = body((n*i+1)<<14, &p) // some are refused
				p.Release()
			}
		})
	}
	all.Wait()
	for _, owner := range []string{"a", "b"} {
		p := quota.For(owner)
		if err := body(9<<20, &p); err != nil {
			t.Errorf("%s afterwards: %v", owner, err)
		}
	}
}

// deadlines is a connection that notes them.
type deadlines struct {
	*httptest.ResponseRecorder
	write, read []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = append(d.write, t); return nil }
func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = append(d.read, t); return nil }

// TestPatienceHasAnEnd bounds the writing of an answer and the reading of a
// body, and lets the connection be afterwards.
func TestPatienceHasAnEnd(t *testing.T) {
	t.Parallel()
	serve := func(proto int, length int64) *deadlines {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		handler := httpx.Wrap(httpx.Options{IDs: modelgate.NewIDs(time.Now), MaxBody: 1000}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			for range 1000 {
				_, _ = w.Write([]byte("x"))
			}
		}))
		r := httptest.NewRequest("POST", "/", strings.NewReader("x"))
		r.ProtoMajor, r.ContentLength = proto, length
		handler.ServeHTTP(d, r)
		return d
	}
	now := time.Now()
	d := serve(1, 1)
	if len(d.write) != 1 || d.write[0].Before(now.Add(30*time.Second)) || d.write[0].After(now.Add(2*time.Minute)) {
		t.Errorf("write deadlines %v", d.write)
	}
	if len(d.read) != 2 || d.read[0].After(now.Add(20*time.Second)) || !d.read[1].IsZero() {
		t.Errorf("read deadlines %v", d.read)
	}
	if d := serve(1, 0); len(d.read) != 0 {
		t.Errorf("read deadlines without a body: %v", d.read)
	}
	if d := serve(2, 1); len(d.write) != 1 || len(d.read) != 2 { // see TestStreamsAreTaken
		t.Errorf("deadlines of a stream: %v, %v", d.write, d.read)
	}
}

// TestSmallBodiesHaveABound: past what the beginnings of all bodies may take
// together they are counted for their owner.
func TestSmallBodiesHaveABound(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	quota := httpx.NewMemoryQuota(most, 0)
	var a []httpx.Reservation
	refused := 0
	for i := range 64 {
		a = append(a, quota.For("a"))
		if err := body(60<<10, &a[i]); err != nil {
			refused++
		}
	}
	if held := (64 - refused) * 64 << 10; held > most {
		t.Errorf("one owner's small bodies hold %d bytes, want at most %d", held, most)
	}
	b := quota.For("b")
	if err := body(60<<10, &b); err != nil {
		t.Errorf("another owner's small body: %v", err)
	}
	for i := range a {
		a[i].Release()
	}
	c := quota.For("a")
	if err := body(400<<10, &c); err != nil {
		t.Errorf("once they are gone: %v", err)
	}
}

// TestQuotaForTheLargestBody, kept twice, where half of the quota is less.
func TestQuotaForTheLargestBody(t *testing.T) {
	t.Parallel()
	quota := httpx.NewMemoryQuota(8<<20, 3<<20)
	p := quota.For("a")
	if err := p.Reserve(6 << 20); err != nil {
		t.Error(err)
	}
}
