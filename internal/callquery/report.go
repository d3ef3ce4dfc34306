package callquery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/csvfile"
	"modelgate/internal/httpx"
	"modelgate/internal/report"
	"modelgate/internal/store"
)

// Report is a question for sums.
type Report struct {
	Filter
	report.Query
	previous bool // with the totals of the time before
	csv      bool
}

// Read reads the question from the parameters of a request.
func (q *Report) Read(p *httpx.Params, by Asker, now time.Time) error {
	if err := q.Filter.read(p, by, now); err != nil {
		return err
	}
	if q.To.IsZero() {
		q.To = now.Truncate(time.Minute).Add(time.Minute) // the calls of this minute too
	}
	for _, text := range p.List("group_by") {
		d := report.Dimension(text)
		switch {
		case d == report.Organization && by.Operator:
		case d == report.Organization || !d.Valid():
			return modelgate.Errorf(modelgate.BadRequest, "group_by must be model, author, provider, native_model, key_id, sub_account_id, status, "+
				"parse_status, door, kind, region, via_sdk, or tag: and an attribution key")
		case by.customer() && (d == report.NativeModel || d == report.Region || d == report.SubAccount):
			return modelgate.Errorf(modelgate.Forbidden, "a key bound to a sub-account cannot group by %s", d)
		}
		q.GroupBy = append(q.GroupBy, d)
	}
	q.Interval = httpx.OneOf(p, "interval", report.Whole, report.Whole, report.Hour, report.Day, report.Week, report.Month)
	q.Top = p.Int("top", 1, 50, 7)
	q.Order = httpx.OneOf(p, "order", report.ByCost, report.ByCost, report.ByRequests, report.ByTokens, report.ByErrors, report.ByP95)
	q.previous = httpx.OneOf(p, "compare", "none", "none", "previous") == "previous"
	q.csv = httpx.OneOf(p, "format", "json", "json", "csv") == "csv"
	switch n := len(q.GroupBy); {
	case n > 2 || n == 2 && q.GroupBy[0] == q.GroupBy[1]:
		return modelgate.Errorf(modelgate.BadRequest, "group_by must name one or two different dimensions")
	case q.Interval == report.Hour && q.To.Sub(q.From) > LongestHours:
		return modelgate.Errorf(modelgate.BadRequest, "interval hour is for 62 days at most")
	}
	return nil
}

// ServeReport answers a question for sums.
func (s *Service) ServeReport(ctx context.Context, x Exchange, q *Report) error {
	if current, err := s.unchanged(ctx, x, q.From, q.To); err != nil || current {
		return err
	}
	made, names, err := s.makeReport(ctx, x.By, q)
	if errors.Is(err, store.ErrTooManyCalls) {
		return modelgate.Errorf(modelgate.BadRequest, "a report reads at most %d calls, and the time asked for has more; narrow the range", q.MostRead())
	}
	if err != nil {
		return err
	}
	if q.csv {
		file := csvfile.New(httpx.CSVWriter{ResponseWriter: x.W, Name: "report-" + days(q.From, q.To, q.To), Stall: Stall})
		for _, cells := range report.Table(made, names) {
			file.Row(cells...)
		}
		_ = file.Flush() // it fails if the client has left
		return nil
	}
	return httpx.WriteJSON(x.W, report.Show(made, names))
}

// makeReport reads the calls, and what they are shown with.
func (s *Service) makeReport(ctx context.Context, by Asker, q *Report) (*report.Made, *report.Names, error) {
	sums := report.New(q.Query)
	if err := s.Store.EachCall(ctx, q.CallFilter, sums.Add); err != nil {
		return nil, nil, err
	}
	made := &report.Made{From: q.From, To: q.To, GroupBy: q.GroupBy, Totals: sums.Totals, Rows: sums.Rows()}
	if q.previous {
		before := q.CallFilter
		before.From, before.To = q.From.Add(q.From.Sub(q.To)), q.From
		earlier := report.New(report.Query{Interval: report.Whole, Top: 1})
		if err := s.Store.EachCall(ctx, before, earlier.Add); err != nil {
			return nil, nil, err
		}
		made.Previous = &earlier.Totals
	}
	names, err := s.reportNames(ctx, by, made)
	return made, names, err
}

// reportNames reads the markups of the sub-accounts that are in a report, and the
// names of its groups.
func (s *Service) reportNames(ctx context.Context, by Asker, made *report.Made) (*report.Names, error) {
	names := by.viewer()
	var accounts []modelgate.SubAccountID
	for _, f := range []*report.Figures{&made.Totals, made.Previous} {
		if f != nil {
			accounts = slices.AppendSeq(accounts, maps.Keys(f.Resold))
		}
	}
	if err := s.readAccounts(ctx, by, accounts, &names); err != nil {
		return nil, err
	}
	var keys []modelgate.KeyID
	for _, id := range made.Groups(report.Key) {
		keys = append(keys, modelgate.KeyID(id))
	}
	if len(made.Groups(report.Organization)) > 0 {
		if err := s.readOrganizations(ctx, by, &names); err != nil {
			return nil, err
		}
	}
	var err error
	names.Keys, err = s.Store.KeyNames(ctx, by.Client, keys)
	return &report.Names{
		Customer: by.customer(),
		Markup:   func(id modelgate.SubAccountID) modelgate.Markup { return names.Accounts[id].Markup },
		Label: func(d report.Dimension, text string) string {
			switch d {
			case report.Organization:
				return names.Organizations[modelgate.ClientID(text)]
			case report.Key:
				return names.Keys[modelgate.KeyID(text)]
			case report.SubAccount:
				return names.Accounts[modelgate.SubAccountID(text)].Name
			}
			return ""
		},
	}, err
}
