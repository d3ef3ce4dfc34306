package httpx

import (
	"io"
	"net/http"
	"strings"

	"modelgate"
	"modelgate/internal/httpfield"
)

// firstRead is the most memory that a body gets before any of it has arrived: a
// declared length is a claim, and more memory is given as bytes come in.
const firstRead = 512 << 10

var errBrokenBody = &modelgate.Error{Kind: modelgate.BadRequest, Message: "request body could not be read to its end"}

// ReadBody reads a whole request body of at most limit bytes, declared or
// chunked, into memory of the reservation, which grows with it; see
// Reservation.Recycle. One byte more is request_too_large; a body that is
// compressed, or that breaks off, is bad_request. Other errors are those of
// Reservation.Reserve.
func ReadBody(r *http.Request, limit int64, memory *Reservation) ([]byte, error) {
	if err := checkEncoding(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, modelgate.ErrBodyTooLarge
	}
	if r.Body == nil || r.ContentLength == 0 {
		return nil, nil
	}
	size := int64(leastBuffer)
	if r.ContentLength > 0 {
		size = r.ContentLength + 1 // one more, so that the end is seen without growing
	}
	body, err := memory.grow(min(size, firstRead), nil)
	if err != nil {
		return nil, err
	}
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > limit:
			return nil, modelgate.ErrBodyTooLarge
		case err == io.EOF:
			return body, nil
		case err != nil:
			return nil, errBrokenBody
		}
		if len(body) == cap(body) {
			if body, err = memory.grow(min(2*int64(cap(body)), limit+1), body); err != nil {
				return nil, err
			}
		}
	}
}

// checkEncoding refuses a compressed body: the gateway must check the bytes that
// it forwards, and a small body must not expand to a large one.
func checkEncoding(h http.Header) error {
	for coding := range httpfield.Elements(h["Content-Encoding"]) {
		if !strings.EqualFold(coding, "identity") {
			return modelgate.Errorf(modelgate.BadRequest, "Content-Encoding is not supported; send the body uncompressed")
		}
	}
	return nil
}
