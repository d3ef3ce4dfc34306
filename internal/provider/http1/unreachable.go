package http1

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strings"
	"syscall"
)

// Unreachable is the error of a call that got no reply, or not a whole one. Its
// text holds nothing that a provider has written, so that it can be logged.
type Unreachable struct {
	// Cause is one of dns, refused, reset, unreachable, timeout, tls, closed,
	// malformed, proxy, forbidden, unsendable, canceled and other.
	Cause string
	// Detail says more, in words of the gateway's or of the system's; "" for none.
	Detail string
	Err    error // as it came; its text may quote the provider
}

// Error is the cause and the detail.
func (u *Unreachable) Error() string {
	if u.Detail == "" {
		return u.Cause
	}
	return u.Cause + ": " + u.Detail
}

// Unwrap is Err.
func (u *Unreachable) Unwrap() error { return u.Err }

// Timeout reports whether the provider took too long.
func (u *Unreachable) Timeout() bool { return u.Cause == "timeout" }

// Unreached is the error of a transport as its callers get it: the *Unreachable in
// it, or else one that says why.
func Unreached(err error) *Unreachable {
	if known, ok := errors.AsType[*Unreachable](err); ok {
		return known
	}
	cause, detail := causeOf(err)
	return &Unreachable{cause, detail, err}
}

func causeOf(err error) (cause, detail string) {
	var name *net.DNSError
	var op *net.OpError
	var wait net.Error
	isOp := errors.As(err, &op)
	switch {
	case isOp && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")):
		return "proxy", ""
	case errors.As(err, &name):
		if name.IsNotFound {
			return "dns", "no such host"
		}
		return "dns", ""
	case errors.As(err, &wait) && wait.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "timeout", ""
	case errors.Is(err, context.Canceled):
		return "canceled", ""
	}
	if detail, ok := tlsFault(err); ok {
		return "tls", detail
	}
	if cause, detail = systemFault(err); cause != "" {
		return cause, detail
	}
	return replyFault(err)
}

// tlsFault reports whether an error is one of TLS, and says which where that is
// not the provider's to word.
func tlsFault(err error) (detail string, ok bool) {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		verify    *tls.CertificateVerificationError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return "certificate signed by an unknown authority", true
	case errors.As(err, &host):
		return "certificate is not valid for the host name", true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "certificate has expired or is not yet valid", true
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "certificate is not valid", true
	case errors.As(err, &record):
		return "no TLS on this port", true
	case errors.As(err, &op) && op.Op == "remote error":
		return strings.TrimPrefix(op.Err.Error(), "tls: "), true // the name of an alert, or its number
	case errors.As(err, &op) && op.Op == "local error":
		return "", true
	}
	return "", strings.HasPrefix(err.Error(), "tls: ") || strings.HasPrefix(err.Error(), "x509: ")
}

func systemFault(err error) (cause, detail string) {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return "", ""
	}
	switch number {
	case syscall.ECONNREFUSED:
		cause = "refused"
	case syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED:
		cause = "reset"
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.ENETDOWN, syscall.EADDRNOTAVAIL:
		cause = "unreachable"
	default:
		cause = "other"
	}
	return cause, number.Error()
}

func replyFault(err error) (cause, detail string) {
	var protocol textproto.ProtocolError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "closed", ""
	case errors.Is(err, ErrMalformed), errors.As(err, &protocol), strings.Contains(err.Error(), "malformed"):
		return "malformed", ""
	}
	return "other", ""
}
