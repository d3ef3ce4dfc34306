package provider

import "net/http"

// Auth is how a credential travels: in a header, behind a prefix, or in a
// query parameter. The zero value sends none.
type Auth struct {
	Header string // canonical
	Prefix string // such as "Bearer "
	Query  string // the name of a parameter; Header is empty then
}

// OlderAuth replaces Auth for a client whose version header is there and
// sorts before a version.
type OlderAuth struct {
	Header, Before string
	Auth           Auth
}

func bearer() Auth            { return Auth{Header: "Authorization", Prefix: "Bearer "} }
func header(name string) Auth { return Auth{Header: http.CanonicalHeaderKey(name)} }

// InUse says that calls go out with these credentials from now on, and with no
// earlier ones: a job that was made before with a credential that is not among
// them has lost it.
func (p *Provider) InUse() { p.secrets.InUse() }
