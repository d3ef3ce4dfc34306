package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// serveUpstream is a provider that costs next to nothing: it parses no more
// of a request than where it ends and which model it names, and answers from
// constants.
func serveUpstream(l net.Listener) error {
	ready := newAnswers()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			r := bufio.NewReaderSize(conn, 256<<10)
			for {
				format, model, err := readRequest(r)
				if err != nil {
					return
				}
				if err := ready.answer(conn, format, model); err != nil {
					return
				}
			}
		}()
	}
}

// answers are all that the models say, streams in the pieces in which a
// provider sends them.
type answers struct {
	whole       []byte
	stream      [][]byte
	short       [len(apiPaths)][]byte
	shortStream [len(apiPaths)][][]byte
}

func newAnswers() answers {
	var words []string
	for i := range 40 {
		words = append(words, fmt.Sprintf("word%d ", i))
	}
	short := shortWords()
	text := strings.Join(short, "")
	return answers{
		whole: cannedAnswer(strings.Repeat("answer ", 130), 180, 160), stream: cannedStream(words, 180, 40),
		short:       [...][]byte{cannedAnswer(text, 25, 35), responsesAnswer(text), messagesAnswer(text)},
		shortStream: [...][][]byte{shortStream(short), responsesStream(short), messagesStream(short)},
	}
}

// shortWords are a short answer's, with the space behind each.
func shortWords() []string {
	return strings.SplitAfter("This is a short answer from a provider that never thinks before it speaks. It has about as many words as replies to simple questions have in most of the everyday use cases.", " ")
}

// answer writes what a model says. Only the short answers depend on the format.
func (a *answers) answer(conn net.Conn, format api, model string) error {
	switch model {
	case modelSlow:
		time.Sleep(50 * time.Millisecond)
	case modelLate:
		time.Sleep(200 * time.Millisecond)
		return write(conn, bytes.Join(a.stream, nil))
	case modelBurst:
		return write(conn, bytes.Join(a.stream, nil))
	case modelPaced:
		return writePieces(conn, a.stream, 10*time.Millisecond)
	case modelShort:
		return write(conn, a.short[format])
	case modelShortStream:
		return writePieces(conn, a.shortStream[format], 0)
	case modelHeld:
		if err := write(conn, a.stream[0]); err != nil {
			return err
		}
		_, err := conn.Read(make([]byte, 1)) // until the other side ends it
		return err
	}
	return write(conn, a.whole)
}

func write(conn net.Conn, text []byte) error {
	_, err := conn.Write(text)
	return err
}

// writePieces writes each piece by itself, with a pause before all but the
// first.
func writePieces(conn net.Conn, pieces [][]byte, pause time.Duration) error {
	for i, piece := range pieces {
		if i > 0 && pause > 0 {
			time.Sleep(pause)
		}
		if err := write(conn, piece); err != nil {
			return err
		}
	}
	return nil
}

// readRequest reads one request and says which API it calls and which model it
// names.
func readRequest(r *bufio.Reader) (format api, model string, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, "", err
	}
	format = apiAt(line)
	length, chunked := 0, false
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return 0, "", err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, "", err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
	if chunked {
		model, err = readChunked(r)
	} else {
		model, err = readBody(r, length)
	}
	return format, cmp.Or(model, modelPlain), err
}

// readBody reads a body and says which model it names, if it names one.
func readBody(r *bufio.Reader, length int) (string, error) {
	const near, far = 60, 64 << 10 // some gateways move the model to the end
	start, err := r.Peek(min(length, near))
	if err != nil {
		return "", err
	}
	model := modelIn(start)
	if model == "" && length <= far {
		if start, err = r.Peek(length); err != nil {
			return "", err
		}
		model = modelIn(start)
	}
	_, err = r.Discard(length)
	return model, err
}

// readChunked is readBody for an unknown length.
func readChunked(r *bufio.Reader) (string, error) {
	body, err := io.ReadAll(httputil.NewChunkedReader(r))
	if err != nil {
		return "", err
	}
	_, err = r.Discard(len("\r\n")) // there are no trailers
	return modelIn(body), err
}

// modelIn is the model that a part of a body names, if it names one.
func modelIn(part []byte) string {
	for _, m := range models {
		if bytes.Contains(part, []byte(`"`+m+`"`)) {
			return m
		}
	}
	return ""
}

// serveHTTP2 is the provider over HTTP/2. It answers every
// model at once.
func serveHTTP2(l net.Listener) error {
	_, whole, _ := bytes.Cut(newAnswers().whole, []byte("\r\n\r\n"))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(whole) // the caller may be gone
	})}
	return server.Serve(l)
}

func cannedAnswer(text string, prompt, completion int) []byte {
	return cannedJSON(fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"sim-chat","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":0}}}`,
		text, prompt, completion, prompt+completion, prompt/3))
}

// cannedJSON is a whole answer with a body.
func cannedJSON(body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func cannedStream(words []string, prompt, completion int) [][]byte {
	var events []string
	event := func(data string) { events = append(events, "data: "+data+"\n\n") }
	for _, word := range words {
		event(fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-chat","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}],"usage":null}`, word))
	}
	event(fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-chat","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, prompt, completion, prompt+completion))
	event("[DONE]")
	return cannedEvents(events)
}

// cannedEvents is a stream in the pieces in which a provider sends it, the
// header with the first event.
func cannedEvents(events []string) [][]byte {
	pieces := [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")}
	for _, event := range events {
		pieces = append(pieces, fmt.Appendf(nil, "%x\r\n%s\r\n", len(event), event))
	}
	last := len(pieces) - 1
	pieces[last] = append(pieces[last], "0\r\n\r\n"...)
	pieces[0] = append(pieces[0], pieces[1]...)
	return append(pieces[:1], pieces[2:]...)
}
