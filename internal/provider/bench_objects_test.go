package provider

import (
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider/reqscan"
)

// BenchmarkCrowdedObjects reads bodies of the same size: one text, and a
// million members in objects that are looked into.
func BenchmarkCrowdedObjects(b *testing.B) {
	crowd := strings.Repeat(`"a":1,`, 1_000_000) + `"b":1`
	names := reqscan.NewNames(append(UnitFieldNames(), "model")...)
	for name, body := range map[string]string{
		"plain":      `{"model":"m","input":"` + strings.Repeat("x", len(crowd)) + `"}`,
		"members":    `{"model":"m","other":{` + crowd + `}}`,
		"parameters": `{"model":"m","parameters":{` + crowd + `}}`,
		"input":      `{"model":"m","input":{` + crowd + `}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				fields, err := reqscan.Scan([]byte(body), names)
				if err != nil {
					b.Fatal(err)
				}
				r := Request{Fields: fields}
				if _, err := dashScopeVideos.read(&r, modelgate.Video); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
