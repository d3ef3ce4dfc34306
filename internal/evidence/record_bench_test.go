package evidence

import (
	"testing"
	"time"

	"modelgate"
)

// BenchmarkAppendUsage is the record of a usual call.
func BenchmarkAppendUsage(b *testing.B) {
	id := modelgate.NewIDs(time.Now).New()
	r := modelgate.UsageRow{
		CallBegin: modelgate.CallBegin{
			ID: id, At: id.Time(), ClientID: modelgate.ClientID(id.String()), KeyID: modelgate.KeyID(id.String()), SubAccountID: modelgate.SubAccountID(id.String()),
			Provider: "openai", Model: "gpt-5", Slug: "openai/gpt-5", Author: "openai", Kind: modelgate.LLM, Region: "us", Door: "/v1/chat/completions",
		},
		CallEnd: modelgate.CallEnd{
			StatusCode: 200, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: 1000, Output: 500}, Cost: 1_234_567,
			PriceLabel: "input=0.25 output=2", LatencyMS: 1200, FirstByteMS: 400,
		},
	}
	by, room := Origin{Instance: "instance-1", Software: "v1.4.0"}, make([]byte, 0, 2048)
	b.ReportAllocs()
	for b.Loop() {
		room = AppendUsage(room[:0], &r, by)
	}
	b.SetBytes(int64(len(room)))
}
