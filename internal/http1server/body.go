package http1server

import (
	"io"
	"net/http"
)

// body is the body of a request: what came with its head, and what comes after.
type body struct {
	t      *transaction
	left   int64 // bytes that have not been read
	closed bool
}

// Read implements io.Reader. The last bytes come with io.EOF.
func (b *body) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

func (b *body) read(p []byte) (n int, err error) {
	c := b.t.c
	if b.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), b.left)]
	if !c.in.empty() {
		n = copy(p, c.in.unread())
		c.in.skip(n)
	} else if n, err = c.raw.Read(p); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.left -= int64(n)
	if b.left == 0 {
		b.t.c.watch.start(b.t)
		return n, io.EOF
	}
	return n, err
}

// Close implements io.Closer. What is left is read once the answer is out.
func (b *body) Close() error {
	b.closed = true
	return nil
}

// Whole reports whether all of it has come, so that reading it waits for
// nobody.
func (b *body) Whole() bool { return b.left == 0 || b.left <= int64(len(b.t.c.in.unread())) }

// discard reads what is left of a body that nobody wanted, so that the next
// request can be read. It is false where the connection cannot go on.
func (b *body) discard() bool {
	if b.left == 0 {
		return true
	}
	_, err := io.Copy(io.Discard, (*closedBody)(b))
	return err == nil
}

// closedBody reads a body that has been closed.
type closedBody body

// Read implements io.Reader.
func (b *closedBody) Read(p []byte) (int, error) { return (*body)(b).read(p) }
