package usage

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate"
)

const smallReply = `{"id":"chatcmpl-1","object":"chat.completion","created":1790000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%s","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":120,"completion_tokens":40,"total_tokens":160,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":24,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`

// A reply of megabytes leaves only its figures, wherever they stand.
func TestLargeReply(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat(`{"b64_json":"`+strings.Repeat("Zm9v\\\"", 50_000)+`"},`, 8)
	body := `{"data":[` + filler + `{"b64_json":""}],"text":"` + strings.Repeat("é\\u0041", 100_000) + `","usage":{"input_tokens":7,"output_tokens":9},"size":"1024x1024"}`
	for _, next := range []func(int) int{whole, shuffle(7)} {
		m := Images.Meter(Reply{Status: 200, ContentType: "application/json"})
		u, seen, terminal := feed(m, []byte(body), next)
		want := modelgate.Usage{Input: 7, Output: 9, Images: 9, Size: "1024x1024", Megapixels: 9 << 20}
		if u != want || seen != All || terminal != 1 {
			t.Errorf("Result() = %+v, %d, end %d times, want %+v", u, seen, terminal, want)
		}
		if kept := cap(m.(*documents).skim.out); kept > 2048 {
			t.Errorf("kept %d bytes of %d", kept, len(body))
		}
	}
}

func TestProjectionIsBounded(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	body.WriteString(`{"usage":{"prompt_tokens":1}`)
	for i := range 200_000 {
		fmt.Fprintf(&body, `,"k%d":%d`, i, i)
	}
	body.WriteString("}")
	m := Chat.Meter(Reply{Status: 200, ContentType: "application/json"})
	_, seen, terminal := feed(m, []byte(body.String()), whole)
	if kept := cap(m.(*documents).skim.out); seen != Nothing || terminal != 1 || kept > 2*maxProjection {
		t.Errorf("seen %d, end %d times, kept %d bytes", seen, terminal, kept)
	}
}

func TestSkimmer(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, doc, want string }{
		{"scalars", `{"a":1,"b":"x","c":null,"d":-1.5e3}`, `{"a":1,"b":"x","c":null,"d":-1.5e3}`},
		{"arrays become lengths", `{"data":[{"a":[1,2]},"x",[]],"e":[],"n":[1,2,3]}`, `{"data":3,"e":0,"n":3}`},
		{"objects become nothing", `{"a":{"b":{"usage":{}}},"c":{}}`, `{"a":1,"c":0}`},
		{"usage stays", `{"usage":{"a":{"b":[1,{"c":"}"}]}}, "x" : 1 }`, `{"usage":{"a":{"b":[1,{"c":"}"}]}},"x":1}`},
		{"escapes", `{"a":"\"}","b":"\\","usage\"":{"x":1}}`, `{"a":"\"}","b":"\\","usage\"":1}`},
		{"long text", `{"a":"` + strings.Repeat("x", maxText-1) + `\n","b":2}`, `{"a":"","b":2}`},
		{"leading space", "\r\n \t{\"a\":1}", `{"a":1}`},
	}
	for _, test := range tests {
		for n := 1; n <= len(test.doc); n++ {
			s := skimmer{whole: quoted("usage")}
			for at := 0; at < len(test.doc); at += n {
				for rest, done := []byte(test.doc[at:min(at+n, len(test.doc))]), false; len(rest) > 0; {
					if rest, done = s.next(rest); done {
						rest = nil
					}
				}
			}
			if string(s.out) != test.want || !s.closed {
				t.Fatalf("%s in pieces of %d: %s, closed %v, want %s", test.name, n, s.out, s.closed, test.want)
			}
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		json string
		want int64
		ok   bool
		fine bool
	}{
		{"0", 0, true, true},
		{"12", 12, true, true},
		{"12.0", 12, true, true},
		{"1e3", 1000, true, true},
		{`"3"`, 3, true, true},
		{"null", 0, false, true},
		{"-1", 0, true, false},
		{"-0.5", 0, true, false},
		{"1.5", 1, true, false},
		{"1e400", modelgate.MaxQuantity, true, false},
		{"1000000000001", modelgate.MaxQuantity, true, false},
		{"true", 0, false, false},
		{"{}", 0, false, false},
		{`"many"`, 0, false, false},
		{`"NaN"`, 0, true, false},
		{"99999999999999999999999", modelgate.MaxQuantity, true, false},
	}
	for _, test := range tests {
		var r reading
		got, ok := r.count(gjson.Parse(test.json))
		if got != test.want || ok != test.ok || r.flawed == test.fine {
			t.Errorf("count(%s) = %d, %v, flawed %v, want %d, %v, %v", test.json, got, ok, r.flawed, test.want, test.ok, !test.fine)
		}
	}
}

func TestMeterOfNothing(t *testing.T) {
	t.Parallel()
	var none *Reader
	u, seen, terminal := feed(none.Meter(Reply{Status: 200}), []byte(`{"usage":{"prompt_tokens":1}}`), whole)
	if u != (modelgate.Usage{}) || seen != Nothing || terminal != 0 {
		t.Errorf("a nil reader read %+v, %d", u, seen)
	}
}

// everyReader is the readers of usage, of which a fuzzed size chooses one.
func everyReader() []*Reader {
	return []*Reader{Chat, ChatReasoningApart, ChatThinkingInTotal, Responses, Images, Speech, Transcript,
		Messages, Gemini, Predictions, Billed, NativeOutput, EvalCounts, Prediction, Any}
}

// FuzzUsageJSON feeds any bytes as a JSON reply to a reader: figures stay
// in range, pieces do not matter, and nothing is read of what is no JSON.
func FuzzUsageJSON(f *testing.F) {
	readers := everyReader()
	for i := range readers {
		f.Add([]byte(fmt.Sprintf(smallReply, "hi")), uint16(i<<8|5))
	}
	f.Add([]byte(`[{"usageMetadata":{"promptTokenCount":1,"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":2}]}}]`), uint16(1))
	f.Add([]byte(`{"usage":{"prompt_tokens":-1,"cache_creation":{"ephemeral_1h_input_tokens":1e99}},"data":[1,2]}`), uint16(2))
	f.Add([]byte(`{"meta":{"billed_units":{"search_units":1.5}},"metrics":{"predict_time":"x"}}`), uint16(3))
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		reader := readers[int(size>>8)%len(readers)]
		reply := Reply{Status: 200, ContentType: "application/json"}
		u, seen, _ := feed(reader.Meter(reply), body, whole)
		pieces, again, _ := feed(reader.Meter(reply), body, func(left int) int { return min(left, 1+int(size&0xff)) })
		if u != pieces || seen != again {
			t.Fatalf("%s: whole %+v %d, in pieces %+v %d", reader, u, seen, pieces, again)
		}
		if v := u; !v.Clamp() {
			t.Fatalf("%s: out of range: %+v", reader, u)
		}
		if seen == All && !json.Valid(body) && !strings.ContainsAny(string(body), "{[") {
			t.Fatalf("%s: read %+v from what is no JSON", reader, u)
		}
	})
}

func BenchmarkMeterJSON(b *testing.B) {
	body := []byte(fmt.Sprintf(smallReply, strings.Repeat("words ", 120)))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		m := Chat.Meter(Reply{Status: 200, ContentType: "application/json"})
		m.Feed(body)
		if _, seen := m.Result(); seen != All {
			b.Fatal(seen)
		}
		m.Close()
	}
}

func BenchmarkMeterEmbeddings(b *testing.B) {
	vector := strings.Repeat("-0.0123456789,", 3071) + "0.1"
	body := []byte(`{"object":"list","data":[` + strings.Repeat(`{"embedding":[`+vector+`]},`, 31) + `{"embedding":[` + vector + `]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		m := Chat.Meter(Reply{Status: 200, ContentType: "application/json"})
		m.Feed(body)
		if _, seen := m.Result(); seen != All {
			b.Fatal(seen)
		}
	}
}
