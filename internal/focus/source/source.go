// Package source reads from the database what a FOCUS file is made of.
package source

import (
	"cmp"
	"context"
	"time"

	"modelgate"
	"modelgate/internal/focus"
	"modelgate/internal/store"
)

// Names is how FOCUS files name things.
type Names struct {
	Issuer        string            // of invoices; "" is the product's name
	ProviderNames map[string]string // by the provider's name; others keep theirs
}

// provider is how files call a provider.
func (n Names) provider(name string) string { return cmp.Or(n.ProviderNames[name], name) }

// Export is a file about an organization, or about one of its
// sub-accounts, without its window and its view. Errors: not_found.
func Export(ctx context.Context, db *store.DB, names Names, catalog *modelgate.Catalog, client modelgate.ClientID, sub modelgate.SubAccountID) (*focus.Export, error) {
	e := &focus.Export{
		OrganizationID: string(client), Issuer: cmp.Or(names.Issuer, "Modelgate"), Accounts: make(map[modelgate.SubAccountID]focus.Account),
		Provider: names.provider,
		Model: func(slug string) string {
			if m := catalog.Find(slug); m != nil {
				return m.DisplayName
			}
			return ""
		},
		Rows: func(ctx context.Context, from, to time.Time, visit func(*modelgate.UsageRow) error) error {
			return db.UsageSpan(ctx, client, sub, from, to, visit)
		},
	}
	organization, err := db.Client(ctx, client)
	if err != nil {
		return nil, err
	}
	e.Organization = organization.Name
	accounts, err := db.SubAccounts(ctx, client)
	if err != nil {
		return nil, err
	}
	found := sub == ""
	for _, s := range accounts {
		e.Accounts[s.ID] = focus.Account{Name: s.Name, Markup: s.Markup}
		found = found || s.ID == sub
	}
	if !found {
		return nil, modelgate.Errorf(modelgate.NotFound, "sub-account not found")
	}
	brand, err := db.Branding(ctx, client)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return nil, err
	}
	e.Brand = brand.ProductName
	return e, nil
}
