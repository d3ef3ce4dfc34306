// Package keyview shows keys: to organizations and their customers, and to the
// operator.
package keyview

import (
	"time"

	"modelgate"
	"modelgate/internal/null"
)

// View is a key in a list, without whose it is.
type View struct {
	modelgate.Key
	Name         *string                 `json:"name"`
	SubAccountID *modelgate.SubAccountID `json:"sub_account_id"`
	LastUsedAt   *time.Time              `json:"last_used_at"`
	ExpiresAt    *time.Time              `json:"expires_at"`
}

// Of shows a key.
func Of(k *modelgate.Key) View {
	return View{*k, null.IfZero(k.Name), null.IfZero(k.SubAccountID), null.IfZero(k.LastUsedAt), null.IfZero(k.ExpiresAt)}
}
