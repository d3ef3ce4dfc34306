package http1

import (
	"errors"
	"fmt"
	"io"
)

// ErrMalformed is the error of a reply that breaks the rules of HTTP/1.1 or is
// longer than it may be. The text of an error that wraps it may quote the server.
var ErrMalformed = errors.New("not a reply of HTTP")

// replyError is a fault of a reply, in words of the gateway's. It is ErrMalformed.
type replyError string

const (
	errReplyHead replyError = "provider's reply has too long a header"
	errInterim   replyError = "provider sent too many interim replies"
	errChunked   replyError = "provider's reply has malformed chunks"
)

func (e replyError) Error() string        { return string(e) }
func (e replyError) Is(target error) bool { return target == ErrMalformed }

// headError is the error of a header that could not be read.
func headError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("provider closed the connection before its reply: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}
