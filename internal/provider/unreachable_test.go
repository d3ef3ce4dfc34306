package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"syscall"
	"testing"

	"modelgate/internal/provider/http1"
	"modelgate/internal/provider/http1/http1test"
)

// TestUnreachable gives every error a cause, and none of a provider's words.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const words = "words of a provider"
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: words, Name: words, IsNotFound: true}}, "dns: no such host"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "refused: connection refused"},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "reset: connection reset by peer"},
		{os.NewSyscallError("write", syscall.EPIPE), "reset: broken pipe"},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}, "unreachable: network is unreachable"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "timeout"},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, net.ErrClosed), "timeout"},
		{fmt.Errorf("%w: %w", context.Canceled, net.ErrClosed), "canceled"},
		{&net.OpError{Op: "dial", Err: errMetadata}, "forbidden: address of a cloud metadata service"},
		{&net.OpError{Op: "proxyconnect", Err: errors.New(words)}, "proxy"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "tls: certificate signed by an unknown authority"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{words}}}}, "tls: certificate is not valid for the host name"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: words}}, "tls: certificate has expired or is not yet valid"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}}, "tls: certificate is not valid"},
		{tls.RecordHeaderError{Msg: words}, "tls: no TLS on this port"},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(40)}, "tls: handshake failure"},
		{errors.New("tls: server selected " + words), "tls"},
		{fmt.Errorf("closed before its reply: %w", io.ErrUnexpectedEOF), "closed"},
		{fmt.Errorf("%w: %w", http1.ErrMalformed, textproto.ProtocolError("malformed MIME header line: "+words)), "malformed"},
		{fmt.Errorf("%w: %w", http1.ErrMalformed, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "reset: connection reset by peer"},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: malformed HTTP response %q", words), "malformed"},
		{http1.ErrMalformed, "malformed"},
		{unsendable("target"), "unsendable: request cannot be written: target"},
		{errors.New(words), "other"},
	} {
		err := unreachable(c.err)
		if got := err.Error(); got != c.want || strings.Contains(got, words) || !errors.Is(unreachable(err), c.err) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// TestErrorsDoNotQuoteReplies reads replies that break the rules: the errors, of
// headers and of bodies, hold nothing of them.
func TestErrorsDoNotQuoteReplies(t *testing.T) {
	t.Parallel()
	const words = "words-mark"
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	for _, reply := range []string{
		words + "\r\n\r\n", "HTTP/1.1 " + words + "\r\n\r\n", "HTTP/1.1 200 OK\r\n" + words + "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: " + words + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + words + "\r\n\r\n", chunked + "\r\n" + words, chunked + "Trailer: X\r\n\r\n2\r\nab\r\n0\r\n" + words + "\r\n\r\n",
		chunked + "\r\n2\r\nab\r\n0\r\n" + words + "\r\n\r\n", chunked + "Pragma: x\r\n\r\n" + words + "\r\n",
	} {
		u := http1test.NewPeer(t, func(conn net.Conn, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(conn, reply)
			return false
		})
		own := peered(t, u, nil)
		for name, p := range map[string]*Provider{"own": own, "net/http": {transport: viaNet(own, u), base: own.base, format: own.format}} {
			p.secrets.now = own.secrets.now
			p.secrets.optional = true
			_, _, _, err := send(t.Context(), t, p, Call{Method: "POST", Path: "/x", Body: []byte("{}")})
			var known *Unreachable
			if !errors.As(err, &known) || strings.Contains(err.Error(), words) {
				t.Errorf("%s: %q: %v, want an error in other words", name, reply, err)
			}
		}
	}
}
