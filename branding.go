package modelgate

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

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
