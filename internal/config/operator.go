package config

import (
	"net/url"
	"slices"
	"strings"
	"time"
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

	// Name of the provider of sign_in.providers that operators sign in with. What it
	// has to know beside the addresses of dashboards is
	// {operator.base_url}/operator/session/callback, where it sends them back. Empty:
	// links and tokens alone open the console. May change without a restart.
	SignIn string `yaml:"sign_in"`

	// Which accounts of that provider are operators. They are judged at each
	// sign-in: the first that fits counts, and an account without any is refused.
	// Default: none. May change without a restart.
	Roles []OperatorRole `yaml:"roles"`

	// How long an operator stays signed in to the console after the last request;
	// from 5m to 12h. Sessions of links last an hour in any case. May change
	// without a restart.
	Idle time.Duration `yaml:"idle"`

	// How long an operator stays signed in at most; from 15m to 24h. May change
	// without a restart.
	Absolute time.Duration `yaml:"absolute"`
}

func (o *Operator) setDefaults() { o.Idle, o.Absolute = 30*time.Minute, 12*time.Hour }

// OperatorRole makes the accounts of a group operators.
type OperatorRole struct {
	// The group; `*` is every account.
	Group string `yaml:"group"`

	// What they may do: `admin` everything, `finance` money, `support` keys,
	// `auditor` nothing but read.
	Role string `yaml:"role"`
}

const maxOperatorRoles = 100

func (o *Operator) checkSignIn(d *document, providers []SignInProvider) {
	d.faultIf(o.Idle < 5*time.Minute || o.Idle > 12*time.Hour, "operator.idle", "must be from 5m to 12h")
	d.faultIf(o.Absolute < 15*time.Minute || o.Absolute > 24*time.Hour, "operator.absolute", "must be from 15m to 24h")
	known := slices.ContainsFunc(providers, func(p SignInProvider) bool { return p.Name == o.SignIn })
	d.faultIf(o.SignIn != "" && !known, "operator.sign_in", "want the name of one of sign_in.providers")
	d.faultIf(o.SignIn != "" && o.BaseURL == "", "operator.sign_in", "needs operator.base_url: the provider sends operators back there")
	d.faultIf(len(o.Roles) > maxOperatorRoles, "operator.roles", "must have at most %d entries", maxOperatorRoles)
	if o.SignIn != "" && len(o.Roles) == 0 {
		d.warn("operator.roles", "is empty: nobody can sign in to the console with an account")
	}
	for i := range o.Roles {
		at := element("operator.roles", i)
		required(d, at, "group", o.Roles[i].Group)
		oneOf(d, at+".role", o.Roles[i].Role, "admin", "finance", "support", "auditor")
	}
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

func (o *Operator) check(d *document, server *Server, providers []SignInProvider) {
	o.checkSignIn(d, providers)
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
