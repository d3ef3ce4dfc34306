package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The models of the provider: what they are called decides how it answers.
const (
	modelPlain = "sim-chat"   // at once
	modelSlow  = "sim-slow"   // after 50 ms
	modelBurst = "sim-burst"  // a stream, all at once
	modelPaced = "sim-paced"  // a stream, 10 ms between its events
	modelHeld  = "sim-silent" // a stream that stays open after its first event
)

// scenario is one kind of load.
type scenario struct {
	Name        string
	Connections int
	Model       string // native id, one of the above
	Body        int    // bytes of the prompt
	// Long is how many times as long as others its turns are, 0 for once: few
	// calls need more time until batches of them are like each other.
	Long int
	// Proxy calls the provider-prefixed route with the native id, not the
	// door.
	Proxy bool
	// TLS has the provider called over TLS.
	TLS bool
}

func (s *scenario) stream() bool {
	return s.Model == modelBurst || s.Model == modelPaced || s.Model == modelHeld
}

// scenarios are in the order of the report.
func scenarios() []scenario {
	return []scenario{
		{Name: "door, 1 KB, c=1", Connections: 1, Model: modelPlain, Body: 900},
		{Name: "door, 1 KB, c=32", Connections: 32, Model: modelPlain, Body: 900},
		{Name: "door, 1 KB, c=256", Connections: 256, Model: modelPlain, Body: 900},
		{Name: "door, 1 KB, 50 ms upstream, c=256", Connections: 256, Model: modelSlow, Body: 900},
		{Name: "door, 1 KB, TLS upstream, c=32", Connections: 32, Model: modelPlain, Body: 900, TLS: true},
		{Name: "door, 1 KB, TLS upstream, 50 ms, c=256", Connections: 256, Model: modelSlow, Body: 900, TLS: true},
		{Name: "provider proxy, 1 KB, c=32", Connections: 32, Model: modelPlain, Body: 900, Proxy: true},
		{Name: "stream of 40, paced, c=64", Connections: 64, Model: modelPaced, Body: 900, Long: 4},
		{Name: "stream of 40, burst, c=64", Connections: 64, Model: modelBurst, Body: 900},
		{Name: "door, 100 KB, c=8", Connections: 8, Model: modelPlain, Body: 100_000},
		{Name: "door, 100 KB, c=64", Connections: 64, Model: modelPlain, Body: 100_000},
	}
}

// request is the bytes of one call of the scenario, on the i-th connection.
func (t *target) request(sc *scenario, i int) []byte {
	path, model := "/v1/chat/completions", sc.Model
	switch {
	case t.gateway && sc.Proxy:
		path = "/openai" + path
	case t.gateway && sc.TLS:
		model = "bench/tls-" + sc.Model
	case t.gateway:
		model = "bench/" + sc.Model
	case t.name == nameProxy && sc.TLS:
		path = overTLS + path
	}
	ask := ""
	if sc.stream() {
		ask = `"stream":true,"stream_options":{"include_usage":true},`
	}
	body := fmt.Sprintf(`{"model":%q,%s"messages":[{"role":"user","content":%q}]}`, model, ask, strings.Repeat("word ", sc.Body/5))
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json\r\nUser-Agent: OpenAI/Go 3.95.0\r\nContent-Length: %d\r\n\r\n%s",
		path, t.address, t.keys[i%len(t.keys)], len(body), body)
	return b.Bytes()
}
