package access

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlInsertKey = `INSERT INTO api_key (id, client_id, sub_account_id, digest, name, prefix, status, scopes,
  entitlements, denies, backing, limit_rps, limit_burst, limit_concurrency, created_at, last_used_at, expires_at, issued_by, self_issued, kind, owner)
VALUES ($1, $2, NULLIF($3, ''), $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, NULLIF($18, ''), $19, $20, NULLIF($21, ''))
-- sqlInsertKey`

// sqlCountLiveKeys is one range of api_key_live.
const sqlCountLiveKeys = `SELECT COUNT(*)
FROM api_key
WHERE client_id = $1 AND status = 'active' AND kind = 'key' AND expires_at > $2
-- sqlCountLiveKeys`

// sqlCountLiveKeysOf is the same range, narrowed to a sub-account.
const sqlCountLiveKeysOf = `SELECT COUNT(*)
FROM api_key
WHERE client_id = $1 AND status = 'active' AND kind = 'key' AND expires_at > $2 AND sub_account_id = $3
-- sqlCountLiveKeysOf`

// sqlCountLiveKeysOwned walks api_key_owner.
const sqlCountLiveKeysOwned = `SELECT COUNT(*)
FROM api_key
WHERE client_id = $1 AND status = 'active' AND kind = 'key' AND expires_at > $2 AND owner = $3
-- sqlCountLiveKeysOwned`

// IssueRequest says which key to issue.
type IssueRequest struct {
	SubAccountID modelgate.SubAccountID // "" for a key of the organization itself
	// Issuer is the key that issues; "" for the operator. One that is bound to
	// a sub-account becomes the first ancestor of the new key, which ends with
	// it at the latest.
	Issuer modelgate.KeyID
	// Owner is the member whose key it is, which ends with the membership; "" for
	// the organization's.
	Owner modelgate.PersonID
	// MaxKeys is how many live keys the sub-account, or Owner, may have with this
	// one; 0 sets no bound of its own.
	MaxKeys int
	// Admit decides with the organization as it is at this moment and returns
	// the key with its id, prefix, rights and times. It may be called more
	// than once; only the key that IssueKey returns exists.
	Admit func(modelgate.Client) (modelgate.Key, modelgate.Digest, error)
}

var errSubAccount = &modelgate.Error{Kind: modelgate.Forbidden, Message: "sub-account not found or not active"}

// IssueKey adds a key and returns it as stored. While Admit runs no other
// issuance for the client and no change of it can happen. The audit's target
// is the new key, and its change what the key was issued with. Errors: not_found
// for the client, forbidden for the sub-account, what Admit returns,
// modelgate.ErrUnauthorized where the issuer is revoked, modelgate.ErrTooDeep,
// modelgate.ErrOutlives, modelgate.ErrKeyCap,
// modelgate.ErrSelfIssueCap.
func (s *Store) IssueKey(ctx context.Context, client modelgate.ClientID, r IssueRequest, a modelgate.Audit) (modelgate.Key, error) {
	var key modelgate.Key
	err := s.db.Update(ctx, "issue key", func(tx *sql.Tx) error {
		c, err := lockClient(ctx, tx, client)
		if err != nil {
			return err
		}
		sub, err := activeSubAccount(ctx, tx, client, r.SubAccountID)
		if err != nil {
			return err
		}
		var from descent
		if r.Issuer != "" {
			if from, err = issuer(ctx, tx, client, r.Issuer); err != nil {
				return err
			}
		}
		k, digest, err := r.Admit(c)
		if err != nil {
			return err
		}
		if err := from.bind(&k); err != nil {
			return err
		}
		if err := s.underCap(ctx, tx, c, r, boundCap(&sub, &from)); err != nil {
			return err
		}
		k.ClientID, k.SubAccountID, k.Owner, k.Status = client, r.SubAccountID, r.Owner, modelgate.KeyActive
		if key, err = insertKey(ctx, tx, k, digest); err != nil {
			return err
		}
		if err := from.save(ctx, tx, k.ID); err != nil {
			return err
		}
		a.TargetID = string(k.ID)
		if a.Change, err = json.Marshal(key.Issuance()); err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
	if err != nil {
		return modelgate.Key{}, err
	}
	return key, nil
}

// descent is what a new key has from the one that issues it; the zero value
// is that of a key of the organization.
type descent struct {
	bound     bool // the issuer is bound to a sub-account
	ends      time.Time
	ancestors []string // the issuer first
}

// bind lets a key end with its issuer.
func (d *descent) bind(k *modelgate.Key) error {
	if !d.bound {
		return nil
	}
	k.IssuedBy = modelgate.KeyID(d.ancestors[0])
	switch {
	case d.ends.IsZero():
	case k.ExpiresAt.IsZero():
		k.ExpiresAt = d.ends
	case sqldb.Stored(k.ExpiresAt).After(d.ends):
		return modelgate.ErrOutlives
	}
	return nil
}

func (d *descent) save(ctx context.Context, tx *sql.Tx, key modelgate.KeyID) error {
	for i, ancestor := range d.ancestors {
		if _, err := tx.ExecContext(ctx, sqlInsertLineage, key, i+1, ancestor); err != nil {
			return err
		}
	}
	return nil
}

// boundCap is how many live keys a sub-account may have, 0 without a bound.
func boundCap(s *modelgate.SubAccount, from *descent) int {
	switch {
	case s.MaxKeys != nil:
		return *s.MaxKeys
	case from.bound:
		return modelgate.DefaultBoundKeys
	}
	return 0
}

func activeSubAccount(ctx context.Context, tx *sql.Tx, client modelgate.ClientID, id modelgate.SubAccountID) (modelgate.SubAccount, error) {
	if id == "" {
		return modelgate.SubAccount{}, nil
	}
	s, err := scanSubAccount(tx.QueryRowContext(ctx, sqlSubAccount, client, id))
	if errors.Is(err, sql.ErrNoRows) || err == nil && s.Status != modelgate.SubAccountActive {
		return s, errSubAccount
	}
	return s, err
}

// underCap counts the live keys of the client, and those of the sub-account
// where it or the request bounds them.
func (s *Store) underCap(ctx context.Context, tx *sql.Tx, c modelgate.Client, r IssueRequest, bound int) error {
	now := sqldb.Micros(s.db.Now())
	var live int
	if err := tx.QueryRowContext(ctx, sqlCountLiveKeys, c.ID, now).Scan(&live); err != nil {
		return err
	}
	if live >= c.MaxKeys {
		return modelgate.ErrKeyCap
	}
	if bound == 0 || r.MaxKeys > 0 && r.MaxKeys < bound {
		bound = r.MaxKeys
	}
	if bound == 0 {
		return nil
	}
	count, of := sqlCountLiveKeysOf, string(r.SubAccountID)
	if r.Owner != "" {
		count, of = sqlCountLiveKeysOwned, string(r.Owner)
	}
	if err := tx.QueryRowContext(ctx, count, c.ID, now, of).Scan(&live); err != nil {
		return err
	}
	if live >= bound {
		return modelgate.ErrSelfIssueCap
	}
	return nil
}

func insertKey(ctx context.Context, tx *sql.Tx, k modelgate.Key, d modelgate.Digest) (modelgate.Key, error) {
	k.Scopes, k.Entitlements, k.Denies, k.Backing = some(k.Scopes), some(k.Entitlements), some(k.Denies), some(k.Backing)
	if k.Kind == "" {
		k.Kind = modelgate.KeyPlain
	}
	scopes, err := sqldb.JSON(k.Scopes)
	if err != nil {
		return k, err
	}
	entitlements, err := sqldb.JSON(k.Entitlements)
	if err != nil {
		return k, err
	}
	denies, err := sqldb.JSON(k.Denies)
	if err != nil {
		return k, err
	}
	backing, err := sqldb.JSON(k.Backing)
	if err != nil {
		return k, err
	}
	_, err = tx.ExecContext(ctx, sqlInsertKey, k.ID, k.ClientID, string(k.SubAccountID), d[:], k.Name, k.Prefix, k.Status,
		scopes, entitlements, denies, backing, k.Limits.RequestsPerSecond, k.Limits.Burst, k.Limits.Concurrency,
		sqldb.Micros(k.CreatedAt), sqldb.Micros(k.LastUsedAt), sqldb.Expiry(k.ExpiresAt), string(k.IssuedBy), k.SelfIssued, string(k.Kind), string(k.Owner))
	k.CreatedAt, k.LastUsedAt, k.ExpiresAt = sqldb.Stored(k.CreatedAt), sqldb.Stored(k.LastUsedAt), sqldb.Stored(k.ExpiresAt)
	return k, err
}

// some is s, or the empty slice for nil, so that JSON shows an array.
func some[S ~[]E, E any](s S) S {
	if s == nil {
		return S{}
	}
	return s
}
