package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"
)

// fields is the request: a JSON object, or a form whose values are strings.
type fields map[string]any

func (f fields) text(name string) string {
	s, _ := f[name].(string)
	return s
}

// number is the value of a number, or of a form's text that is one; 0 if it is
// neither.
func (f fields) number(name string) float64 {
	switch v := f[name].(type) {
	case float64:
		return v
	case string:
		n, _ := strconv.ParseFloat(v, 64)
		return n
	}
	return 0
}

// count is a number between 1 and most; 1 when it is missing.
func (f fields) count(name string, most int) int {
	n := f.number(name)
	if !(n >= 1) {
		return 1
	}
	return int(min(n, float64(most)))
}

func (f fields) flag(name string) bool {
	switch v := f[name].(type) {
	case bool:
		return v
	case string:
		return v == "true"
	}
	return false
}

func (f fields) object(name string) fields { return asFields(f[name]) }

// asFields is the object v; nil where it is none.
func asFields(v any) fields {
	o, _ := v.(map[string]any)
	return o
}

func (f fields) list(name string) []any {
	l, _ := f[name].([]any)
	return l
}

// empty reports whether a member is missing, or a text or a list with nothing in
// it.
func (f fields) empty(name string) bool {
	return f[name] == nil || f[name] == "" || (f.list(name) != nil && len(f.list(name)) == 0)
}

// decode reads the body: a JSON object or a multipart form.
func (c *call) decode() error {
	c.fields = fields{}
	if len(c.body) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" {
		return c.decodeForm(params["boundary"])
	}
	if err := json.Unmarshal(c.body, &c.fields); err != nil {
		return fmt.Errorf("we could not parse the JSON body of your request: %w", err)
	}
	if c.fields == nil {
		return fmt.Errorf("the body of your request must be a JSON object")
	}
	return nil
}

func (c *call) decodeForm(boundary string) error {
	form, err := multipart.NewReader(bytes.NewReader(c.body), boundary).ReadForm(maxBody)
	if err != nil {
		return fmt.Errorf("we could not parse the form of your request: %w", err)
	}
	for name, values := range form.Value {
		c.fields[name] = values[len(values)-1]
	}
	for name, files := range form.File {
		for _, f := range files {
			c.fields[name] = true
			c.files = append(c.files, f.Size)
		}
	}
	return form.RemoveAll()
}

// prompt is the text of a request.
type prompt struct {
	texts     []string
	steer     string // where directives are looked for
	asked     string // what the answer repeats
	usersTurn bool   // the last turn but the system's is the user's, and no result of a tool
	tokens    int64  // elements of token arrays
}

func (p *prompt) add(v any) string {
	text := textOf(v)
	if text != "" {
		p.texts = append(p.texts, text)
	}
	p.tokens += numbersIn(v)
	return text
}

// words is the number of words, directives not counted, and token elements.
func (p prompt) words() int64 {
	n := p.tokens
	for _, t := range p.texts {
		n += int64(len(strings.Fields(withoutDirectives(t))))
	}
	return n
}

// readTurns reads the formats that have turns: chat completions, responses,
// messages and Gemini's contents.
func readTurns(f fields) prompt {
	var p prompt
	for _, name := range []string{"system", "instructions", "systemInstruction", "system_instruction"} {
		p.add(f[name])
	}
	for _, name := range []string{"messages", "input", "contents", "content"} {
		turns, ok := f[name].([]any)
		if !ok && f[name] != nil {
			turns = []any{f[name]}
		}
		for _, turn := range turns {
			text := p.add(turn)
			result := hasResult(turn)
			if !isSystem(turn) {
				p.usersTurn = isUser(turn) && !result
			}
			switch {
			case text == "":
			case result:
				p.asked = text
			case isUser(turn):
				p.steer, p.asked = text, lastText(turn)
			}
		}
	}
	for _, inner := range []fields{f.object("generateContentRequest"), f.object("input").object("converse")} {
		if inner != nil {
			return readTurns(inner)
		}
	}
	return p
}

func isUser(turn any) bool {
	role := asFields(turn).text("role")
	return role == "" || role == "user"
}

// isSystem reports whether a turn only instructs: coding agents put such turns
// behind that of the user, which is still the one to answer.
func isSystem(turn any) bool {
	role := asFields(turn).text("role")
	return role == "system" || role == "developer"
}

// hasResult reports whether a turn holds what a tool returned, which is nobody's
// to steer with.
func hasResult(turn any) bool {
	f := asFields(turn)
	if f["functionResponse"] != nil || f["toolResult"] != nil || f.text("role") == "tool" || f.text("type") == "tool_result" || strings.HasSuffix(f.text("type"), "_output") {
		return true
	}
	return slices.ContainsFunc(append(f.list("content"), f.list("parts")...), hasResult)
}

// readAll reads the formats whose text is not in turns.
func readAll(f fields) prompt {
	var p prompt
	for _, name := range []string{"prompt", "input", "content", "query", "documents", "instructions", "text"} {
		p.add(f[name])
	}
	p.steer = strings.Join(p.texts, "\n")
	p.asked = p.steer
	return p
}

// textOf is all text in a value: a string, a list, or an object that holds it
// under one of the names providers use.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var texts []string
		for _, e := range v {
			if t := textOf(e); t != "" {
				texts = append(texts, t)
			}
		}
		return strings.Join(texts, "\n")
	case map[string]any:
		return textOf([]any{
			v["text"], v["content"], v["parts"], v["prompt"], v["output"], v["functionResponse"], v["response"], v["result"], v["toolResult"],
		})
	}
	return ""
}

// lastText is the last of the texts in a turn: agents put what they tell the
// model of themselves before what the user says.
func lastText(turn any) string {
	parts := append(asFields(turn).list("content"), asFields(turn).list("parts")...)
	for _, part := range slices.Backward(parts) {
		if text := textOf(part); text != "" {
			return text
		}
	}
	return textOf(turn)
}

// numbersIn counts the elements of token arrays, which may be nested once.
func numbersIn(v any) int64 {
	list, _ := v.([]any)
	var n int64
	for _, e := range list {
		switch e := e.(type) {
		case float64:
			n++
		case []any:
			n += numbersIn(e)
		}
	}
	return n
}
