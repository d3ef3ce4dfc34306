package access

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const brandingColumns = `client_id, portal_slug, product_name, logo_url, accent_color, allow_self_issue,
  created_at, updated_at`

const sqlBranding = `SELECT ` + brandingColumns + `
FROM branding
WHERE client_id = $1
-- sqlBranding`

const sqlBrandingBySlug = `SELECT ` + brandingColumns + `
FROM branding
WHERE portal_slug = $1
-- sqlBrandingBySlug`

const sqlPutBranding = `INSERT INTO branding (` + brandingColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
ON CONFLICT (client_id) DO UPDATE
SET portal_slug = excluded.portal_slug, product_name = excluded.product_name, logo_url = excluded.logo_url,
  accent_color = excluded.accent_color, allow_self_issue = excluded.allow_self_issue,
  updated_at = excluded.updated_at
RETURNING ` + brandingColumns + `
-- sqlPutBranding`

func scanBranding(s sqldb.Scanner) (modelgate.Branding, error) {
	var b modelgate.Branding
	err := s.Scan(&b.ClientID, &b.PortalSlug, &b.ProductName, &b.LogoURL, &b.AccentColor, &b.AllowSelfIssue,
		sqldb.Moment{Into: &b.CreatedAt}, sqldb.Moment{Into: &b.UpdatedAt})
	return b, err
}

// Branding returns the organization's branding, not_found while there is
// none.
func (s *Store) Branding(ctx context.Context, client modelgate.ClientID) (modelgate.Branding, error) {
	b, err := scanBranding(s.db.Read.QueryRowContext(ctx, sqlBranding, client))
	return b, sqldb.Wrap("read branding", sqldb.Missing(err, "branding"))
}

// BrandingBySlug finds the portal of any organization, for visitors who have
// not signed in yet. Errors: not_found.
func (s *Store) BrandingBySlug(ctx context.Context, slug string) (modelgate.Branding, error) {
	b, err := scanBranding(s.db.Read.QueryRowContext(ctx, sqlBrandingBySlug, slug))
	return b, sqldb.Wrap("find portal", sqldb.Missing(err, "portal"))
}

// PutBranding sets the organization's branding and returns it as stored: the
// time of creation stays, the time of the update is now. Errors: conflict
// when another organization has the portal slug, not_found for the client.
func (s *Store) PutBranding(ctx context.Context, b modelgate.Branding, a modelgate.Audit) (modelgate.Branding, error) {
	var out modelgate.Branding
	err := s.db.Update(ctx, "put branding", func(tx *sql.Tx) error {
		var err error
		out, err = scanBranding(tx.QueryRowContext(ctx, sqlPutBranding, b.ClientID, b.PortalSlug, b.ProductName,
			b.LogoURL, b.AccentColor, b.AllowSelfIssue, sqldb.Micros(s.db.Now())))
		switch {
		case sqldb.Duplicate(err):
			return modelgate.Errorf(modelgate.Conflict, "portal_slug %q is taken", b.PortalSlug)
		case sqldb.Dangling(err):
			return modelgate.Errorf(modelgate.NotFound, "client not found")
		case err != nil:
			return err
		}
		return s.record(ctx, tx, b.ClientID, a)
	})
	if err != nil {
		return modelgate.Branding{}, err
	}
	return out, nil
}
