package selfservice

import (
	"context"
	"time"

	"modelgate"
	"modelgate/internal/budgetview"
	"modelgate/internal/null"
	"modelgate/internal/store"
	"modelgate/internal/store/spend"
)

// meView is what a key may do (GET /gw/me).
type meView struct {
	Scopes       []modelgate.Scope      `json:"scopes"`
	Entitlements modelgate.Entitlements `json:"entitlements"`
	Token        *meToken               `json:"token,omitempty"` // absent for a key
}

// meToken is the browser token that a caller came with.
type meToken struct {
	TokenID   modelgate.TokenID `json:"token_id"`
	EndUser   string            `json:"end_user"`
	Models    []string          `json:"models"`
	ExpiresAt time.Time         `json:"expires_at"`
}

// fullMeView is meView with all else that there is to know.
type fullMeView struct {
	meView
	meDetails
}

// meDetails is whose key it is and what binds it.
type meDetails struct {
	APIKey       *meKey            `json:"api_key"`               // null for a person
	Person       *mePerson         `json:"person,omitempty"`      // who is signed in with an account
	Role         modelgate.Role    `json:"role,omitempty"`        // of the person
	Organization *meOrganization   `json:"organization,omitzero"` // absent for a bound key
	SubAccount   *meSubAccount     `json:"sub_account"`
	Limits       meLimits          `json:"limits"`
	Budgets      []budgetview.View `json:"budgets"` // of this key alone
}

type meKey struct {
	ID        modelgate.KeyID `json:"id"`
	Name      *string         `json:"name"`
	Prefix    string          `json:"key_prefix"`
	CreatedAt time.Time       `json:"created_at"`
	ExpiresAt *time.Time      `json:"expires_at"`
}

type mePerson struct {
	ID    modelgate.PersonID `json:"id"`
	Name  string             `json:"name"`
	Email string             `json:"email"`
}

type meOrganization struct {
	ID   modelgate.ClientID `json:"id"`
	Name string             `json:"name"`
}

type meSubAccount struct {
	ID   modelgate.SubAccountID `json:"id"`
	Name string                 `json:"name"`
	Slug string                 `json:"slug"`
}

// meLimits are the rates that bind the key; 0 is unlimited.
type meLimits struct {
	RequestsPerSecond int64 `json:"requests_per_second"`
	Concurrency       int64 `json:"concurrency"`
}

// me answers without the details while the database does not: a key that is
// known may ask what it may do all the same.
func (a *API) me(ctx context.Context, by actor, _ nothing) (any, error) {
	view := meView{Scopes: by.Scopes, Entitlements: by.Entitlements}
	if t := by.Token; t != nil {
		view.Token = &meToken{t.ID, t.EndUser, t.Models, t.ExpiresAt}
		return view, nil // what it stands for is its minter's business
	}
	ctx, cancel := context.WithTimeout(ctx, flushPatience)
	defer cancel()
	details, err := a.meDetails(ctx, by)
	// A driver may say of a query past the deadline that it was interrupted.
	if store.Unreachable(err) || err != nil && ctx.Err() != nil {
		return view, nil
	}
	return fullMeView{view, details}, err
}

func (a *API) meDetails(ctx context.Context, by actor) (meDetails, error) {
	d := meDetails{Role: by.Role, Limits: a.meLimits(by), Budgets: []budgetview.View{}}
	if by.PersonID != "" {
		person, err := a.Store.Person(ctx, by.PersonID)
		if err != nil {
			return meDetails{}, err
		}
		d.Person = &mePerson{person.ID, person.Name, person.Email}
	} else {
		key, err := a.Store.FindKey(ctx, by.KeyID)
		if err != nil {
			return meDetails{}, err
		}
		d.APIKey = &meKey{key.ID, null.IfZero(key.Name), key.Prefix, key.CreatedAt, null.IfZero(key.ExpiresAt)}
	}
	if by.SubAccountID == "" {
		client, err := a.Store.Client(ctx, by.ClientID)
		if err != nil {
			return meDetails{}, err
		}
		d.Organization = &meOrganization{client.ID, client.Name}
	} else {
		account, err := a.Store.SubAccount(ctx, by.ClientID, by.SubAccountID)
		if err != nil {
			return meDetails{}, err
		}
		d.SubAccount = &meSubAccount{account.ID, account.Name, account.Slug}
	}
	for i := range by.Budgets {
		if b := &by.Budgets[i]; b.Level == modelgate.LevelKey && b.ID == string(by.KeyID) {
			var err error
			d.Budgets, err = a.keyBudgets(ctx, by) // all at once, and only where there are any
			return d, err
		}
	}
	return d, nil
}

// keyBudgets are those of the caller's key, as GET /gw/budgets lists them.
func (a *API) keyBudgets(ctx context.Context, by actor) ([]budgetview.View, error) {
	a.settle(ctx)
	list, err := a.Store.Budgets(ctx, by.ClientID, spend.BudgetList{SubAccountID: by.SubAccountID, At: a.Now()})
	own := []budgetview.View{}
	for i := range list {
		if list[i].Level == modelgate.LevelKey && list[i].ID == string(by.KeyID) {
			own = append(own, viewBudget(by, &list[i]))
		}
	}
	return own, err
}

// meLimits are those that calls are held against.
func (a *API) meLimits(by actor) (l meLimits) {
	for _, state := range a.Limiter.State(by.KeyID, by.Limits) {
		whole := int64(state.Limit / modelgate.USD)
		switch state.Unit {
		case modelgate.UnitRequests:
			l.RequestsPerSecond = whole
		case modelgate.UnitConcurrency:
			l.Concurrency = whole
		}
	}
	return l
}

// ceiling is what the caller's keys are issued under: the organization's, or
// its own rights for a key that is bound (GET /gw/ceiling).
func (a *API) ceiling(_ context.Context, by actor, _ nothing) (modelgate.Ceiling, error) {
	return by.Bounds(), nil
}
