package config

import (
	"net/url"
	"strings"
)

// Operator is the API of whoever runs the gateway.
type Operator struct {
	// Address, host:port, of a listener of its own for /operator/v1, whose callers
	// present operator tokens (`modelgate operator token create`). It must differ
	// from the other listeners. Empty means that there is no such API.
	Listen string `yaml:"listen"`

	// Public address of that listener, for the links of `modelgate operator link`. It
	// is https, or http on a loopback address. Empty is the address of listen.
	BaseURL string `yaml:"base_url"`

	// Certificate of that listener. Without it the listener speaks plain HTTP, for
	// use behind a proxy or on one machine.
	TLS TLS `yaml:"tls"`
}

// Address is where browsers reach the console.
func (o *Operator) Address() string {
	switch {
	case o.BaseURL != "":
		return o.BaseURL
	case o.TLS.CertFile != "":
		return "https://" + o.Listen
	}
	return "http://" + o.Listen
}

func (o *Operator) check(d *document, server *Server) {
	if o.Listen != "" {
		checkAddress(d, "operator.listen", o.Listen)
		same := (o.Listen == server.Listen || o.Listen == server.AdminListen) && !strings.HasSuffix(o.Listen, ":0")
		d.faultIf(same, "operator.listen", "must differ from server.listen and server.admin_listen")
	}
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		good := err == nil && u.Host != "" && u.User == nil && u.Path == "" && u.RawQuery == "" && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && loopback(u.Hostname()))
		d.faultIf(!good, "operator.base_url", "must be https://host[:port] without a path; http is for loopback addresses only")
	}
	d.faultIf(o.TLS.CertFile != "" && o.TLS.KeyFile == "", "operator.tls.cert_file", "needs key_file beside it")
	d.faultIf(o.TLS.KeyFile != "" && o.TLS.CertFile == "", "operator.tls.key_file", "needs cert_file beside it")
}
