package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// serveUpstream is a provider that costs next to nothing: it parses no more
// of a request than where it ends and which model it names, and answers from
// constants.
func serveUpstream(l net.Listener) error {
	whole, stream := cannedAnswer(), cannedStream()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			r := bufio.NewReaderSize(conn, 256<<10)
			for {
				model, err := readRequest(r)
				if err != nil {
					return
				}
				if err := answer(conn, model, whole, stream); err != nil {
					return
				}
			}
		}()
	}
}

// answer writes what a model says.
func answer(conn net.Conn, model string, whole []byte, stream [][]byte) error {
	switch model {
	case modelSlow:
		time.Sleep(50 * time.Millisecond)
	case modelLate:
		time.Sleep(200 * time.Millisecond)
		_, err := conn.Write(bytes.Join(stream, nil))
		return err
	case modelBurst:
		_, err := conn.Write(bytes.Join(stream, nil))
		return err
	case modelPaced:
		for i, chunk := range stream {
			if i > 0 {
				time.Sleep(10 * time.Millisecond)
			}
			if _, err := conn.Write(chunk); err != nil {
				return err
			}
		}
		return nil
	case modelHeld:
		if _, err := conn.Write(stream[0]); err != nil {
			return err
		}
		_, err := conn.Read(make([]byte, 1)) // until the other side ends it
		return err
	}
	_, err := conn.Write(whole)
	return err
}

// readRequest reads one request and says which model it names.
func readRequest(r *bufio.Reader) (string, error) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return "", err
			}
		}
	}
	start, err := r.Peek(min(length, 60))
	if err != nil {
		return "", err
	}
	_, err = r.Discard(length)
	return modelIn(start), err
}

// modelIn is the model that the first bytes of a body name.
func modelIn(start []byte) string {
	for _, m := range models {
		if bytes.Contains(start, []byte(`"`+m+`"`)) {
			return m
		}
	}
	return modelPlain
}

// serveHTTP2 is the provider over HTTP/2. It answers every
// model at once.
func serveHTTP2(l net.Listener) error {
	_, whole, _ := bytes.Cut(cannedAnswer(), []byte("\r\n\r\n"))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(whole) // the caller may be gone
	})}
	return server.Serve(l)
}

func cannedAnswer() []byte {
	body := fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"sim-chat","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":180,"completion_tokens":160,"total_tokens":340,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":0}}}`,
		strings.Repeat("answer ", 130))
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// cannedStream is a stream in the pieces in which a provider sends it.
func cannedStream() [][]byte {
	pieces := [][]byte{[]byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")}
	event := func(data string) {
		frame := "data: " + data + "\n\n"
		pieces = append(pieces, fmt.Appendf(nil, "%x\r\n%s\r\n", len(frame), frame))
	}
	for i := range 40 {
		event(fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-chat","choices":[{"index":0,"delta":{"content":"word%d "},"finish_reason":null}],"usage":null}`, i))
	}
	event(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-chat","choices":[],"usage":{"prompt_tokens":180,"completion_tokens":40,"total_tokens":220}}`)
	event("[DONE]")
	last := len(pieces) - 1
	pieces[last] = append(pieces[last], "0\r\n\r\n"...)
	pieces[0] = append(pieces[0], pieces[1]...) // the header comes with the first event
	return append(pieces[:1], pieces[2:]...)
}
