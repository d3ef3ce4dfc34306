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
	room := httpx.NewMemoryQuota(1<<30, 0)
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			with, size := byte('a'+i), 1000<<i
			for round := range 20 {
				place := room.For("a")
				body, err := httpx.ReadBody(filled(with, size, round%2 == 0), 10<<20, &place)
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					other := room.For("a")
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
				if room := cap(body); room < size || room <= 1<<20 && (room < 4<<10 || bits.OnesCount(uint(room)) != 1) {
					t.Errorf("a body of %d bytes has %d", size, room)
				}
				place.Recycle()
				place.Recycle() // of nothing
				place.Release()
				size = (size*5/4+i)%(1<<20+1<<18) + 1
			}
		})
	}
	readers.Wait()
}

// TestRoomIsForWhatABodyTakes, and not for its bytes alone.
func TestRoomIsForWhatABodyTakes(t *testing.T) {
	t.Parallel()
	const free = 64 << 10
	room := httpx.NewMemoryQuota(2*(256<<10-free), 0)
	whole, none := room.For("a"), room.For("a")
	if _, err := httpx.ReadBody(filled('x', 129<<10, true), 1<<20, &whole); err != nil {
		t.Fatal(err)
	}
	if _, err := httpx.ReadBody(filled('x', free, true), 1<<20, &none); modelgate.KindOf(err) != modelgate.RateLimited {
		t.Errorf("beside a body in 256 KiB: %v, want rate_limited", err)
	}
}
