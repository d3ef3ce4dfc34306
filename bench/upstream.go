package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// serveUpstream is a provider that costs next to nothing: it parses no more
// of a request than where it ends, and answers from constants.
func serveUpstream(l net.Listener) error {
	whole, stream := cannedAnswer(), cannedStream()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			r := bufio.NewReaderSize(conn, 64<<10)
			for {
				streamed, err := readRequest(r)
				if err != nil {
					return
				}
				answer := whole
				if streamed {
					answer = stream
				}
				if _, err := conn.Write(answer); err != nil {
					return
				}
			}
		}()
	}
}

// readRequest reads one request and reports whether it asks for a stream.
func readRequest(r *bufio.Reader) (bool, error) {
	length := 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return false, err
			}
		}
	}
	start, err := r.Peek(min(length, 200))
	if err != nil {
		return false, err
	}
	streamed := bytes.Contains(start, []byte(`"stream":true`))
	_, err = r.Discard(length)
	return streamed, err
}

func cannedAnswer() []byte {
	body := fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion","created":1790000000,"model":"sim-chat","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":180,"completion_tokens":160,"total_tokens":340,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":0}}}`,
		strings.Repeat("answer ", 130))
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func cannedStream() []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	event := func(data string) {
		frame := "data: " + data + "\n\n"
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(frame), frame)
	}
	for i := range 40 {
		event(fmt.Sprintf(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-chat","choices":[{"index":0,"delta":{"content":"word%d "},"finish_reason":null}],"usage":null}`, i))
	}
	event(`{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"sim-chat","choices":[],"usage":{"prompt_tokens":180,"completion_tokens":40,"total_tokens":220}}`)
	event("[DONE]")
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}
