package modelgate

import (
	"testing"
	"time"
)

// BenchmarkAppendEvidence is the record of a usual call.
func BenchmarkAppendEvidence(b *testing.B) {
	id := NewIDs(time.Now).New()
	r := UsageRow{
		CallBegin: CallBegin{
			ID: id, At: id.Time(), ClientID: ClientID(id.String()), KeyID: KeyID(id.String()), SubAccountID: SubAccountID(id.String()),
			Provider: "openai", Model: "gpt-5", Slug: "openai/gpt-5", Author: "openai", Kind: LLM, Region: "us", Door: "/v1/chat/completions",
		},
		CallEnd: CallEnd{
			StatusCode: 200, ParseStatus: ParseOK, Usage: Usage{Input: 1000, Output: 500}, Cost: 1_234_567,
			PriceLabel: "input=0.25 output=2", LatencyMS: 1200, FirstByteMS: 400,
		},
	}
	by, room := EvidenceWriter{Instance: "instance-1", Software: "v1.4.0"}, make([]byte, 0, 2048)
	b.ReportAllocs()
	for b.Loop() {
		room = r.AppendEvidence(room[:0], by)
	}
	b.SetBytes(int64(len(room)))
}
