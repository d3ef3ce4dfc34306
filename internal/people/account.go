package people

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"

	"modelgate"
)

const (
	maxSubject = 255 // OpenID Connect Core, section 2
	maxGroups  = 1000
	maxEmail   = 320
	everybody  = "*" // the group of a rule
)

// Claims are where an account's details are: names of claims, or JSON Pointers
// into them, which begin with /.
type Claims struct {
	Email, EmailVerified, Name, Groups string
}

// complete reports whether all details are among the claims.
func (c Claims) complete(said map[string]any, groups bool) bool {
	return find(said, c.Email) != nil && find(said, c.Name) != nil && (!groups || find(said, c.Groups) != nil || overage(said, c.Groups))
}

// account is what a provider says of who signs in.
type account struct {
	issuer, subject string
	email           string // "" unless it is verified
	name            string
	groups          []string
	session         string // what the provider calls it
}

// account reads the claims. Errors: forbidden.
func (p *party) account(id *oidc.IDToken, said map[string]any) (*account, error) {
	a := &account{issuer: p.Issuer, subject: id.Subject}
	a.session, _ = said["sid"].(string)
	if len(a.session) > maxSubject {
		a.session = ""
	}
	if name, ok := find(said, p.Claims.Name).(string); ok {
		a.name, _ = modelgate.CleanName(name) // "" where it is no name
	}
	verified := p.TrustEmail
	if say := find(said, p.Claims.EmailVerified); say != nil {
		verified = say == true || say == "true"
	}
	if email, ok := find(said, p.Claims.Email).(string); ok && verified && len(email) <= maxEmail && strings.Contains(email, "@") {
		a.email, _ = modelgate.CleanName(email)
	}
	if err := p.admit(a); err != nil {
		return nil, err
	}
	switch groups := find(said, p.Claims.Groups).(type) {
	case string:
		a.groups = []string{groups}
	case []any:
		for _, g := range groups {
			if name, ok := g.(string); ok {
				a.groups = append(a.groups, name)
			}
		}
	}
	if len(a.groups) > maxGroups || overage(said, p.Claims.Groups) {
		return nil, modelgate.Errorf(modelgate.Forbidden, "%s sent too many groups; limit them to those assigned to this application", p.Label)
	}
	return a, nil
}

// admit holds an account's address against the domains.
func (p *party) admit(a *account) error {
	if len(p.Domains) == 0 {
		return nil
	}
	if a.email == "" {
		return modelgate.Errorf(modelgate.Forbidden, "%s has not confirmed your e-mail address", p.Label)
	}
	domain := a.email[strings.LastIndex(a.email, "@")+1:]
	if !slices.ContainsFunc(p.Domains, func(d string) bool { return strings.EqualFold(d, domain) }) {
		return p.noAccess()
	}
	return nil
}

func (p *party) noAccess() error {
	return modelgate.Errorf(modelgate.Forbidden, "your account at %s has no access here", p.Label)
}

// overage reports whether the groups are too many for the token: Entra then names
// where they can be fetched instead.
func overage(said map[string]any, groups string) bool {
	elsewhere, _ := said["_claim_names"].(map[string]any)
	_, ok := elsewhere[groups]
	return ok
}

// find is a claim by its name or by a JSON Pointer; nil where there is none.
func find(said map[string]any, where string) any {
	rest, pointer := strings.CutPrefix(where, "/")
	if !pointer {
		return said[where]
	}
	var at any = said
	for part := range strings.SplitSeq(rest, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch in := at.(type) {
		case map[string]any:
			at = in[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			at = in[i]
		default:
			return nil
		}
	}
	return at
}

// memberships are what the rules come to for an account, in their order: of those
// for one organization the first that fits.
func (p *party) memberships(a *account) (clients []modelgate.ClientID, roles map[modelgate.ClientID]modelgate.Role) {
	groups := maps.Collect(func(yield func(string, bool) bool) {
		for _, g := range a.groups {
			if !yield(g, true) {
				return
			}
		}
	})
	roles = make(map[modelgate.ClientID]modelgate.Role)
	for _, r := range p.Rules {
		if _, done := roles[r.Organization]; done || r.Group != everybody && !groups[r.Group] {
			continue
		}
		roles[r.Organization] = r.Role
		clients = append(clients, r.Organization)
	}
	return clients, roles
}
