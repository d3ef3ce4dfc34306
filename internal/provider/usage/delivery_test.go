package usage

import (
	"encoding/json"
	"strings"
	"testing"
)

func delivered(text string, next func(left int) int) int64 {
	var d delivery
	for b := []byte(text); len(b) > 0; {
		n := next(len(b))
		d.feed(append([]byte(nil), b[:n]...))
		b = b[n:]
	}
	return d.bytes()
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`{"id":"abc","choices":[{"delta":{"content":"four"}}]}`:                          4,
		`{"content":"n\u00e9\n\ud83d\ude00"}`:                                            8,
		`{"content" : "a\"b", "text":[{"text":"cd"}]}`:                                   5,
		`{"reasoning":"same","reasoning_content":"same!"}`:                               5,
		`{"reasoning_details":[{"text":"]}\"no"}],"content":"yes"}`:                      3,
		`{"type":"x.delta","delta":"four"}`:                                              4,
		`{"delta":"four"}{"text":"four","part":{"text":"four"},"item":{"text":"no"}}`:    4,
		`{"functionCall":{"args":{"a": ["}", 1]}}}`:                                      11,
		`{"function":{"arguments":"{\"a\":1}"}}`:                                         7,
		`{"response":{"output":[{"text":"said before"}]}}`:                               0,
		`{"name":"content","value":"no","content":null,"x":["content","text",":\"c\""]}`: 0,
		`{"content":"unfin`:     5,
		`{"content":"unfin\u00`: 5,
		`{"input":{"cmd":"ls`:   9,
		``:                      0,
	} {
		for name, next := range map[string]func(int) int{"whole": whole, "bytes": oneByte, "random": random} {
			if got := delivered(text, next); got != want {
				t.Errorf("%s, %s: %d bytes, want %d", text, name, got, want)
			}
		}
	}
}

// What was delivered grows with what has come, and does not depend on how it
// is cut. A text of a known member counts as long as it is.
func FuzzDelivery(f *testing.F) {
	f.Add("{\"a\":[\"", "caf\u00e9 \"quoted\"\n", byte(3))
	f.Add(`{"input":{"a":"`, "\U0001f600", byte(1))
	f.Fuzz(func(t *testing.T, before, text string, size byte) {
		text = strings.ToValidUTF8(text, "?")
		quoted, err := json.Marshal(map[string]string{"content": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := delivered(string(quoted), whole); got != int64(len(text)) {
			t.Fatalf("%s: %d bytes, want %d", quoted, got, len(text))
		}
		all, last := before+string(quoted), int64(0)
		want := delivered(all, whole)
		if got := delivered(all, func(left int) int { return min(left, int(size)+1) }); got != want {
			t.Fatalf("%q in pieces of %d: %d bytes, want %d", all, int(size)+1, got, want)
		}
		for n := range min(len(all), 200) {
			got := delivered(all[:n], whole)
			if got < last {
				t.Fatalf("%q: %d bytes after %d", all[:n], got, last)
			}
			last = got
		}
	})
}

// What is known of the shape of the last value never changes what is counted.
func FuzzDeliveryShapes(f *testing.F) {
	f.Add(`{"a":"b","delta":{"content":"`, `one","x":1}`, `tw\u00f6","x":1}`, `}`)
	f.Add(`{"content":"x","text":"`, `"}`, `a"`, `"y":{"input":{"b":"c"}}`)
	f.Add(`"text":"`, `a\`, `b\"","url":"x"`, `{"reasoning":"c"`)
	f.Fuzz(func(t *testing.T, head, first, second, third string) {
		for _, d := range []delivery{{fresh: true}, {fresh: true, any: true}, {fresh: true, repeats: "text"}, {fresh: true, again: true}} {
			shaped, plain := d, d
			for i, value := range []string{head + first, head + second, head + third, second, head + first, third, head + second} {
				shaped.value([]byte(value))
				plain.feed([]byte(value))
				shaped.restart()
				plain.restart()
				if shaped.bytes() != plain.bytes() || shaped.images != plain.images || shaped.channels != plain.channels {
					t.Fatalf("value %d, %q: %d bytes of %v, want %d of %v", i, value, shaped.bytes(), shaped.channels, plain.bytes(), plain.channels)
				}
			}
		}
	})
}
