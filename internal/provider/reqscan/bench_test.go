package reqscan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// doorNames are the names that a chat door reads.
func doorNames() *Names {
	return NewNames("model", "models", "fallbacks", "stream", "stream_options", "max_tokens",
		"max_completion_tokens", "max_output_tokens", "n", "input", "prompt", "service_tier", "tools",
		"background", "size", "quality", "seconds", "duration", "previous_response_id", "conversation", "container")
}

// chatBody is a chat request of about size bytes, its text in messages of
// at most perMessage bytes, with the model first or last.
func chatBody(size, perMessage int, order string) []byte {
	const sentence = `The quick brown fox jumps over the lazy dog, and then it says that it has had enough of jumping.\n`
	var messages []string
	for left := size; left > 0; left -= perMessage {
		text := strings.Repeat(sentence, min(left, perMessage)/len(sentence)+1)
		messages = append(messages, `{"role": "user", "content": "`+text+`"}`)
	}
	return chatWith(`[`+strings.Join(messages, ", ")+`]`, order)
}

// imageBody is a chat request with one inline image of size bytes.
func imageBody(size int, order string) []byte {
	data := strings.Repeat("iVBORw0KGgo+/AAA", size/16)
	return chatWith(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+data+`"}}]}]`, order)
}

func chatWith(messages, order string) []byte {
	model, rest := `"model": "acme/large-1"`, `"messages": `+messages+`, "temperature": 0.25, "stream": true, "max_tokens": 512`
	if order == "last" {
		return []byte("{" + rest + ", " + model + "}")
	}
	return []byte("{" + model + ", " + rest + "}")
}

func BenchmarkScanSplice(b *testing.B) {
	names := doorNames()
	for _, order := range []string{"first", "last"} {
		for _, body := range []struct {
			size string
			text []byte
		}{
			{"1KB", chatBody(800, 200, order)},
			{"100KB", chatBody(100_000, 4_000, order)},
			{"8MB", imageBody(8<<20, order)},
		} {
			// What an edit changes and moves lies within either end.
			head, tail := min(64, len(body.text)), max(0, len(body.text)-64)
			first, last := bytes.Clone(body.text[:head]), bytes.Clone(body.text[tail:])
			native := ModelValue("large-1-2")
			for _, what := range []string{"scan", "scan+splice"} {
				b.Run(fmt.Sprintf("%s/%s/model-%s", what, body.size, order), func(b *testing.B) {
					b.SetBytes(int64(len(body.text)))
					b.ReportAllocs()
					for b.Loop() {
						fields, err := Scan(body.text, names)
						if err != nil {
							b.Fatal(err)
						}
						if what == "scan" {
							continue
						}
						model, _ := fields.Get("model")
						if got := SpliceOwned(body.text, Edit{model.Span, native}); len(got) != len(body.text)-3 {
							b.Fatal(len(got))
						}
						copy(body.text, first)
						copy(body.text[tail:], last)
					}
				})
			}
		}
	}
}

// BenchmarkScanForm takes a form apart whose file is most of it.
func BenchmarkScanForm(b *testing.B) {
	names := doorNames()
	native := []byte("whisper-2026")
	for _, size := range []int{1 << 10, 100 << 10, 8 << 20} {
		file := strings.Repeat("RIFF\x00\x01\r\n--", size/10)
		body := []byte("--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n" +
			file + "\r\n--XyZ\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nacme/whisper\r\n--XyZ--\r\n")
		tail := len(body) - 64
		last := bytes.Clone(body[tail:])
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				form, err := ScanForm("multipart/form-data; boundary=XyZ", body, names)
				if err != nil {
					b.Fatal(err)
				}
				_, at, _ := form.Get("model")
				SpliceOwned(body, Edit{at, native})
				copy(body[tail:], last)
			}
		})
	}
}
