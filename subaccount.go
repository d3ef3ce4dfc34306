package modelgate

import (
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// SubAccountStatus is the state of a sub-account.
type SubAccountStatus string

// The states of a sub-account.
const (
	SubAccountActive    SubAccountStatus = "active"
	SubAccountSuspended SubAccountStatus = "suspended"
)

// SubAccount is an end customer of an organization.
type SubAccount struct {
	ID       SubAccountID     `json:"id"`
	ClientID ClientID         `json:"client_id"`
	Name     string           `json:"name"`
	Slug     string           `json:"slug"`
	Status   SubAccountStatus `json:"status"`
	Markup   Markup           `json:"markup_pct"`
	// MaxKeys is how many live keys may be bound to it; nil: DefaultBoundKeys
	// where a bound key issues another, else no bound of its own.
	MaxKeys   *int      `json:"max_keys,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// The bounds of SubAccount.MaxKeys.
const (
	MaxBoundKeys     = 1000
	DefaultBoundKeys = 100
)

// SubAccountPatch is a change of a sub-account: nil fields stay.
type SubAccountPatch struct {
	Status *SubAccountStatus
	Name   *string
	Markup *Markup
	// MaxKeys is from 1 to MaxBoundKeys.
	MaxKeys *int
}

// The longest names, in characters: Unicode code points.
const (
	maxName    = 200
	maxKeyName = 100
)

// CleanName trims the name of an organization or sub-account and checks it.
// Errors are bad_request.
func CleanName(name string) (string, error) { return cleanName(name, maxName) }

// CleanKeyName is CleanName for the name of a key.
func CleanKeyName(name string) (string, error) { return cleanName(name, maxKeyName) }

func cleanName(name string, most int) (string, error) {
	name = strings.TrimSpace(name)
	if !strings.ContainsFunc(name, visible) || utf8.RuneCountInString(name) > most {
		return "", Errorf(BadRequest, "name must have 1 to %d characters and a visible one among them", most)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, steers) {
		return "", Errorf(BadRequest, "name must be UTF-8 text without control characters")
	}
	return name, nil
}

// visible reports whether a character shows something of its own: a letter, a
// digit, a sign or a symbol, and none of those that are blank by their look or
// by their use.
func visible(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', // fillers of Hangul, which are letters
		'\u2800': // the braille pattern without a dot, a symbol
		return false
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S)
}

// steers reports whether a character changes how the text around it is shown
// or broken into lines: a name with one could pass for another in a table, a
// log or a terminal.
func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// CheckSlug checks the slug of a sub-account or portal: [a-z0-9-]{1,64}.
// Errors are bad_request and name the field.
func CheckSlug(field, slug string) error {
	if !PlainSlug(slug) {
		return Errorf(BadRequest, "%s must match [a-z0-9-]{1,64}", field)
	}
	return nil
}

// PlainSlug reports whether s matches [a-z0-9-]{1,64}: the pattern of
// sub-account slugs, portal slugs and provider names.
func PlainSlug(s string) bool {
	return spelled(s, 64, digits+lower+"-")
}

// Branding is how an organization's portal looks.
type Branding struct {
	ClientID       ClientID  `json:"client_id"`
	PortalSlug     string    `json:"portal_slug"`
	ProductName    string    `json:"product_name"`
	LogoURL        *string   `json:"logo_url"`
	AccentColor    *string   `json:"accent_color"`
	AllowSelfIssue bool      `json:"allow_self_issue"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
}

const maxLogoURL = 2048 // bytes

// Validate checks what an organization sets; an empty logo or colour is
// cleared. Errors are bad_request.
func (b *Branding) Validate() error {
	if err := CheckSlug("portal_slug", b.PortalSlug); err != nil {
		return err
	}
	b.ProductName = strings.TrimSpace(b.ProductName)
	if !strings.ContainsFunc(b.ProductName, visible) || utf8.RuneCountInString(b.ProductName) > 100 || hasControl(b.ProductName) {
		return Errorf(BadRequest, "product_name must have 1 to 100 characters and a visible one among them")
	}
	if b.LogoURL != nil && *b.LogoURL == "" {
		b.LogoURL = nil
	}
	if b.AccentColor != nil && *b.AccentColor == "" {
		b.AccentColor = nil
	}
	if b.LogoURL != nil && !validLogo(*b.LogoURL) {
		return Errorf(BadRequest, "logo_url must be an https:// address of at most %d bytes", maxLogoURL)
	}
	if b.AccentColor != nil && !validColor(*b.AccentColor) {
		return Errorf(BadRequest, "accent_color must be #RRGGBB")
	}
	return nil
}

func validLogo(s string) bool {
	if len(s) > maxLogoURL || !strings.HasPrefix(s, "https://") || hasControl(s) || strings.ContainsAny(s, " \"'<>\\`") {
		return false
	}
	u, err := url.Parse(s)
	return err == nil && u.Hostname() != "" && u.User == nil
}

func validColor(s string) bool {
	return len(s) == 7 && s[0] == '#' && spelled(s[1:], 6, digits+"abcdefABCDEF")
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == utf8.RuneError })
}
