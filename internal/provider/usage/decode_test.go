package usage

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"modelgate"
)

func compress(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch encoding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "bare":
		w, err = flate.NewWriter(&b, 9)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCompressedReply(t *testing.T) {
	t.Parallel()
	body := []byte(fmt.Sprintf(smallReply, strings.Repeat("text ", 5000)))
	for _, encoding := range []string{"gzip", "br", "zstd", "deflate", "bare"} {
		packed := compress(t, encoding, body)
		for name, next := range map[string]func(int) int{"whole": whole, "bytes": oneByte, "random": shuffle(3)} {
			reply := Reply{Status: 200, ContentType: "application/json", ContentEncoding: strings.Replace(encoding, "bare", "Deflate", 1)}
			u, seen, terminal := feed(Chat.Meter(reply), packed, next)
			want := modelgate.Usage{Input: 56, CachedInput: 64, Output: 16, Reasoning: 24, ServiceTier: "default"}
			if u != want || seen != All || terminal != 1 {
				t.Errorf("%s, %s: %+v, %d, end %d times, want %+v", encoding, name, u, seen, terminal, want)
			}
		}
		u, seen, _ := feed(Chat.Meter(Reply{Status: 200, ContentType: "application/json", ContentEncoding: encoding}), packed[:len(packed)/2], whole)
		if u != (modelgate.Usage{}) || seen != Nothing {
			t.Errorf("%s cut in half: %+v, %d", encoding, u, seen)
		}
	}
}

// Events of a compressed stream are read when they arrive, not at its end.
func TestCompressedStream(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	m := Chat.Meter(Reply{Status: 200, ContentType: "text/event-stream", ContentEncoding: "gzip"})
	defer m.Close()
	for i, event := range []string{"data: {\"choices\":[{}]}\n\n", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n", "data: [DONE]\n\n"} {
		if _, err := w.Write([]byte(event)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if terminal := m.Feed(b.Bytes()); terminal != (i == 2) {
			t.Errorf("event %d: end %v", i, terminal)
		}
		b.Reset()
	}
	if u, seen := m.Result(); u.Input != 3 || seen != All {
		t.Errorf("Result() = %+v, %d", u, seen)
	}
}

func TestDecompressionBomb(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, `{"usage":{"prompt_tokens":1},"a":"`)
	zeros := make([]byte, 1<<20)
	for range 100 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(w, `"}`)
	w.Close()
	m := Chat.Meter(Reply{Status: 200, ContentType: "application/json", ContentEncoding: "gzip"})
	u, seen, terminal := feed(m, b.Bytes(), shuffle(1))
	if u != (modelgate.Usage{Input: 1}) || seen != Some || terminal != 0 {
		t.Errorf("a bomb gave %+v, %d, end %d times", u, seen, terminal)
	}
	if d := m.(*decoder); d.decoded > ratioSlack+maxRatio*d.consumed+64<<10 || !d.lost {
		t.Errorf("decoded %d bytes of %d", d.decoded, d.consumed)
	}
}

func TestUnknownEncodings(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"gzip", "br", "zstd", "deflate", "gzip, br", "lzma"} {
		m := Chat.Meter(Reply{Status: 200, ContentType: "application/json", ContentEncoding: encoding})
		if u, seen, terminal := feed(m, []byte(`{"usage":{"prompt_tokens":1}} padding padding`), oneByte); u != (modelgate.Usage{}) || seen != Nothing || terminal != 0 {
			t.Errorf("%s: plain bytes read as %+v, %d", encoding, u, seen)
		}
	}
}

// A decoder that is closed before its end leaves no goroutine behind.
func TestDecoderClose(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"gzip", "br", "zstd", "deflate"} {
		m := Chat.Meter(Reply{Status: 200, ContentEncoding: encoding})
		m.Feed([]byte{0x1f})
		m.Close()
		m.Close()
		if m.Feed([]byte{0x8b}) {
			t.Errorf("%s: a closed meter saw an end", encoding)
		}
		if _, ok := m.(*decoder).resume(); ok {
			t.Errorf("%s: the coroutine still runs", encoding)
		}
	}
}
