package http1

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestUnreachable gives every error a cause, and none of a provider's words.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const words = "words of a provider"
	known := &Unreachable{Cause: "forbidden", Detail: "of an address"}
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
		{&net.OpError{Op: "dial", Err: known}, "forbidden: of an address"},
		{&net.OpError{Op: "proxyconnect", Err: errors.New(words)}, "proxy"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "tls: certificate signed by an unknown authority"},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{words}}}}, "tls: certificate is not valid for the host name"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: words}}, "tls: certificate has expired or is not yet valid"},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}}, "tls: certificate is not valid"},
		{tls.RecordHeaderError{Msg: words}, "tls: no TLS on this port"},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(40)}, "tls: handshake failure"},
		{errors.New("tls: server selected " + words), "tls"},
		{fmt.Errorf("closed before its reply: %w", io.ErrUnexpectedEOF), "closed"},
		{fmt.Errorf("%w: %w", ErrMalformed, textproto.ProtocolError("malformed MIME header line: "+words)), "malformed"},
		{fmt.Errorf("%w: %w", ErrMalformed, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "reset: connection reset by peer"},
		{fmt.Errorf("net/http: HTTP/1.x transport connection broken: malformed HTTP response %q", words), "malformed"},
		{ErrMalformed, "malformed"},
		{errors.New(words), "other"},
	} {
		err := Unreached(c.err)
		if got := err.Error(); got != c.want || strings.Contains(got, words) || err != known && !errors.Is(Unreached(err), c.err) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
