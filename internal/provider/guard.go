package provider

import (
	"errors"
	"net/http"
	"net/textproto"

	"modelgate/internal/httpfield"
	"modelgate/internal/provider/target"
)

// ErrUnsendable says that a request holds what must not stand in its request line
// or header. Nothing of it has left.
var ErrUnsendable = errors.New("request cannot be written")

// sendable judges a request before any transport writes it, whoever made it, and
// keeps the target as it will stand in the request line. What leaves then is one
// request with this target to every reader.
func sendable(a *Attempt) error {
	req := a.Request
	a.target = req.URL.RequestURI()
	switch {
	case !httpfield.IsToken(req.Method), req.Method == http.MethodConnect:
		return unsendable("method")
	case a.target[0] != '/' || target.JudgeRaw(a.target) != nil:
		return unsendable("target")
	case req.Host == "" || target.JudgeRaw(req.Host) != nil:
		return unsendable("host")
	}
	for name, values := range req.Header {
		if !httpfield.IsToken(name) || framesRequest(name) {
			return unsendable("header name")
		}
		for _, v := range values {
			if !httpfield.IsValue(v) {
				return unsendable("header value")
			}
		}
	}
	return nil
}

func unsendable(part string) error {
	return &Unreachable{Cause: "unsendable", Detail: ErrUnsendable.Error() + ": " + part, Err: ErrUnsendable}
}

// framesRequest reports whether a header says where a request goes or ends, or
// concerns the connection: these the writer writes itself.
func framesRequest(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return name == "Host" || name == "Content-Length" || hopByHop(name) && name != "Proxy-Authorization"
}
