package httpx_test

import (
	"bytes"
	"io"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"modelgate"
	"modelgate/internal/httpx"
)

// filled is a request whose body is one byte many times over.
func filled(with byte, size int, declared bool) *http.Request {
	r := httptest.NewRequest("POST", "/", io.MultiReader(bytes.NewReader(bytes.Repeat([]byte{with}, size))))
	r.ContentLength = -1
	if declared {
		r.ContentLength = int64(size)
	}
	return r
}

// TestBodiesInUseAreTheirOwn: whatever is read into memory that was handed on,
// a body that was not stays as it is. Run with the race detector.
func TestBodiesInUseAreTheirOwn(t *testing.T) {
	t.Parallel()
	quota := httpx.NewMemoryQuota(1<<30, 0)
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			with, size := byte('a'+i), 1000<<i
			for round := range 20 {
				memory := quota.For("a")
				body, err := httpx.ReadBody(filled(with, size, round%2 == 0), 10<<20, &memory)
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					other := quota.For("a")
					if _, err := httpx.ReadBody(filled(with+1, size, true), 10<<20, &other); err != nil {
						t.Error(err)
						return
					}
					other.Recycle()
					other.Release()
				}
				if len(body) != size || bytes.Count(body, []byte{with}) != size {
					t.Errorf("a body of %d bytes was written to", size)
				}
				if held := cap(body); held < size || held <= 1<<20 && (held < 4<<10 || bits.OnesCount(uint(held)) != 1) {
					t.Errorf("a body of %d bytes has %d", size, held)
				}
				memory.Recycle()
				memory.Recycle() // of nothing
				memory.Release()
				size = (size*5/4+i)%(1<<20+1<<18) + 1
			}
		})
	}
	readers.Wait()
}

// TestQuotaIsChargedForBytesRead, and not for its bytes alone.
func TestQuotaIsChargedForBytesRead(t *testing.T) {
	t.Parallel()
	const free = 64 << 10
	quota := httpx.NewMemoryQuota(2*(256<<10-free), 0)
	whole, none := quota.For("a"), quota.For("a")
	if _, err := httpx.ReadBody(filled('x', 129<<10, true), 1<<20, &whole); err != nil {
		t.Fatal(err)
	}
	if _, err := httpx.ReadBody(filled('x', free, true), 1<<20, &none); modelgate.KindOf(err) != modelgate.RateLimited {
		t.Errorf("beside a body in 256 KiB: %v, want rate_limited", err)
	}
}
