package manage

import (
	"context"

	"modelgate"
	"modelgate/internal/web"
)

func (a *API) branding(ctx context.Context, b by, _ nothing) (modelgate.Branding, error) {
	return a.Store.Branding(ctx, b.ClientID)
}

// newBranding is the body of PUT /gw/branding.
type newBranding struct {
	PortalSlug     string        `json:"portal_slug"`
	ProductName    string        `json:"product_name"`
	LogoURL        web.Clearable `json:"logo_url"`
	AccentColor    web.Clearable `json:"accent_color"`
	AllowSelfIssue bool          `json:"allow_self_issue"`
}

func (n *newBranding) read(x *exchange) error { return x.body(n) }

func (a *API) putBranding(ctx context.Context, b by, in newBranding) (modelgate.Branding, error) {
	stored, err := a.Store.Branding(ctx, b.ClientID)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return modelgate.Branding{}, err
	}
	set := modelgate.Branding{
		ClientID:       b.ClientID,
		PortalSlug:     in.PortalSlug,
		ProductName:    in.ProductName,
		LogoURL:        put(in.LogoURL, stored.LogoURL),
		AccentColor:    put(in.AccentColor, stored.AccentColor),
		AllowSelfIssue: in.AllowSelfIssue,
	}
	if err := set.Validate(); err != nil {
		return modelgate.Branding{}, err
	}
	record, err := a.audit(b, "branding.put", "branding", string(b.ClientID), struct {
		PortalSlug     string  `json:"portal_slug"`
		ProductName    string  `json:"product_name"`
		LogoURL        *string `json:"logo_url"`
		AccentColor    *string `json:"accent_color"`
		AllowSelfIssue bool    `json:"allow_self_issue"`
	}{set.PortalSlug, set.ProductName, set.LogoURL, set.AccentColor, set.AllowSelfIssue})
	if err != nil {
		return modelgate.Branding{}, err
	}
	return a.Store.PutBranding(ctx, set, record)
}

// put is an optional member's new value: absent leaves the stored one, and
// Validate takes "" for cleared.
func put(given web.Clearable, stored *string) *string {
	if !given.Given {
		return stored
	}
	return &given.Text
}
