package callquery

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/callview"
	"modelgate/internal/httpx"
	"modelgate/internal/store"
)

// Service answers questions. All fields are required; safe for concurrent use.
type Service struct {
	Store   *store.DB
	Cursors *httpx.Cursors
	Now     func() time.Time
	Log     *slog.Logger
	// exporting has an entry for each asker that is sent a file by this instance.
	exporting sync.Map
}

// Exchange is a request and where its answer goes.
type Exchange struct {
	W  http.ResponseWriter
	R  *http.Request
	By Asker
}

// Stall is how long a client may take nothing before its file is cut.
const Stall = 30 * time.Second

// Export lets an asker be sent one file at a time. Errors: rate_limited for a
// second. Who was let in calls done at the end.
func (s *Service) Export(by Asker) (done func(), err error) {
	owner := string(by.Client) + "/" + string(by.SubAccountID)
	if _, busy := s.exporting.LoadOrStore(owner, true); busy {
		return nil, modelgate.Errorf(modelgate.RateLimited, "one export at a time")
	}
	return func() { s.exporting.Delete(owner) }, nil
}

// viewer is the asker, to be shown calls.
func (by *Asker) viewer() callview.Viewer {
	return callview.Viewer{Customer: by.customer(), Markup: by.Markup, All: by.Operator}
}

// callNames reads the names for some rows. Sub-accounts that are known already
// are not read again.
func (s *Service) callNames(ctx context.Context, by Asker, rows []modelgate.UsageRow, names *callview.Viewer) (err error) {
	seen := map[modelgate.KeyID]bool{}
	for i := range rows {
		seen[rows[i].KeyID] = true
	}
	if names.Keys, err = s.Store.KeyNames(ctx, by.Client, slices.Sorted(maps.Keys(seen))); err != nil {
		return err
	}
	if err := s.readOrganizations(ctx, by, names); err != nil {
		return err
	}
	var accounts []modelgate.SubAccountID
	for i := range rows {
		accounts = append(accounts, rows[i].SubAccountID)
	}
	return s.readAccounts(ctx, by, accounts, names)
}

// readOrganizations reads the names of organizations for whoever asks about all.
func (s *Service) readOrganizations(ctx context.Context, by Asker, names *callview.Viewer) error {
	if !by.Operator || names.Organizations != nil {
		return nil
	}
	clients, err := s.Store.Clients(ctx)
	names.Organizations = make(map[modelgate.ClientID]string, len(clients))
	for i := range clients {
		names.Organizations[clients[i].ID] = clients[i].Name
	}
	return err
}

// readAccounts reads those of some sub-accounts that are not known yet; for an
// organization the first time all others too.
func (s *Service) readAccounts(ctx context.Context, by Asker, ids []modelgate.SubAccountID, names *callview.Viewer) error {
	unknown := make(map[modelgate.SubAccountID]bool)
	for _, id := range ids {
		if _, known := names.Accounts[id]; !known && id != "" {
			unknown[id] = true
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	first := names.Accounts == nil
	if first {
		names.Accounts = make(map[modelgate.SubAccountID]modelgate.SubAccount)
	}
	var found []modelgate.SubAccount
	var err error
	if first && !by.Operator && !by.customer() {
		found, err = s.Store.SubAccounts(ctx, by.Client)
	} else {
		found, err = s.Store.SubAccountsByID(ctx, by.Client, slices.Sorted(maps.Keys(unknown)))
	}
	for _, account := range found {
		names.Accounts[account.ID] = account
		delete(unknown, account.ID)
	}
	for id := range unknown {
		names.Accounts[id] = modelgate.SubAccount{} // is not asked for again
	}
	return err
}

// unchanged sets the entity tag of an answer about the calls of a window, and
// answers 304 where the client has it already. The tag stands for what the
// answer depends on, and is read before it: a client that is told of no change
// has missed none.
func (s *Service) unchanged(ctx context.Context, x Exchange, window ...time.Time) (bool, error) {
	revision, err := s.Store.UsageRevision(ctx, x.By.Client)
	if err != nil {
		return false, err
	}
	texts := []string{revision, string(x.By.Client), string(x.By.SubAccountID), strconv.FormatInt(int64(x.By.Markup), 10), x.R.URL.Path, x.R.URL.RawQuery}
	for _, at := range window {
		texts = append(texts, at.Format(time.RFC3339Nano))
	}
	tag := httpx.WeakTag(texts...)
	x.W.Header().Set("ETag", tag)
	if !httpx.TagMatches(x.R.Header.Values("If-None-Match"), tag) {
		return false, nil
	}
	x.W.Header().Set("Cache-Control", "no-store")
	x.W.WriteHeader(http.StatusNotModified)
	return true, nil
}
