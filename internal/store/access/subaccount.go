package access

import (
	"context"
	"database/sql"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const subAccountColumns = `id, client_id, name, slug, status, markup, max_keys, created_at`

const sqlInsertSubAccount = `INSERT INTO sub_account (` + subAccountColumns + `)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
-- sqlInsertSubAccount`

const sqlSubAccount = `SELECT ` + subAccountColumns + `
FROM sub_account
WHERE client_id = $1 AND id = $2
-- sqlSubAccount`

const sqlSubAccounts = `SELECT ` + subAccountColumns + `
FROM sub_account
WHERE client_id = $1
ORDER BY created_at, id
-- sqlSubAccounts`

const sqlPatchSubAccount = `UPDATE sub_account
SET status = COALESCE($3, status), name = COALESCE($4, name), markup = COALESCE($5, markup), max_keys = COALESCE($6, max_keys)
WHERE client_id = $1 AND id = $2
-- sqlPatchSubAccount`

func scanSubAccount(s sqldb.Scanner) (modelgate.SubAccount, error) {
	var a modelgate.SubAccount
	err := s.Scan(&a.ID, &a.ClientID, &a.Name, &a.Slug, &a.Status, &a.Markup, &a.MaxKeys, sqldb.Moment{Into: &a.CreatedAt})
	return a, err
}

// SubAccounts lists the sub-accounts of an organization, the oldest first.
func (s *Store) SubAccounts(ctx context.Context, client modelgate.ClientID) ([]modelgate.SubAccount, error) {
	rows, err := sqldb.List(ctx, s.db.Read, scanSubAccount, sqlSubAccounts, client)
	return rows, sqldb.Wrap("list sub-accounts", err)
}

// SubAccount returns one sub-account of the organization or not_found.
func (s *Store) SubAccount(ctx context.Context, client modelgate.ClientID, id modelgate.SubAccountID) (modelgate.SubAccount, error) {
	found, err := scanSubAccount(s.db.Read.QueryRowContext(ctx, sqlSubAccount, client, id))
	return found, sqldb.Wrap("read sub-account", sqldb.Missing(err, "sub-account"))
}

// CreateSubAccount adds a sub-account. Errors: conflict when the organization
// has one with this slug, not_found for the client.
func (s *Store) CreateSubAccount(ctx context.Context, n modelgate.SubAccount, a modelgate.Audit) error {
	return s.db.Update(ctx, "create sub-account", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, sqlInsertSubAccount, n.ID, n.ClientID, n.Name, n.Slug, n.Status, int64(n.Markup), n.MaxKeys,
			sqldb.Micros(n.CreatedAt))
		switch {
		case sqldb.Duplicate(err):
			return modelgate.Errorf(modelgate.Conflict, "a sub-account with the slug %q exists already", n.Slug)
		case sqldb.Dangling(err):
			return modelgate.Errorf(modelgate.NotFound, "client not found")
		case err != nil:
			return err
		}
		return s.record(ctx, tx, n.ClientID, a)
	})
}

// PatchSubAccount changes the fields that are set, all or none. A new status
// or markup raises the control version. Errors: not_found.
func (s *Store) PatchSubAccount(ctx context.Context, client modelgate.ClientID, id modelgate.SubAccountID, p modelgate.SubAccountPatch, a modelgate.Audit) error {
	return s.db.Update(ctx, "patch sub-account", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlPatchSubAccount, client, id, p.Status, p.Name, p.Markup, p.MaxKeys)
		if err != nil {
			return err
		}
		if err := sqldb.OneRow(r, "sub-account"); err != nil {
			return err
		}
		if err := s.record(ctx, tx, client, a); err != nil {
			return err
		}
		if p.Status == nil && p.Markup == nil {
			return nil
		}
		return sqldb.RaiseControl(ctx, tx)
	})
}

// subAccountsByID reads that many sub-accounts of a client, or of all.
func subAccountsByID(ids int) string {
	return sqldb.Tuples("SELECT "+subAccountColumns+"\nFROM sub_account\nWHERE (client_id = $1 OR $1 = '') AND id IN ", 1, ids, 2) + "\n-- subAccountsByID"
}

// SubAccountsByID are those of some sub-accounts that an organization has; "" is
// every organization.
func (s *Store) SubAccountsByID(ctx context.Context, client modelgate.ClientID, ids []modelgate.SubAccountID) (found []modelgate.SubAccount, err error) {
	for len(ids) > 0 {
		n := sqldb.StatementRows(len(ids), s.db.RowsPerInsert)
		args := []any{string(client)}
		for _, id := range ids[:n] {
			args = append(args, string(id))
		}
		ids = ids[n:]
		some, err := sqldb.List(ctx, s.db.Read, scanSubAccount, subAccountsByID(n), args...)
		if err != nil {
			return nil, sqldb.Wrap("read sub-accounts", err)
		}
		found = append(found, some...)
	}
	return found, nil
}
