package provider

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"modelgate/internal/provider/usage"
)

// maxReadReply is how many bytes of a reply ReadReply reads.
const maxReadReply = 8 << 20

var errLongReply = errors.New("reply about a job is too long")

// ReadReply reads a reply about a job: raw as it came, plain without its
// content encoding, nil where it cannot be decoded. A reply of more than 8 MiB
// is an error.
func ReadReply(resp *http.Response) (raw, plain []byte, err error) {
	raw, err = io.ReadAll(io.LimitReader(resp.Body, maxReadReply+1))
	if err != nil {
		return nil, nil, err
	}
	if len(raw) > maxReadReply {
		return nil, nil, errLongReply
	}
	if !Compressed(resp) {
		return raw, raw, nil
	}
	decoder := usage.NewDecoded(resp.Header.Get("Content-Encoding"))
	if decoder == nil {
		return raw, nil, nil
	}
	defer decoder.Close()
	if plain, whole := decoder.Decode(raw); whole && len(plain) <= maxReadReply {
		return raw, plain, nil
	}
	return raw, nil, nil // nothing can be read out of it
}

func contentCoding(h http.Header) string {
	return strings.ToLower(strings.TrimSpace(h.Get("Content-Encoding")))
}
