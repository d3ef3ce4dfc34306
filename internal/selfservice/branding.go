package selfservice

import (
	"cmp"
	"context"

	"modelgate"
)

func (a *API) branding(ctx context.Context, by actor, _ nothing) (modelgate.Branding, error) {
	return a.Store.Branding(ctx, by.ClientID)
}

// newBranding is the body of PUT /gw/branding.
type newBranding struct {
	PortalSlug     string   `json:"portal_slug"`
	ProductName    string   `json:"product_name"`
	LogoURL        *string  `json:"logo_url" null:"absent"`
	AccentColor    *string  `json:"accent_color" null:"absent"`
	AllowSelfIssue *bool    `json:"allow_self_issue"`
	_              struct{} `ignore:"created_at,updated_at"`
}

func (n *newBranding) read(x *exchange) error {
	if err := x.body(n); err != nil {
		return err
	}
	if n.AllowSelfIssue == nil {
		return modelgate.Errorf(modelgate.BadRequest, "allow_self_issue is required")
	}
	return nil
}

func (a *API) putBranding(ctx context.Context, by actor, in newBranding) (modelgate.Branding, error) {
	stored, err := a.Store.Branding(ctx, by.ClientID)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return modelgate.Branding{}, err
	}
	set := modelgate.Branding{
		ClientID:       by.ClientID,
		PortalSlug:     in.PortalSlug,
		ProductName:    in.ProductName,
		LogoURL:        cmp.Or(in.LogoURL, stored.LogoURL), // absent leaves the stored one, and Validate takes "" for cleared
		AccentColor:    cmp.Or(in.AccentColor, stored.AccentColor),
		AllowSelfIssue: *in.AllowSelfIssue,
	}
	if err := set.Validate(); err != nil {
		return modelgate.Branding{}, err
	}
	return a.Store.PutBranding(ctx, set, a.audit(by, "branding.put", "branding", string(by.ClientID), struct {
		PortalSlug     string  `json:"portal_slug"`
		ProductName    string  `json:"product_name"`
		LogoURL        *string `json:"logo_url"`
		AccentColor    *string `json:"accent_color"`
		AllowSelfIssue bool    `json:"allow_self_issue"`
	}{set.PortalSlug, set.ProductName, set.LogoURL, set.AccentColor, set.AllowSelfIssue}))
}
