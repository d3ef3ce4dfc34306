package httpx_test

import (
	"bytes"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"modelgate"
	"modelgate/internal/httpx"
)

func TestReadBodyBoundIsExact(t *testing.T) {
	t.Parallel()
	const limit = 10 << 20
	whole := bytes.Repeat([]byte("0123456789abcdef"), limit/16+1)
	for _, size := range []int{0, 1, 4 << 10, 4<<10 + 1, 512 << 10, 512<<10 + 1, limit - 1, limit, limit + 1} {
		for _, declared := range []int64{int64(size), -1} {
			r := httptest.NewRequest("POST", "/", bytes.NewReader(whole[:size]))
			r.ContentLength = declared
			got, err := httpx.ReadBody(r, limit, nil)
			if size > limit {
				if err != modelgate.ErrBodyTooLarge {
					t.Errorf("%d bytes, declared %d: %v, want too large", size, declared, err)
				}
				continue
			}
			if err != nil || !bytes.Equal(got, whole[:size]) {
				t.Errorf("%d bytes, declared %d: %d bytes, %v", size, declared, len(got), err)
			}
		}
	}
}

func TestReadBodyOneByteAtATime(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ab", 5000)
	r := httptest.NewRequest("POST", "/", iotest.OneByteReader(strings.NewReader(text)))
	if got, err := httpx.ReadBody(r, 10000, nil); err != nil || string(got) != text {
		t.Errorf("ReadBody = %d bytes, %v", len(got), err)
	}
}

func TestReadBodyRefuses(t *testing.T) {
	t.Parallel()
	cut := httptest.NewRequest("POST", "/", iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := httpx.ReadBody(cut, 10, nil); modelgate.KindOf(err) != modelgate.BadRequest {
		t.Errorf("a body cut short: %v, want bad_request", err)
	}
	for coding, want := range map[string]modelgate.Kind{"gzip": modelgate.BadRequest, "identity, br": modelgate.BadRequest,
		"Identity": "", "": "", "identity,": ""} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("x"))
		r.Header.Set("Content-Encoding", coding)
		if _, err := httpx.ReadBody(r, 10, nil); modelgate.KindOf(err) != want {
			t.Errorf("Content-Encoding %q: %v, want %q", coding, err, want)
		}
	}
}

// It runs alone, because it reads the process's own figures.
func TestReadBodyGivesMemoryForBytesNotForClaims(t *testing.T) {
	r := httptest.NewRequest("POST", "/", iotest.ErrReader(io.ErrUnexpectedEOF))
	r.ContentLength = 10 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := httpx.ReadBody(r, 10<<20, nil)
	runtime.ReadMemStats(&after)
	if spent := after.TotalAlloc - before.TotalAlloc; err == nil || spent > 1<<20 {
		t.Errorf("a claim of 10 MiB without a byte took %d bytes, %v", spent, err)
	}
}
