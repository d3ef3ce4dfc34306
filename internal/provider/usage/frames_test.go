package usage

import (
	"testing"

	"modelgate/test/testkit/cloud"
)

// BenchmarkMeterFrames meters streams of 40 pieces in Amazon's binary messages.
func BenchmarkMeterFrames(b *testing.B) {
	var converse, invoke [][]byte
	for range 40 {
		converse = append(converse, cloud.Event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":" word"},"p":"abcdefghijklmnopqrstuvwxyz"}`))
		invoke = append(invoke, cloud.Chunk(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`))
	}
	converse = append(converse, cloud.Event("metadata", `{"usage":{"inputTokens":300,"outputTokens":200,"totalTokens":500},"metrics":{"latencyMs":5}}`))
	invoke = append(invoke, cloud.Chunk(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":300,"output_tokens":200}}`), cloud.Chunk(`{"type":"message_stop"}`))
	for _, c := range []struct {
		reader *Reader
		stream [][]byte
	}{{Converse, converse}, {Invoke, invoke}} {
		b.Run(c.reader.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := c.reader.Meter(Reply{Status: 200, ContentType: "application/vnd.amazon.eventstream"})
				for _, chunk := range c.stream {
					m.Feed(chunk)
				}
				if _, seen := m.Result(); seen != All {
					b.Fatal(seen)
				}
				m.Close()
			}
		})
	}
}

// A payload states its text in any way that JSON allows.
func TestChunkSpellings(t *testing.T) {
	t.Parallel()
	const coded = `eyJ1c2FnZSI6eyJpbnB1dF90b2tlbnMiOjcsIm91dHB1dF90b2tlbnMiOjM/fX0=`
	for payload, want := range map[string]int64{
		`{"bytes":"eyJ1c2FnZSI6eyJpbnB1dF90b2tlbnMiOjcsIm91dHB1dF90b2tlbnMiOjN9fQ=="}`:           7,
		`{"p":"abc","bytes":"eyJ1c2FnZSI6eyJpbnB1dF90b2tlbnMiOjcsIm91dHB1dF90b2tlbnMiOjN9fQ=="}`: 7,
		"{ \"bytes\" : \"eyJ1c2FnZSI6eyJpbnB1dF90b2tlbnMiOjcsIm91dHB1dF90b2tlbnMiOjN9fQ==\"}":    7,
		`{"bytes":"\u0065yJ1c2FnZSI6eyJpbnB1dF90b2tlbnMiOjcsIm91dHB1dF90b2tlbnMiOjN9fQ=="}`:      7,
		`{"bytes":"` + coded + `"}`: 0, `{"bytes":"%%%%"}`: 0, `{"bytes":7}`: 0, `{}`: 0, `{"bytes":"`: 0, `{"bytes":""}`: 0,
	} {
		m := Invoke.Meter(Reply{Status: 200, ContentType: "application/vnd.amazon.eventstream"})
		m.Feed(cloud.Event("chunk", payload))
		if u, seen := m.Result(); u.Input != want || (seen == Nothing) != (want == 0) {
			t.Errorf("%s: input %d, seen %v, want %d", payload, u.Input, seen, want)
		}
		m.Close()
	}
}
