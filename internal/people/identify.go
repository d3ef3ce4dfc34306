package people

import (
	"context"
	"net/url"
)

// Account is what a provider says of who has signed in.
type Account struct {
	Provider        string // its name
	Issuer, Subject string // who it is
	Email           string // "" unless it is verified
	Name            string
	Groups          []string
	Session         string // what the provider calls it; "" where it does not say
	ReturnTo        string // a page below the root
}

// Identify completes a sign-in without people and memberships: admit opens the
// session, or reports false for an account that has no access. Errors are those of
// Finish, and of admit.
func (s *Service) Identify(ctx context.Context, cookie string, answer url.Values, v Visitor, admit func(Account) (bool, error)) error {
	return s.complete(ctx, cookie, answer, v, func(p *party, who *account, returnTo string) error {
		if returnTo == "" {
			returnTo = s.Root
		}
		ok, err := admit(Account{p.Name, who.issuer, who.subject, who.email, who.name, who.groups, who.session, returnTo})
		if err == nil && !ok {
			return p.noAccess()
		}
		return err
	})
}
