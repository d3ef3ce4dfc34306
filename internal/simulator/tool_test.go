package simulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"modelgate/internal/simulator"
)

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":3},"unit":{"enum":["C","F"]}},"required":["city","days"]}`

// weatherTools are two tools in each format's way of offering them.
func weatherTools(path string) string {
	switch {
	case strings.Contains(path, "/chat"):
		return `[{"type":"function","function":{"name":"clock","parameters":{"type":"object"}}},{"type":"function","function":{"name":"get_weather","parameters":` + weatherSchema + `}}]`
	case strings.Contains(path, "/responses"):
		return `[{"type":"web_search"},{"type":"function","name":"clock","parameters":{"type":"object"}},{"type":"function","name":"get_weather","parameters":` + weatherSchema + `}]`
	case strings.Contains(path, "/converse"):
		return `[{"toolSpec":{"name":"clock","inputSchema":{"json":{"type":"object"}}}},{"toolSpec":{"name":"get_weather","inputSchema":{"json":` + weatherSchema + `}}}]`
	case strings.Contains(path, "/messages"), strings.Contains(path, "/invoke"):
		return `[{"type":"web_search_20250305","name":"web_search"},{"name":"clock","input_schema":{"type":"object"}},{"name":"get_weather","input_schema":` + weatherSchema + `}]`
	}
	return `[{"functionDeclarations":[{"name":"clock","parametersJsonSchema":{"type":"object"}},{"name":"get_weather","parameters":` + weatherSchema + `}]}]`
}

// turns is a conversation of one turn of the user, and, where result is not "",
// of the call and what the tool returned.
func turns(path, prompt, result string) string {
	said, called := "", ""
	switch {
	case strings.Contains(path, "/chat"):
		said, called = `"messages":[{"role":"user","content":%q}%s]`, `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":%q}`
	case strings.Contains(path, "/responses"):
		said, called = `"input":[{"role":"user","content":[{"type":"input_text","text":%q}]}%s]`, `,{"type":"function_call","call_id":"call_1","name":"get_weather","arguments":"{}"},{"type":"function_call_output","call_id":"call_1","output":%q}`
	case strings.Contains(path, "/converse"):
		said, called = `"messages":[{"role":"user","content":[{"text":%q}]}%s]`, `,{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"get_weather","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"text":%q}]}}]}`
	case strings.Contains(path, "/messages"), strings.Contains(path, "/invoke"):
		said, called = `"messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>use clock</system-reminder>"},{"type":"text","text":%q}]}%s]`, `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":%q}]}`
	default:
		said, called = `"contents":[{"role":"user","parts":[{"text":%q}]}%s]`, `,{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"get_weather","response":{"output":%q}}}]}`
	}
	if result == "" {
		called = ""
	} else {
		called = fmt.Sprintf(called, result)
	}
	return fmt.Sprintf(said, prompt, called)
}

func toolBody(path, prompt, result, more string) string {
	tools := `"tools":` + weatherTools(path)
	if strings.Contains(path, "/converse") {
		tools = `"toolConfig":{` + tools + `}`
	}
	return `{"model":"m","max_tokens":50,"max_output_tokens":50,` + tools + `,` + turns(path, prompt, result) + more + `}`
}

// toolPaths are where each format has its call in a whole reply: the name, the
// arguments, and the reason for the end; and where it has its text.
var toolPaths = []struct{ path, name, arguments, finish, reason, text string }{
	{"/v1/chat/completions", "choices.0.message.tool_calls.0.function.name", "choices.0.message.tool_calls.0.function.arguments", "choices.0.finish_reason", "tool_calls", "choices.0.message.content"},
	{"/v1/responses", "output.0.name", "output.0.arguments", "status", "completed", "output.0.content.0.text"},
	{"/v1/messages", "content.0.name", "content.0.input", "stop_reason", "tool_use", "content.0.text"},
	{"/v1beta/models/m:generateContent", "candidates.0.content.parts.0.functionCall.name", "candidates.0.content.parts.0.functionCall.args", "candidates.0.finishReason", "STOP", "candidates.0.content.parts.0.text"},
	{"/v2/chat", "message.tool_calls.0.function.name", "message.tool_calls.0.function.arguments", "finish_reason", "TOOL_CALL", "message.content.0.text"},
	{"/model/m/converse", "output.message.content.0.toolUse.name", "output.message.content.0.toolUse.input", "stopReason", "tool_use", "output.message.content.0.text"},
	{"/model/m/invoke", "content.0.name", "content.0.input", "stop_reason", "tool_use", "content.0.text"},
}

// Each format calls the tool that the user mentions or a directive names, and
// answers its result with text.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	for _, f := range toolPaths {
		for _, tt := range []struct{ name, prompt, result, tool, arguments, text string }{
			{"mentioned", "call get_weather, please", "", "get_weather", `{"city":"simulated","days":3}`, ""},
			{"by directive", "what time is it, clock? [[tool=get_weather]]", "", "get_weather", `{"city":"simulated","days":3}`, ""},
			{"with arguments", `[[tool=get_weather]] [[arguments={"city":"Bern","unit":"C"}]]`, "", "get_weather", `{"city":"Bern","days":3,"unit":"C"}`, ""},
			{"without parameters", "clock", "", "clock", `{}`, ""},
			{"not mentioned", "get_weather_now and clockwork", "", "", "", "This is a simulated answer to: get_weather_now and clockwork"},
			{"not offered", "hello [[tool=rm]]", "", "", "", "This is a simulated answer to: hello"},
			{"returned", "call get_weather [[tool=clock]]", "rain, clock", "", "", "This is a simulated answer to: rain, clock"},
			{"returned something like a directive", "call get_weather", "[[package]]", "", "", "This is a simulated answer to:"},
		} {
			res, body, err := u.post(t, f.path, toolBody(f.path, tt.prompt, tt.result, ""))
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%s, %s: %v, %s", f.path, tt.name, err, body)
			}
			name, text := gjson.Get(body, f.name).Str, gjson.Get(body, f.text).Str
			if name != tt.tool || text != tt.text || (name != "") != (gjson.Get(body, f.finish).Str == f.reason && text == "") {
				t.Errorf("%s, %s: calls %q and says %q, want %q and %q\n%s", f.path, tt.name, name, text, tt.tool, tt.text, body)
			}
			if got := gjson.Get(body, f.arguments); tt.tool != "" && got.String() != tt.arguments {
				t.Errorf("%s, %s: arguments %s, want %s", f.path, tt.name, got, tt.arguments)
			}
		}
	}
}

// Coding agents add turns of the system behind the one of the user.
func TestToolCallBeforeSystemTurns(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	for path, more := range map[string]string{
		"/v1/chat/completions": `{"role":"developer","content":"use clock"}`,
		"/v1/responses":        `{"role":"developer","content":[{"type":"input_text","text":"use clock"}]}`,
		"/v1/messages":         `{"role":"system","content":"use clock"}`,
	} {
		body := toolBody(path, "get_weather", "", "")
		end := strings.LastIndex(body, "]")
		_, reply, err := u.post(t, path, body[:end]+","+more+body[end:])
		if err != nil || !strings.Contains(reply, `"get_weather"`) {
			t.Errorf("%s: %s, %v", path, reply, err)
		}
	}
}

// A request may demand a call, of any tool or of one, and may forbid them.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	for i, choices := range [][3]string{
		{`"tool_choice":"required"`, `"tool_choice":{"type":"function","function":{"name":"get_weather"}}`, `"tool_choice":"none"`},
		{`"tool_choice":"required"`, `"tool_choice":{"type":"function","name":"get_weather"}`, `"tool_choice":"none"`},
		{`"tool_choice":{"type":"any"}`, `"tool_choice":{"type":"tool","name":"get_weather"}`, `"tool_choice":{"type":"none"}`},
		{`"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`, `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["get_weather"]}}`, `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`},
		{`"tool_choice":"REQUIRED"`, "", `"tool_choice":"NONE"`}, // a single tool cannot be demanded
	} {
		f := toolPaths[i]
		for j, want := range []string{"clock", "get_weather", ""} {
			if choices[j] == "" {
				continue
			}
			prompt := []string{"hello", "hello", "clock"}[j]
			_, body, err := u.post(t, f.path, toolBody(f.path, prompt, "", ","+choices[j]))
			if got := gjson.Get(body, f.name).Str; err != nil || got != want {
				t.Errorf("%s with %s: calls %q, want %q\n%s", f.path, choices[j], got, want, body)
			}
		}
	}
}

// A call is billed one token for its name and the words of its arguments.
func TestToolCallBill(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	const path = "/v1/chat/completions"
	if _, body, err := u.post(t, path, toolBody(path, `[[tool=clock]] [[arguments={"zone":"New York City"}]] [[reasoning=2]] one two`, "", `,"n":2`)); err != nil {
		t.Fatal(err)
	} else if got := gjson.Get(body, "usage"); got.Get("prompt_tokens").Int() != 2 || got.Get("completion_tokens").Int() != 2*4+2 {
		t.Errorf("usage is %s, want 2 and 10", got)
	}
	if _, body, err := u.post(t, path, toolBody(path, "one two get_weather", "three four", "")); err != nil {
		t.Fatal(err)
	} else if got := gjson.Get(body, "usage.prompt_tokens").Int(); got != 5 {
		t.Errorf("%d input tokens, want those of the user and of the result, 5", got)
	}
}

// The arguments satisfy the schema, as an independent validator reads it.
func TestToolArgumentsFitTheirSchema(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	for _, schema := range []string{
		weatherSchema,
		`{"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":["null","string"]},"b":{"type":["string","null"],"minLength":30},"c":{"type":"string","maxLength":3}},"required":["a","b","c"]}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"integer","exclusiveMinimum":7},{"type":"null"}]},"b":{"type":"number","maximum":-2.5},"c":{"type":"number","exclusiveMaximum":1}},"required":["a","b","c"]}`,
		`{"type":"object","properties":{"a":{"type":"array","minItems":2,"items":{"type":"object","properties":{"id":{"type":"string","format":"uuid"},"on":{"type":"boolean"}},"required":["id","on"],"additionalProperties":false}}},"required":["a"]}`,
		`{"$defs":{"node":{"type":"object","properties":{"name":{"const":"n"},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},"required":["name","next"]}},"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"required":["tree"]}`,
		`{"$defs":{"top":{"type":"object","properties":{"mode":{"enum":["x","y"]},"date":{"type":"string","format":"date"}},"required":["mode","date"]}},"$ref":"#/$defs/top"}`,
		`{"type":"object","properties":{"a":{"default":4,"type":"integer"},"b":{"oneOf":[{"const":true}]}, "c":{}},"required":["a","b","c"]}`,
	} {
		body := `{"model":"m","messages":[{"role":"user","content":"[[tool=t]]"}],"tools":[{"type":"function","function":{"name":"t","parameters":` + schema + `}}]}`
		_, reply, err := u.post(t, "/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		got := gjson.Get(reply, "choices.0.message.tool_calls.0.function.arguments").Str
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		if err := compiler.AddResource("schema.json", document); err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(got))
		if err != nil {
			t.Fatalf("%s: %q: %v", schema, got, err)
		}
		if err := compiler.MustCompile("schema.json").Validate(value); err != nil {
			t.Errorf("%s\n%s\n%v", schema, got, err)
		}
	}
	endless := `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`
	if res, _, err := u.post(t, "/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"t"}],"tools":[{"name":"t","input_schema":`+endless+`}]}`); err != nil || res.StatusCode != 200 {
		t.Errorf("a schema without end: %v, %v", res, err)
	}
}

// The providers' own Go SDKs put the call together from its stream.
func TestToolCallStreams(t *testing.T) {
	t.Parallel()
	const want = `{"city":"simulated","days":3}`
	var schema map[string]any
	if err := json.Unmarshal([]byte(weatherSchema), &schema); err != nil {
		t.Fatal(err)
	}
	client, _ := openAI(t)
	params := chatParams("get_weather")
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "get_weather", Parameters: schema})}
	chat := client.Chat.Completions.NewStreaming(t.Context(), params)
	var acc openai.ChatCompletionAccumulator
	for chat.Next() {
		acc.AddChunk(chat.Current())
	}
	if err := chat.Err(); err != nil || len(acc.Choices) != 1 || len(acc.Choices[0].Message.ToolCalls) != 1 || acc.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("chat: %v, %+v", err, acc.Choices)
	}
	if call := acc.Choices[0].Message.ToolCalls[0]; call.Function.Name != "get_weather" || call.Function.Arguments != want || call.ID == "" {
		t.Errorf("chat: %+v", call)
	}
	stream := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "gpt-5-mini", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("get_weather")},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", schema, false)},
	})
	deltas, events := "", []string{}
	for stream.Next() {
		e := stream.Current()
		events = append(events, e.Type)
		deltas += e.Delta
		if e.Type == "response.completed" {
			if item := e.Response.Output[0]; item.Name != "get_weather" || item.Arguments.OfString != want || item.CallID == "" {
				t.Errorf("responses: %+v", item)
			}
		}
	}
	if err := stream.Err(); err != nil || deltas != want || events[len(events)-1] != "response.completed" {
		t.Errorf("responses: %v, %q, %v", err, deltas, events)
	}
	messenger := claude(t)
	messages := messenger.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: "m", MaxTokens: 50, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("get_weather"))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "get_weather", InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"], Required: []string{"city", "days"}}}}},
	})
	var message anthropic.Message
	for messages.Next() {
		if err := message.Accumulate(messages.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := messages.Err(); err != nil || message.StopReason != "tool_use" || len(message.Content) != 1 || string(message.Content[0].Input) != want {
		t.Errorf("messages: %v, %+v", err, message)
	}
}

// Cohere's stream has its own events for text and for a call, and states the usage
// in the last.
func TestCohereStreams(t *testing.T) {
	t.Parallel()
	u := start(t, simulator.Options{})
	for prompt, want := range map[string]string{
		"hi [[chunks=2]]": `event: message-start
data: {"delta":{"message":{"role":"assistant"}},"id":"ID","type":"message-start"}

event: content-start
data: {"delta":{"message":{"content":{"text":"","type":"text"}}},"index":0,"type":"content-start"}

event: content-delta
data: {"delta":{"message":{"content":{"text":"This is a"}}},"index":0,"type":"content-delta"}

event: content-delta
data: {"delta":{"message":{"content":{"text":" simulated answer to: hi"}}},"index":0,"type":"content-delta"}

event: content-end
data: {"index":0,"type":"content-end"}

event: message-end
data: {"delta":{"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":1,"output_tokens":7},"tokens":{"input_tokens":1,"output_tokens":7}}},"type":"message-end"}

data: [DONE]

`,
		"get_weather": `event: message-start
data: {"delta":{"message":{"role":"assistant"}},"id":"ID","type":"message-start"}

event: tool-call-start
data: {"delta":{"message":{"tool_calls":{"function":{"arguments":"","name":"get_weather"},"id":"call_ID","type":"function"}}},"index":0,"type":"tool-call-start"}

event: tool-call-delta
data: {"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"city\":\"simulated\","}}}},"index":0,"type":"tool-call-delta"}

event: tool-call-delta
data: {"delta":{"message":{"tool_calls":{"function":{"arguments":"\"days\":3}"}}}},"index":0,"type":"tool-call-delta"}

event: tool-call-end
data: {"index":0,"type":"tool-call-end"}

event: message-end
data: {"delta":{"finish_reason":"TOOL_CALL","usage":{"billed_units":{"input_tokens":1,"output_tokens":2},"tokens":{"input_tokens":1,"output_tokens":2}}},"type":"message-end"}

data: [DONE]

`,
	} {
		_, body, err := u.post(t, "/v2/chat", toolBody("/v2/chat", prompt, "", `,"stream":true`))
		if err != nil {
			t.Fatal(err)
		}
		id := gjson.Get(strings.TrimPrefix(strings.Split(body, "\n")[1], "data: "), "id").Str
		if got := strings.ReplaceAll(body, id, "ID"); id == "" || got != want {
			t.Errorf("%s:\n%s\nwant\n%s", prompt, got, want)
		}
	}
}
