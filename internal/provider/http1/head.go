package http1

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"

	"modelgate/internal/httpfield"
)

// plainHead reads the header of a reply if it is a plain one that lies whole
// in the buffer, as nearly all do: of version 1.1, with a body whose end is
// stated once, and without anything that readers may take in different ways.
// Else it reports false, has used nothing, and the header is net/http's to
// judge.
func (c *conn) plainHead(req *http.Request, r *connReply) bool {
	if req.Method == http.MethodHead || req.Method == http.MethodConnect {
		return false
	}
	text, ok := c.upcomingHead()
	if !ok {
		return false
	}
	h := plainHeader{length: -1}
	r.resp = http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req}
	lines, ok := h.status(text, &r.resp)
	if !ok || !h.fields(lines) || h.chunked == (h.length >= 0) {
		return false
	}
	_, _ = c.r.Discard(len(text)) // lies in the buffer
	r.resp.Header, r.resp.ContentLength = h.header, h.length
	switch {
	case h.chunked:
		r.piece.c, r.body.from = c, &r.piece
	case h.length > 0:
		r.span, r.body.from = lengthBody{c, h.length}, &r.span
	default:
		r.body.from = http.NoBody
	}
	return true
}

// upcomingHead is the header up to and with its empty line, where one read has
// brought it whole. More is not waited for: what has come may be no header.
func (c *conn) upcomingHead() (string, bool) {
	// What cannot be peeked at is read, and complained of, by net/http.
	if _, err := c.r.Peek(1); err != nil {
		return "", false
	}
	b, _ := c.r.Peek(c.r.Buffered())
	end := bytes.Index(b, []byte("\r\n\r\n")) + 4
	if end < 4 {
		return "", false
	}
	return string(b[:end]), true
}

// plainHeader is a header that is read strictly.
type plainHeader struct {
	header  http.Header
	length  int64 // -1: not stated
	chunked bool
}

// status reads the status line, and returns what follows it.
func (h *plainHeader) status(text string, resp *http.Response) (rest string, ok bool) {
	line, rest, _ := strings.Cut(text, "\r\n")
	status, ok := strings.CutPrefix(line, "HTTP/1.1 ")
	if !ok || len(status) < 3 || len(status) == 4 || len(status) > 4 && status[3] != ' ' {
		return "", false
	}
	for i := range len(status) {
		if c := status[i]; i < 3 && (c < '0' || c > '9') || c < ' ' || c > '~' {
			return "", false
		}
	}
	code := int(status[0]-'0')*100 + int(status[1]-'0')*10 + int(status[2]-'0')
	if code < 200 || code > 599 || code == http.StatusNoContent || code == http.StatusNotModified || status[len(status)-1] == ' ' {
		return "", false
	}
	resp.Status, resp.StatusCode = status, code
	return rest, true
}

// fields reads the lines up to the empty one.
func (h *plainHeader) fields(lines string) (ok bool) {
	h.header, ok = httpfield.Parse(lines, func(name, value string) (keep, ok bool) {
		return name != "Transfer-Encoding", h.framing(name, value)
	})
	return ok
}

// framing takes what says where the reply ends. It reports false for what is
// not plain: another way than one length or chunks, or both, or a connection
// that ends.
func (h *plainHeader) framing(name, value string) bool {
	switch name {
	case "Content-Length":
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || h.length >= 0 {
			return false
		}
		h.length = int64(n)
	case "Transfer-Encoding":
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return false
		}
		h.chunked = true
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Trailer", "Pragma":
		return false
	}
	return true
}
