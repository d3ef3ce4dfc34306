package config

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"modelgate"
	"modelgate/internal/cloudhost"
)

// SignIn is how people sign in to the dashboards of organizations with an
// account of their company.
type SignIn struct {
	// OpenID providers that people sign in with. Default: none.
	Providers []SignInProvider `yaml:"providers"`

	// How long a person stays signed in after the last request; from 5m to
	// 168h.
	Idle time.Duration `yaml:"idle"`

	// How long a person stays signed in at most; from 15m to 168h.
	Absolute time.Duration `yaml:"absolute"`

	// How long a session lasts at most that was opened with a key, in dashboard
	// and portals; from 15m to 24h. It ends two hours after the last request in
	// any case.
	KeySession time.Duration `yaml:"key_session"`
}

func (s *SignIn) setDefaults() {
	s.Idle, s.Absolute, s.KeySession = 12*time.Hour, 24*time.Hour, modelgate.SessionLife
}

// SignInProvider is an OpenID provider. It needs server.base_url. What it has to
// know of the gateway is {server.base_url}/dashboard/session/callback, where it
// sends people back, and for back-channel logout
// {server.base_url}/dashboard/session/back-channel-logout/{name}.
type SignInProvider struct {
	// Name in addresses and metrics: 1 to 32 characters of a-z, 0-9 and -;
	// unique.
	Name string `yaml:"name"`

	// What the sign-in page calls it; 1 to 60 characters.
	Label string `yaml:"label"`

	// The provider's issuer, https, or http on this machine. Its configuration
	// is read from /.well-known/openid-configuration below it at the first
	// sign-in. A person is the issuer's: a changed one makes other people.
	Issuer string `yaml:"issuer"`

	// What the provider calls the gateway.
	ClientID string `yaml:"client_id"`

	// The secret that goes with client_id. Without it the gateway is a public
	// client, which PKCE protects.
	ClientSecret Secret `yaml:"client_secret"`

	// A file with that secret instead, relative to the directory of this file. It
	// is read at the start and at each reload. Excludes client_secret.
	ClientSecretFile string `yaml:"client_secret_file"`

	// What is asked for; openid is added. Default: openid, email, profile.
	Scopes []string `yaml:"scopes"`

	// Where an account's details are.
	Claims SignInClaims `yaml:"claims"`

	// Whether e-mail addresses count as verified where the provider does not
	// say whether they are.
	TrustEmail bool `yaml:"trust_email"`

	// Domains of e-mail addresses: only accounts with a verified address of one
	// of them sign in. Default: all accounts.
	Domains []string `yaml:"domains"`

	// How long ago an account may have proved who it is; from 0 to 720h, 0 for
	// any time.
	MaxAge time.Duration `yaml:"max_age"`

	// PEM file with the certificates that the provider's are checked against,
	// relative to the directory of this file. Default: those of the system.
	CAFile string `yaml:"ca_file"`

	// Which accounts are members of which organizations. They are judged at
	// each sign-in; an account without any is refused. Default: none.
	Organizations []SignInRule `yaml:"organizations"`
}

func (p *SignInProvider) setDefaults() { p.Scopes = []string{"openid", "email", "profile"} }

// SignInClaims are names of claims of an ID token or of userinfo, or JSON
// Pointers into them, which begin with /.
type SignInClaims struct {
	// The e-mail address, a text.
	Email string `yaml:"email"`

	// Whether the address is verified, a boolean.
	EmailVerified string `yaml:"email_verified"`

	// The name that others are shown, a text.
	Name string `yaml:"name"`

	// The groups that the account is in: a list of texts, or one.
	Groups string `yaml:"groups"`
}

func (c *SignInClaims) setDefaults() {
	c.Email, c.EmailVerified, c.Name, c.Groups = "email", "email_verified", "name", "groups"
}

// SignInRule makes the accounts of a group members of an organization. Of the
// rules for one organization the first that fits counts.
type SignInRule struct {
	// Id of the organization.
	Organization string `yaml:"organization"`

	// The group; `*` is every account.
	Group string `yaml:"group"`

	// What members may do. `owner` and `admin`: everything. `developer`: call
	// models, read usage, and issue keys of their own that call models.
	// `billing`: read usage, keys and sub-accounts, and set budgets, markups,
	// wallets, payments and the payment processor. `viewer`: read usage.
	Role modelgate.Role `yaml:"role"`
}

const (
	maxSignInProviders = 20
	maxSignInRules     = 1000
	maxSignInLabel     = 60
	maxSignInAge       = 168 * time.Hour
	maxAuthAge         = 720 * time.Hour
)

func (s *SignIn) check(d *document, baseURL string) {
	d.faultIf(s.Idle < 5*time.Minute || s.Idle > maxSignInAge, "sign_in.idle", "must be from 5m to 168h")
	d.faultIf(s.Absolute < 15*time.Minute || s.Absolute > maxSignInAge, "sign_in.absolute", "must be from 15m to 168h")
	d.faultIf(s.KeySession < 15*time.Minute || s.KeySession > 24*time.Hour, "sign_in.key_session", "must be from 15m to 24h")
	d.faultIf(len(s.Providers) > maxSignInProviders, "sign_in.providers", "must have at most %d entries", maxSignInProviders)
	d.faultIf(len(s.Providers) > 0 && baseURL == "", "sign_in.providers", "needs server.base_url: the provider sends people back there")
	names, issuers := make(map[string]int), make(map[string]int)
	for i := range s.Providers {
		p, path := &s.Providers[i], element("sign_in.providers", i)
		p.check(d, path)
		for key, seen := range map[string]map[string]int{p.Name: names, p.Issuer: issuers} {
			if first, known := seen[key]; known && key != "" {
				d.fault(path, "has the name or the issuer of the provider in line %d; both are unique", d.places[element("sign_in.providers", first)].line)
			}
			seen[key] = i
		}
	}
}

func (p *SignInProvider) check(d *document, path string) {
	required(d, path, "name", p.Name)
	required(d, path, "label", p.Label)
	required(d, path, "issuer", p.Issuer)
	required(d, path, "client_id", p.ClientID)
	d.faultIf(!regexp.MustCompile(`^[a-z0-9-]{1,32}$`).MatchString(p.Name), path+".name", "must have 1 to 32 characters of a-z, 0-9 and -")
	d.faultIf(p.Name == "key", path+".name", "must not be key, which stands for keys in metrics")
	d.faultIf(utf8.RuneCountInString(p.Label) > maxSignInLabel || !isPrintable(p.Label), path+".label", "must have 1 to %d characters", maxSignInLabel)
	checkURL(d, path+".issuer", p.Issuer, "*")
	d.faultIf(strings.HasPrefix(p.Issuer, "http://") && !loopback(cloudhost.Of(p.Issuer)), path+".issuer", "want https; http is for this machine only")
	checkSecret(d, path+".client_secret", p.ClientSecret)
	d.faultIf(!p.ClientSecret.Empty() && p.ClientSecretFile != "", path+".client_secret_file", "excludes client_secret; keep one of them")
	d.faultIf(p.MaxAge < 0 || p.MaxAge > maxAuthAge, path+".max_age", "must be from 0 to 720h")
	for i, domain := range p.Domains {
		d.faultIf(domain == "" || strings.ContainsAny(domain, "@* "), element(path+".domains", i), "want a domain such as example.com")
	}
	for i, scope := range p.Scopes {
		d.faultIf(scope == "" || strings.ContainsAny(scope, " \"\\"), element(path+".scopes", i), "is no scope")
	}
	d.faultIf(len(p.Organizations) > maxSignInRules, path+".organizations", "must have at most %d entries", maxSignInRules)
	if len(p.Organizations) == 0 {
		d.warn(path+".organizations", "is empty: nobody can sign in with this provider")
	}
	for i := range p.Organizations {
		rule, at := &p.Organizations[i], element(path+".organizations", i)
		id, ok := modelgate.ParseUUID(rule.Organization)
		d.faultIf(!ok, at+".organization", "want the id of an organization; modelgate client list shows it")
		rule.Organization = id.String()
		required(d, at, "group", rule.Group)
		oneOf(d, at+".role", rule.Role, modelgate.AllRoles()...)
	}
}
