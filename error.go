package modelgate

import (
	"cmp"
	"errors"
	"fmt"
)

// Kind classifies an Error. Each kind has one HTTP status and one wire type; see
// Kind.Status and Kind.Type.
type Kind string

// The kinds of error a client can be shown.
const (
	BadRequest          Kind = "bad_request"
	Unauthorized        Kind = "unauthorized"
	Forbidden           Kind = "forbidden"
	RegionPolicyDenied  Kind = "region_policy"
	BudgetExceeded      Kind = "budget_exceeded"
	InsufficientBalance Kind = "insufficient_balance"
	NotFound            Kind = "not_found"
	MethodNotAllowed    Kind = "method_not_allowed"
	Conflict            Kind = "conflict"
	Gone                Kind = "gone"
	TooLarge            Kind = "request_too_large"
	HeadersTooLarge     Kind = "headers_too_large"
	RateLimited         Kind = "rate_limited"
	BadGateway          Kind = "bad_gateway"
	Unavailable         Kind = "unavailable"
	Internal            Kind = "internal"
)

// statuses is the HTTP status of each kind.
var statuses = map[Kind]int{
	BadRequest:          400,
	Unauthorized:        401,
	Forbidden:           403,
	RegionPolicyDenied:  403,
	BudgetExceeded:      402,
	InsufficientBalance: 402,
	NotFound:            404,
	MethodNotAllowed:    405,
	Conflict:            409,
	Gone:                410,
	TooLarge:            413,
	HeadersTooLarge:     431,
	RateLimited:         429,
	BadGateway:          502,
	Unavailable:         503,
	Internal:            500,
}

// Status is the HTTP status of the kind; 500 for a kind that is not in the
// table.
func (k Kind) Status() int { return cmp.Or(statuses[k], 500) }

// Type is the wire type in the error envelope. The /gw API spells an
// internal fault internal_error; that is the caller's business.
func (k Kind) Type() string {
	switch {
	case k == MethodNotAllowed, k == HeadersTooLarge:
		return string(BadRequest) // the API has no type of their own for them
	case statuses[k] == 0:
		return string(Internal)
	}
	return string(k)
}

// Error is an error that a client may be shown: its message goes over the
// wire as it stands. Every other error is answered as internal and logged.
type Error struct {
	Kind    Kind
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an *Error.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// DetailError is an error with a detail for whoever can remove its cause, which
// the envelope has beside the message.
type DetailError struct {
	Err    error
	Detail string
}

// Error returns the message, without the detail.
func (e *DetailError) Error() string { return e.Err.Error() }

// Unwrap returns the error that the detail is about.
func (e *DetailError) Unwrap() error { return e.Err }

// KindOf is the kind of the first *Error in err's chain, Internal for any
// other error and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// The errors whose text is part of the API: clients may match on it.
var (
	ErrUnauthorized    = &Error{Unauthorized, "invalid gateway key"}
	ErrModelDenied     = &Error{Forbidden, "model not permitted for this client"}
	ErrKeyCap          = &Error{Forbidden, "active key limit reached for this client: revoke unused keys or ask the operator to raise max_keys"}
	ErrTooDeep         = &Error{Forbidden, "keys cannot be issued this far below the reseller's"}
	ErrOutlives        = &Error{Forbidden, "expires after the issuing key"}
	ErrResellersBudget = &Error{Forbidden, "set by the reseller"}
	ErrOperatorsBudget = &Error{Forbidden, "set by the operator"} // or rate limit, as above
	ErrSelfIssueCap    = &Error{Forbidden, "active key limit reached: revoke a key that is no longer used"}
	ErrBodyTooLarge    = &Error{TooLarge, "request body too large"}
	ErrRateLimited     = &Error{RateLimited, "rate limit exceeded"}
	ErrBudget          = &Error{BudgetExceeded, "budget limit reached"}
	ErrBalance         = &Error{InsufficientBalance, "account balance exhausted; top up to continue"}
	ErrCredentialGone  = &Error{Gone, "credential rotated after task creation; re-issue the task"}
	ErrNoTask          = &Error{NotFound, "async task not found"}
	ErrInternal        = &Error{Internal, "internal error"}
	ErrCredential      = &Error{Internal, "credential resolution failed"}
	// ErrCredentialNewer: a task was made, by another instance, with a
	// credential that this one does not have yet.
	ErrCredentialNewer  = &Error{Unavailable, "the task's credential is newer than the configuration of this instance; retry shortly"}
	ErrPathNotPermitted = &Error{Forbidden, "path not permitted for this provider"}
	ErrUnpriced         = &Error{Forbidden, "model has no price; a budget applies"}
)

// ErrMissingScope refuses a caller that lacks the scope.
func ErrMissingScope(s Scope) *Error {
	return Errorf(Forbidden, "missing required scope: %s", s)
}

// ErrRegion refuses a provider outside the EU for an eu_only client.
func ErrRegion(region string) *Error {
	return Errorf(RegionPolicyDenied, `provider region "%s" is blocked by the client's eu_only routing policy`, region)
}

// ErrBareModel answers a door called with something that is no slug.
func ErrBareModel(model string) *Error {
	return Errorf(BadRequest, `model "%s" is not a catalog slug; use 'author/model' (see GET /v1/models)`, model)
}

// ErrUnknownSlug answers a slug that the catalog does not hold.
func ErrUnknownSlug(slug string) *Error {
	return Errorf(NotFound, `model "%s" not found in catalog (see GET /v1/models)`, slug)
}

// ErrWrongKind answers a slug whose kind the door does not serve.
func ErrWrongKind(slug string, has, serves ModelKind) *Error {
	return Errorf(BadRequest, `model "%s" has kind "%s"; this endpoint serves only %s models`, slug, has, serves)
}

// ErrNoRoute answers a slug whose route names a provider that is not
// configured.
func ErrNoRoute(slug string) *Error {
	return Errorf(BadGateway, `inference route for model "%s" is not available`, slug)
}

// ErrWrongDoor answers a slug whose provider has no compatible path for the
// door. The hint is the path of a door that serves the model, "" for none.
func ErrWrongDoor(slug, hint string) *Error {
	if hint == "" {
		return Errorf(BadRequest, "model %s is not served by this endpoint; use the service SDK", slug)
	}
	return Errorf(BadRequest, "model %s is not served by this endpoint; use %s or the service SDK", slug, hint)
}
