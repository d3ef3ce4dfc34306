package usage

import (
	"testing"
)

// FuzzSSEUsage cuts a stream in two ways: every reader finds the same usage,
// the same end, and the client gets the same bytes.
func FuzzSSEUsage(f *testing.F) {
	readers := everyReader()
	for _, seed := range []string{
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n",
		"event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\r\n\r\nevent: message_delta\r\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\r\n\r\nevent: message_stop\r\ndata: {\"type\":\"message_stop\"}\r\n\r\n",
		"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":2,\"total_tokens\":3}}}\n\n",
		"data: {\"usageMetadata\":{\"promptTokenCount\":1,\"candidatesTokenCount\":2,\"totalTokenCount\":3}}\r\r",
		": c\ndata: {\"usage\"\ndata: :{\"prompt_tokens\":1}}\n\ndata: [DONE]",
		"\xef\xbb\xbfdata: {\"choices\":[],\"usage\":{}}\n\n", "data\ndata:\n\n", "id: 1\r\n\r\ndata: {\"usage\":null}\r\n\r\n",
		"event: error\ndata: {\"usage\":{\"prompt_tokens\":1}}\n\n", "data: {\"usage\":{\"prompt_tokens\":-1}}\n\ndata: {\"usage\":{\"prompt_tokens\":1e99}}\n\n",
	} {
		for i := range readers {
			f.Add([]byte(seed), uint16(i<<8|1), uint16(5))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, first, second uint16) {
		reader := readers[int(first>>8)%len(readers)]
		sizes := []int{1 + int(first&0xff), 1 + int(second)}
		turn := 0
		uneven := func(left int) int {
			turn++
			return min(left, sizes[turn%2])
		}
		reply := Reply{Status: 200, ContentType: "text/event-stream"}
		u, seen, ends := feed(reader.Meter(reply), stream, whole)
		cut, again, endsAgain := feed(reader.Meter(reply), stream, uneven)
		if u != cut || seen != again || (ends > 0) != (endsAgain > 0) {
			t.Fatalf("%s: whole %+v %d %d, in pieces %+v %d %d", reader, u, seen, ends, cut, again, endsAgain)
		}
		if v := u; !v.Clamp() {
			t.Fatalf("%s: out of range: %+v", reader, u)
		}
		want, got := filterAll(string(stream), len(stream)+1), ""
		var filter ChunkFilter
		for rest := stream; len(rest) > 0; {
			n := uneven(len(rest))
			got += string(filter.Filter(rest[:n:n]))
			rest = rest[n:]
		}
		if got += string(filter.Rest()); got != want {
			t.Fatalf("the client gets %q whole and %q in pieces", want, got)
		}
	})
}
