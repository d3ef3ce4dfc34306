package store

import (
	"context"
	"database/sql"
	"errors"

	"modelgate"
)

const sqlInsertKey = `INSERT INTO api_key (id, client_id, sub_account_id, digest, prefix, status, scopes,
  entitlements, denies, backing, limit_rps, limit_burst, limit_concurrency, created_at, last_used_at, expires_at)
VALUES ($1, $2, NULLIF($3, ''), $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
-- sqlInsertKey`

// sqlCountLiveKeys is one range of api_key_live.
const sqlCountLiveKeys = `SELECT COUNT(*)
FROM api_key
WHERE client_id = $1 AND status = 'active' AND expires_at > $2
-- sqlCountLiveKeys`

// sqlCountLiveKeysOf is the same range, narrowed to a sub-account.
const sqlCountLiveKeysOf = `SELECT COUNT(*)
FROM api_key
WHERE client_id = $1 AND status = 'active' AND expires_at > $2 AND sub_account_id = $3
-- sqlCountLiveKeysOf`

// IssueRequest says which key to issue.
type IssueRequest struct {
	SubAccountID modelgate.SubAccountID // "" for a key of the organization itself
	// MaxKeys is how many live keys the sub-account may have with this one; 0
	// sets no bound of its own.
	MaxKeys int
	// Admit decides with the organization as it is at this moment and returns
	// the key with its id, prefix, rights and times. It may be called more
	// than once; only the key that IssueKey returns exists.
	Admit func(modelgate.Client) (modelgate.Key, modelgate.Digest, error)
}

var errSubAccount = &modelgate.Error{Kind: modelgate.Forbidden, Message: "sub-account not found or not active"}

// IssueKey adds a key and returns it as stored. While Admit runs no other
// issuance for the client and no change of it can happen. The audit's target
// is the new key. Errors: not_found for the client, forbidden for the
// sub-account, what Admit returns, modelgate.ErrKeyCap,
// modelgate.ErrSelfIssueCap.
// (spec: POST /gw/keys)
func (db *DB) IssueKey(ctx context.Context, client modelgate.ClientID, r IssueRequest, a modelgate.Audit) (modelgate.Key, error) {
	var key modelgate.Key
	err := db.update(ctx, "issue key", func(tx *sql.Tx) error {
		c, err := lockClient(ctx, tx, client)
		if err != nil {
			return err
		}
		if err := activeSubAccount(ctx, tx, client, r.SubAccountID); err != nil {
			return err
		}
		k, digest, err := r.Admit(c)
		if err != nil {
			return err
		}
		if err := db.underCap(ctx, tx, c, r); err != nil {
			return err
		}
		k.ClientID, k.SubAccountID, k.Status = client, r.SubAccountID, modelgate.KeyActive
		if key, err = insertKey(ctx, tx, k, digest); err != nil {
			return err
		}
		a.TargetID = string(k.ID)
		return db.record(ctx, tx, client, a)
	})
	if err != nil {
		return modelgate.Key{}, err
	}
	return key, nil
}

func activeSubAccount(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, id modelgate.SubAccountID) error {
	if id == "" {
		return nil
	}
	s, err := scanSubAccount(tx.QueryRowContext(ctx, sqlSubAccount, client, id))
	if errors.Is(err, sql.ErrNoRows) || err == nil && s.Status != modelgate.SubAccountActive {
		return errSubAccount
	}
	return err
}

func (db *DB) underCap(ctx context.Context, tx *sql.Tx, c modelgate.Client, r IssueRequest) error {
	now := micros(db.now())
	var live int
	if err := tx.QueryRowContext(ctx, sqlCountLiveKeys, c.ID, now).Scan(&live); err != nil {
		return err
	}
	if live >= c.MaxKeys {
		return modelgate.ErrKeyCap
	}
	if r.MaxKeys == 0 {
		return nil
	}
	if err := tx.QueryRowContext(ctx, sqlCountLiveKeysOf, c.ID, now, string(r.SubAccountID)).Scan(&live); err != nil {
		return err
	}
	if live >= r.MaxKeys {
		return modelgate.ErrSelfIssueCap
	}
	return nil
}

func insertKey(ctx context.Context, tx *sql.Tx, k modelgate.Key, d modelgate.Digest) (modelgate.Key, error) {
	k.Scopes, k.Entitlements, k.Denies, k.Backing = some(k.Scopes), some(k.Entitlements), some(k.Denies), some(k.Backing)
	scopes, err := text(k.Scopes)
	if err != nil {
		return k, err
	}
	entitlements, err := text(k.Entitlements)
	if err != nil {
		return k, err
	}
	denies, err := text(k.Denies)
	if err != nil {
		return k, err
	}
	backing, err := text(k.Backing)
	if err != nil {
		return k, err
	}
	_, err = tx.ExecContext(ctx, sqlInsertKey, k.ID, k.ClientID, string(k.SubAccountID), d[:], k.Prefix, k.Status,
		scopes, entitlements, denies, backing, k.Limits.RequestsPerSecond, k.Limits.Burst, k.Limits.Concurrency,
		micros(k.CreatedAt), micros(k.LastUsedAt), expiry(k.ExpiresAt))
	k.CreatedAt, k.LastUsedAt, k.ExpiresAt = stored(k.CreatedAt), stored(k.LastUsedAt), stored(k.ExpiresAt)
	return k, err
}

// some is s, or the empty slice for nil, so that JSON shows an array.
func some[S ~[]E, E any](s S) S {
	if s == nil {
		return S{}
	}
	return s
}
