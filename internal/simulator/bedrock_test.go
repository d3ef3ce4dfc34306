package simulator_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"modelgate/internal/provider/usage/eventstream"
	"modelgate/internal/simulator"
)

// messagesOf are the messages of a stream, as type, name and payload. A chunk has what
// it carries in base64 as its payload.
func messagesOf(t *testing.T, stream string) (list []string) {
	t.Helper()
	var s eventstream.Splitter
	s.Push([]byte(stream), func(f eventstream.Frame) {
		payload := string(f.Payload)
		if coded := gjson.Get(payload, "bytes").Str; coded != "" {
			text, err := base64.StdEncoding.DecodeString(coded)
			if err != nil {
				t.Error(err)
			}
			payload = string(text)
		}
		list = append(list, string(f.Kind)+" "+string(f.Name)+" "+payload)
	})
	if s.Flawed() {
		t.Errorf("a flawed stream: %q", stream)
	}
	return list
}

// Bedrock's streams are binary messages, of which the last states the usage.
func TestBedrockStreams(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	const converse, invoke = "/model/eu.anthropic.claude-v1%3A0/converse-stream", "/model/m/invoke-with-response-stream"
	for _, c := range []struct{ path, prompt, want, last string }{
		{converse, "hi [[cached=7]] [[cache_write_1h=3]]", `event contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"This"},"p":"abcdefgh"}`,
			`event metadata {"metrics":{"latencyMs":5},"usage":{"cacheDetails":[{"inputTokens":0,"ttl":"5m"},{"inputTokens":3,"ttl":"1h"}],"cacheReadInputTokens":7,"cacheWriteInputTokens":3,"inputTokens":1,"outputTokens":7,"totalTokens":18}}`},
		{converse, "get_weather", `event contentBlockDelta {"contentBlockIndex":0,"delta":{"toolUse":{"input":"{\"city\":\"simulated\","}},"p":"abcdefgh"}`, `event metadata {"metrics"`},
		{converse, "hi [[no_usage]]", `event messageStop {"stopReason":"end_turn"}`, `event metadata {"metrics":{"latencyMs":5}}`},
		{converse, "hi [[error_in_stream=2]]", `event messageStart {"role":"assistant"}`, `exception internalServerException {"message"`},
		{invoke, "hi", `event chunk {"delta":{"text":"This","type":"text_delta"},"index":0,"type":"content_block_delta"}`, `event chunk {"type":"message_stop"}`},
		{invoke, "hi [[error_in_stream=2]]", `event chunk {"message":`, `exception internalServerException {"message"`},
	} {
		res, body, err := u.post(t, c.path, toolBody(c.path, c.prompt, "", ""))
		list := messagesOf(t, body)
		if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/vnd.amazon.eventstream" || len(list) == 0 {
			t.Fatalf("%s %s: %v, %v, %q", c.path, c.prompt, err, res, body)
		}
		found := false
		for _, m := range list {
			found = found || strings.HasPrefix(m, c.want)
		}
		if last := list[len(list)-1]; !found || !strings.HasPrefix(last, c.last) {
			t.Errorf("%s %s: %q, want %s and last %s", c.path, c.prompt, list, c.want, c.last)
		}
	}
}

// Tools are demanded, and errors named, as in Bedrock's API.
func TestBedrockOperations(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{Credential: "right"})
	res, body, err := u.post(t, "/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`)
	if err != nil || res.StatusCode != 401 || res.Header.Get("X-Amzn-Errortype") != "UnrecognizedClientException" || gjson.Get(body, "message").Str == "" {
		t.Errorf("a missing key: %v, %v, %s", err, res, body)
	}
	u = start(t, simulator.Options{})
	for choice, tool := range map[string]string{`{"any":{}}`: "clock", `{"tool":{"name":"get_weather"}}`: "get_weather", `{"auto":{}}`: ""} {
		text := strings.Replace(toolBody("/converse", "hi", "", ""), `"toolConfig":{`, `"toolConfig":{"toolChoice":`+choice+`,`, 1)
		_, body, err := u.post(t, "/model/m/converse", text)
		if got := gjson.Get(body, "output.message.content.0.toolUse.name").Str; err != nil || got != tool {
			t.Errorf("%s: calls %q, want %q: %v, %s", choice, got, tool, err, body)
		}
	}
	_, body, err = u.post(t, "/model/m/count-tokens", `{"input":{"converse":{"messages":[{"role":"user","content":[{"text":"one two three"}]}]}}}`)
	if err != nil || gjson.Get(body, "inputTokens").Int() != 3 {
		t.Errorf("count-tokens: %v, %s", err, body)
	}
}
