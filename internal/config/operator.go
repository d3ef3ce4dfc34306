package config

import "strings"

// Operator is the API of whoever runs the gateway.
type Operator struct {
	// Address, host:port, of a listener of its own for /operator/v1, whose callers
	// present operator tokens (`modelgate operator token create`). It must differ
	// from the other listeners. Empty means that there is no such API.
	Listen string `yaml:"listen"`

	// Certificate of that listener. Without it the listener speaks plain HTTP, for
	// use behind a proxy or on one machine.
	TLS TLS `yaml:"tls"`
}

func (o *Operator) check(d *document, server *Server) {
	if o.Listen != "" {
		checkAddress(d, "operator.listen", o.Listen)
		same := (o.Listen == server.Listen || o.Listen == server.AdminListen) && !strings.HasSuffix(o.Listen, ":0")
		d.faultIf(same, "operator.listen", "must differ from server.listen and server.admin_listen")
	}
	d.faultIf(o.TLS.CertFile != "" && o.TLS.KeyFile == "", "operator.tls.cert_file", "needs key_file beside it")
	d.faultIf(o.TLS.KeyFile != "" && o.TLS.CertFile == "", "operator.tls.key_file", "needs cert_file beside it")
}
