package usage

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gosse "github.com/tmaxmax/go-sse"

	"modelgate"
)

type sent struct{ Name, Data string }

// split pushes a stream in pieces of at most n bytes.
func split(stream []byte, n int) []sent {
	var list []sent
	var e events
	for len(stream) > 0 {
		size := min(n, len(stream))
		piece := bytes.Clone(stream[:size])
		e.push(piece, func(name, data []byte) { list = append(list, sent{string(name), string(data)}) })
		clear(piece)
		stream = stream[size:]
	}
	return list
}

func TestEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stream string
		want         []sent
	}{
		{"LF", "data: a\n\ndata: b\n\n", []sent{{"", "a"}, {"", "b"}}},
		{"CRLF", "event: x\r\ndata: a\r\n\r\n", []sent{{"x", "a"}}},
		{"CR", "data: a\r\rdata:b\r\r", []sent{{"", "a"}, {"", "b"}}},
		{"many lines", "data: a\ndata\ndata:  c\n\n", []sent{{"", "a\n\n c"}}},
		{"comment and id", ": hello\nid: 3\nretry: 9\ndata: a\n\n", []sent{{"", "a"}}},
		{"no data", "event: x\n\ndata: a\n\n", []sent{{"", "a"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []sent{{"", "a"}}},
		{"unfinished", "data: a\n\ndata: b\n", []sent{{"", "a"}}},
		{"unknown field", "datas: x\ndata: a\n\n", []sent{{"", "a"}}},
	}
	for _, test := range tests {
		for n := 1; n <= len(test.stream); n++ {
			if diff := cmp.Diff(test.want, split([]byte(test.stream), n)); diff != "" {
				t.Errorf("%s in pieces of %d (-want +got)\n%s", test.name, n, diff)
			}
		}
	}
}

func TestEventTooLong(t *testing.T) {
	t.Parallel()
	m := Chat.Meter(Reply{Status: 200, ContentType: "text/event-stream"})
	m.Feed([]byte("data: "))
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 9 {
		m.Feed(piece)
	}
	m.Feed([]byte("\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n"))
	if terminal := m.Feed([]byte("data: [DONE]\n\n")); !terminal {
		t.Error("end after an overlong line not seen")
	}
	u, seen := m.Result()
	if want := (modelgate.Usage{Input: 3}); u != want || seen != Some {
		t.Errorf("Result() = %+v, %d, want %+v, Some", u, seen, want)
	}
	if kept := cap(m.(*stream).events.line); kept > maxEvent {
		t.Errorf("kept %d bytes of an overlong line", kept)
	}
}

func TestTerminalChunk(t *testing.T) {
	t.Parallel()
	m := Messages.Meter(Reply{Status: 200, ContentType: "text/event-stream"})
	chunks := []string{
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"message_stop\"}}\n\n",
		"event: message_sto", "p\ndata: {\"type\":\"message_stop\"}", "\n", "\n", "\n",
	}
	want := []bool{false, false, false, false, true, false}
	for i, chunk := range chunks {
		if got := m.Feed([]byte(chunk)); got != want[i] {
			t.Errorf("Feed(%q) = %v, want %v", chunk, got, want[i])
		}
	}
}

func filterAll(stream string, n int) string {
	var f ChunkFilter
	var out strings.Builder
	for len(stream) > 0 {
		size := min(n, len(stream))
		out.Write(f.Filter([]byte(stream[:size])))
		stream = stream[size:]
	}
	out.Write(f.Rest())
	return out.String()
}

func TestUsageChunkFilter(t *testing.T) {
	t.Parallel()
	const usage = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":3}}`
	tests := []struct{ name, stream, want string }{
		{"taken out", "data: {\"choices\":[{}]}\n\n" + usage + "\n\ndata: [DONE]\n\n", "data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n"},
		{"CRLF", usage + "\r\n\r\ndata: [DONE]\r\n\r\n", "data: [DONE]\r\n\r\n"},
		{"only the first", usage + "\n\n" + usage + "\n\n", usage + "\n\n"},
		{"no usage", "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n", "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n"},
		{"null", "data: {\"choices\":[{}],\"usage\":null}\n\n", "data: {\"choices\":[{}]}\n\n"},
		{"null before others", "data: {\"id\":\"c\" , \"usage\" : null , \"choices\":[{}]}\r\n\r\n", "data: {\"id\":\"c\" , \"choices\":[{}]}\r\n\r\n"},
		{"null first", "data:{ \"usage\":null , \"choices\":[]}\n\n", "data:{ \"choices\":[]}\n\n"},
		{"null alone", "data: {\"usage\":null}\n\n", "data: {}\n\n"},
		{"null in each chunk", strings.Repeat("data: {\"choices\":[{}],\"usage\":null}\n\n", 3) + usage + "\n\n", strings.Repeat("data: {\"choices\":[{}]}\n\n", 3)},
		{"null over lines", "data: {\"choices\":[]\ndata: ,\"usage\":null}\n\n", "data: {\"choices\":[]\ndata: ,\"usage\":null}\n\n"},
		{"null further in", "data: {\"choices\":[{\"usage\":null}],\"x\":\"\\\"usage\\\":null\"}\n\n", "data: {\"choices\":[{\"usage\":null}],\"x\":\"\\\"usage\\\":null\"}\n\n"},
		{"null in a comment", ": {\"usage\":null}\ndata: {\"choices\":[{}],\"usage\":null,\"x\":1}\n\n", ": {\"usage\":null}\ndata: {\"choices\":[{}],\"x\":1}\n\n"},
		{"with choices", "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":3}}\n\n", "data: {\"choices\":[{}],\"usage\":{\"prompt_tokens\":3}}\n\n"},
		{"no choices member", "data: {\"usage\":{\"prompt_tokens\":3}}\n\n", "data: {\"usage\":{\"prompt_tokens\":3}}\n\n"},
		{"comment kept", ": busy\n" + usage + "\n\n", ": busy\n\n"},
		{"comment kept, CRLF", ": busy\r\n" + usage + "\r\n\r\ndata: x\r\n\r\n", ": busy\r\n\r\ndata: x\r\n\r\n"},
		{"after a byte order mark", "\ufeff" + usage + "\n\n" + usage + "\n\n", "\ufeff" + usage + "\n\n"},
		{"unfinished", usage, usage},
		{"spaces", "data: {\"choices\" : [ ] , \"usage\" : { } }\n\nx\n\n", "x\n\n"},
		{"not events", "{\"error\":1}", "{\"error\":1}"},
		{"blank lines", "\n\n\r\n\r\n: x\n\n", "\n\n\r\n\r\n: x\n\n"},
		{"too large to be it", "data: {\"choices\":[],\"usage\":{},\"x\":\"" + strings.Repeat("y", maxUsageFrame) + "\"}\n\n", "data: {\"choices\":[],\"usage\":{},\"x\":\"" + strings.Repeat("y", maxUsageFrame) + "\"}\n\n"},
		{"large", "data: " + strings.Repeat("y", 3*maxUsageFrame) + "\n\n" + usage + "\n\n", "data: " + strings.Repeat("y", 3*maxUsageFrame) + "\n\n"},
	}
	for _, test := range tests {
		for _, n := range []int{1, 2, 3, 7, 50, 1 << 20} {
			got := filterAll(test.stream, n)
			if got != test.want {
				t.Errorf("%s in pieces of %d: %.200q, want %.200q", test.name, n, got, test.want)
			}
		}
	}
}

func TestUsageChunkFilterLatency(t *testing.T) {
	t.Parallel()
	var f ChunkFilter
	for _, event := range []string{"data: {\"choices\":[{}]}\n\n", ": ping\n\n", "data: x\r\n\r\n"} {
		if got := string(f.Filter([]byte(event))); got != event {
			t.Errorf("a complete event waits: Filter(%q) = %q", event, got)
		}
	}
	if got := f.Filter(bytes.Repeat([]byte("z"), maxUsageFrame+1)); len(got) != maxUsageFrame+1 {
		t.Errorf("a large event waits: %d bytes let go", len(got))
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: a\ndata: {\"usage\":{}}\n\ndata: [DONE]\n\n"), uint16(3))
	f.Add([]byte(": c\r\n\r\ndata: x\rdata: y\r\r"), uint16(1))
	f.Add([]byte("\xef\xbb\xbfdata\n\nid: 1\n\nretry: 4\n"), uint16(2))
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		stream = append(bytes.Clone(stream), "\n\n"...) // the oracle sends an unfinished event too
		want := split(stream, len(stream)+1)
		for _, n := range []int{1, 1 + int(size)} {
			if got := split(stream, n); !slices.Equal(got, want) {
				t.Fatalf("pieces of %d differ (-whole +pieces)\n%s", n, cmp.Diff(want, got))
			}
		}
		var oracle []sent
		for event, err := range gosse.Read(bytes.NewReader(stream), &gosse.ReadConfig{MaxEventSize: 1 << 20}) {
			if err != nil {
				break
			}
			if event.Data != "" {
				oracle = append(oracle, sent{event.Type, event.Data})
			}
		}
		if bytes.IndexByte(stream, 0) >= 0 || stream[0] < ' ' && bytes.HasPrefix(bytes.TrimLeft(stream, "\r\n"), []byte("\ufeff")) {
			return // the oracle treats NUL in ids specially, and looks for a byte order mark after empty lines too
		}
		var ours []sent
		for _, e := range want {
			if e.Data != "" {
				ours = append(ours, e)
			}
		}
		if !slices.Equal(ours, oracle) {
			t.Fatalf("events (-oracle +ours)\n%s", cmp.Diff(oracle, ours))
		}
	})
}

func FuzzUsageChunkFilter(f *testing.F) {
	f.Add("data: {\"choices\":[],\"usage\":{\"a\":1}}\n\ndata: [DONE]\n\n", uint8(4))
	f.Add("data: a\r\n\r\ndata: {\"choices\":[{}]}\r\r", uint8(0))
	f.Add("data: {\"choices\":[{}],\"usage\":null}\r\n\r\ndata: {\"usage\" : null}\n\n", uint8(2))
	f.Fuzz(func(t *testing.T, stream string, size uint8) {
		n := 1 + int(size)
		got := filterAll(stream, n)
		if !strings.Contains(stream, "usage") && got != stream {
			t.Fatalf("a stream without usage changed: %q, want %q", got, stream)
		}
		if !strings.Contains(stream, "choices") && strings.ReplaceAll(stream, "null", "") == stream && got != stream {
			t.Fatalf("a stream of other events changed: %q, want %q", got, stream)
		}
		if len(got) > len(stream) {
			t.Fatalf("%d bytes became %d", len(stream), len(got))
		}
	})
}

func BenchmarkMeterStream(b *testing.B) {
	var stream [][]byte
	for range 40 {
		stream = append(stream, []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"abcdefgh"}`+"\n\n"))
	}
	stream = append(stream, []byte("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":40,\"total_tokens\":160,\"prompt_tokens_details\":{\"cached_tokens\":64},\"completion_tokens_details\":{\"reasoning_tokens\":24}}}\n\n"), []byte("data: [DONE]\n\n"))
	b.ReportAllocs()
	for b.Loop() {
		m := Chat.Meter(Reply{Status: 200, ContentType: "text/event-stream; charset=utf-8"})
		for _, chunk := range stream {
			m.Feed(chunk)
		}
		if _, seen := m.Result(); seen != All {
			b.Fatal(seen)
		}
		m.Close()
	}
}

func BenchmarkUsageChunkFilter(b *testing.B) {
	const begin = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]`
	for name, end := range map[string]string{"without": "}\n\n", "null": ",\"usage\":null}\n\n"} {
		b.Run(name, func(b *testing.B) {
			chunk := []byte(begin + end)
			b.ReportAllocs()
			var f ChunkFilter
			for b.Loop() {
				if len(f.Filter(chunk)) != len(begin+"}\n\n") {
					b.Fatal("changed")
				}
			}
		})
	}
}

// shuffle cuts a body at random; seeded, so that a failure can be repeated.
func shuffle(seed uint64) func(int) int {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(left int) int { return 1 + r.IntN(min(left, 4096)) }
}
