package http1server

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// input is what has been read of a connection and not used. While there is
// nothing, it holds no memory: of thousands of connections most wait for their
// next request, or for the events of a stream.
type input struct {
	raw      net.Conn
	buffers  *sync.Pool      // of *[maxHead]byte
	poll     syscall.RawConn // nil where the system's connection is hidden
	try      func(descriptor uintptr) bool
	buf      *[maxHead]byte // nil while from == to
	from, to int
	err      error // of try
}

func (in *input) open(raw net.Conn, buffers *sync.Pool) {
	in.raw, in.buffers = raw, buffers
	if c, ok := raw.(syscall.Conn); ok {
		in.poll, _ = c.SyscallConn() // nil has it read as any connection is
	}
	in.try = in.tryRead
}

func (in *input) empty() bool { return in.from == in.to }

// unread is what has been read and not used, valid until the next call of
// another method.
func (in *input) unread() []byte {
	if in.buf == nil {
		return nil
	}
	return in.buf[in.from:in.to]
}

// skip uses the first n bytes of unread.
func (in *input) skip(n int) {
	in.from += n
	if in.empty() {
		in.release()
	}
}

// release forgets what is left.
func (in *input) release() {
	if in.buf != nil {
		in.buffers.Put(in.buf)
	}
	in.buf, in.from, in.to = nil, 0, 0
}

// full reports that there is no room for more.
func (in *input) full() bool { return in.to == maxHead }

// push adds a byte, which was read elsewhere. There must be room for it.
func (in *input) push(b byte) {
	in.hold()
	in.buf[in.to] = b
	in.to++
}

func (in *input) hold() {
	if in.buf == nil {
		in.buf = in.buffers.Get().(*[maxHead]byte)
	}
}

// fill waits for more bytes. There must be room for them: unread is shorter
// than maxHead.
func (in *input) fill() error {
	if in.empty() && in.poll != nil {
		in.err = nil
		if err := in.poll.Read(in.try); err != nil {
			return err
		}
		return in.err
	}
	in.hold()
	if in.from > 0 {
		in.from, in.to = 0, copy(in.buf[:], in.unread())
	}
	n, err := in.raw.Read(in.buf[in.to:])
	in.to += n
	if in.empty() {
		in.release()
	}
	return err
}

// tryRead is the step of poll: it reads if there is something to read, and is
// false if the connection has to be waited for, without a buffer.
func (in *input) tryRead(descriptor uintptr) bool {
	in.hold()
	n, err := syscall.Read(int(descriptor), in.buf[:])
	for err == syscall.EINTR {
		n, err = syscall.Read(int(descriptor), in.buf[:])
	}
	switch {
	case err == syscall.EAGAIN:
		in.release()
		return false
	case err != nil:
		in.err = err
	case n == 0:
		in.err = io.EOF
	default:
		in.to = n
		return true
	}
	in.release()
	return true
}
