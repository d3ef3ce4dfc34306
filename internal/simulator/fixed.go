package simulator

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// fixedAnswers is what Options.Fixed answers with: one completion of 1,260
// bytes, and one stream of 40 chunks of text.
type fixedAnswers struct {
	body   []byte
	length []string
	frames [][]byte
}

// The bill of a fixed answer.
const (
	fixedSize   = 1260
	fixedChunks = 40
	fixedInput  = 25
	fixedOutput = 40
)

func newFixedAnswers() fixedAnswers {
	p := &Provider{opts: Options{Now: func() time.Time { return time.Unix(modelsCreated, 0) }}}
	c := &call{r: &http.Request{Method: http.MethodPost}, d: newDirectives(), fields: fields{"stream_options": map[string]any{"include_usage": true}}}
	usage := newChatUsage(tokens{input: fixedInput, output: fixedOutput})
	reply := chatReply{ID: "chatcmpl-fixed", Object: "chat.completion", Created: p.opts.Now().Unix(), Model: "fixed", ServiceTier: "default"}
	pieces := make([]string, fixedChunks)
	for i := range pieces {
		pieces[i] = " word"
	}
	stream := c.chatStream(reply, usage, chatText{pieces, "stop", 1})

	finish, text := "stop", ""
	reply.Choices = []chatChoice{{FinishReason: &finish, Message: &chatMessage{Role: "assistant", Content: &text}}}
	reply.Usage = c.usageJSON(usage)
	text = strings.Repeat("x", fixedSize-len(encode(reply)))
	body := encode(reply)
	return fixedAnswers{body: body, length: []string{strconv.Itoa(len(body))}, frames: stream.frames}
}

// isFixed says which requests Options.Fixed is about.
func isFixed(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions")
}

func (p *Provider) serveFixed(w http.ResponseWriter, r *http.Request) {
	served := Served{Seq: p.seq.Add(1), Method: r.Method, Path: r.URL.Path, Model: "fixed", Status: http.StatusOK,
		InputTokens: fixedInput, OutputTokens: fixedOutput, Usage: true}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	served.Marker = fixedMark(body)
	if bytes.Contains(body, []byte(`"stream":true`)) || bytes.Contains(body, []byte(`"stream": true`)) {
		err = p.fixedStream(w, &served)
	} else {
		h := w.Header()
		h["Content-Type"] = []string{"application/json"}
		h["Content-Length"] = p.fixed.length
		_, err = w.Write(p.fixed.body)
		served.Bytes = fixedSize
	}
	served.Complete = err == nil && r.Context().Err() == nil
	if p.opts.Ledger != nil {
		p.opts.Ledger.Record(served)
	}
}

func (p *Provider) fixedStream(w http.ResponseWriter, served *Served) error {
	w.Header()["Content-Type"] = []string{eventStream}
	flush := http.NewResponseController(w)
	for _, frame := range p.fixed.frames {
		n, err := w.Write(frame)
		served.Bytes += int64(n)
		if err != nil {
			return err
		}
		if err := flush.Flush(); err != nil {
			return err
		}
		served.Chunks++
	}
	return nil
}

// fixedMark finds [[mark=…]] in the raw request.
func fixedMark(body []byte) string {
	_, after, ok := bytes.Cut(body, []byte("[[mark="))
	if !ok {
		return ""
	}
	mark, _, ok := bytes.Cut(after, []byte("]]"))
	if !ok {
		return ""
	}
	return string(mark)
}
