package usage

import (
	"fmt"
	"strings"
	"testing"

	"modelgate"
)

// What tools did is read out of a reply of any size, cut anywhere; where that
// is not possible, the usage is read and makes the row partial.
func TestToolsOfLargeReplies(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"input_tokens":5,"output_tokens":7,"iterations":%s}`
	response := func(items ...string) string {
		return `{"object":"response","output":[` + strings.Join(items, ",") + `],` + fmt.Sprintf(usage, "null") + `}`
	}
	containers := func(n int) (items []string) {
		for i := range n {
			items = append(items, fmt.Sprintf(`{"type":"code_interpreter_call","container_id":"cntr_%d"}`, i))
		}
		return items
	}
	logprobs := `{"type":"message","content":[{"type":"output_text","text":"` + strings.Repeat("long ", 1000) + `","logprobs":[` +
		strings.Repeat(`{"token":"a","logprob":-0.1,"bytes":[97],"top_logprobs":[]},`, 20_000) + `{}]}]}`
	search := `{"type":"web_search_call","action":{"type":"search","sources":[` + strings.Repeat(`{"url":"https://a.example"},`, 1000) + `{}]}}`
	message := func(iterations int) string {
		list := "[" + strings.Repeat(`{"type":"compaction","input_tokens":1,"output_tokens":0},`, iterations-1) + `{"type":"compaction","input_tokens":1,"output_tokens":0}]`
		return `{"type":"message","content":[],` + fmt.Sprintf(usage, list) + `}`
	}
	base := modelgate.Usage{Input: 5, Output: 7}
	with := func(change func(*modelgate.Usage)) modelgate.Usage { u := base; change(&u); return u }
	for name, tt := range map[string]struct {
		reader *Reader
		body   string
		want   modelgate.Usage
		seen   Seen
	}{
		"1,000 containers":   {Responses, response(containers(1000)...), with(func(u *modelgate.Usage) { u.CodeSessions = 1000 }), All},
		"1,001 containers":   {Responses, response(containers(1001)...), with(func(u *modelgate.Usage) { u.CodeSessions = 1000 }), Some},
		"probabilities":      {Responses, response(logprobs, search, logprobs, search), with(func(u *modelgate.Usage) { u.Searches = 2 }), All},
		"10,000 items":       {Responses, response(strings.Split(strings.Repeat(search+"\n", 10_000), "\n")[:10_000]...), base, Some},
		"64 iterations":      {Messages, message(64), with(func(u *modelgate.Usage) { u.Input += 64 }), All},
		"65 iterations":      {Messages, message(65), with(func(u *modelgate.Usage) { u.Input += 64 }), Some},
		"a text of the same": {Responses, response(`{"type":"message","content":[{"type":"web_search_call"}]}`), base, All},
	} {
		for way, next := range map[string]func(int) int{"whole": whole, "random": random, "pieces": func(left int) int { return min(left, 16<<10) }} {
			u, seen, _ := feed(tt.reader.Meter(Reply{Status: 200, ContentType: "application/json"}), []byte(tt.body), next)
			if u != tt.want || seen != tt.seen {
				t.Errorf("%s, %s: %+v, seen %d, want %+v, %d", name, way, u, seen, tt.want, tt.seen)
			}
		}
	}
}
