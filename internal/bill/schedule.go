package bill

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"modelgate"
	"modelgate/internal/invoice"
	"modelgate/internal/store/bills"
)

const (
	// claimLease is for how long an instance may read a bill before another begins.
	claimLease = 15 * time.Minute
	// tick is between two looks for bills that are due.
	tick = time.Minute
	// afterMidnight is when a day's bills are read, besides their lag. One that
	// could not be read is read again after retryAfter.
	afterMidnight = 30 * time.Minute
	retryAfter    = time.Hour
	// again is how many days before the newest are read again, watched how many
	// final days are compared, kept how many days are kept.
	again, watched, kept = 7, 30, 400
	// staleAfter is how late a reading may be without an alert.
	staleAfter = 48 * time.Hour
)

// The kinds of alerts.
const (
	Unexplained = "invoice.unexplained"
	Stale       = "invoice.stale"
)

// Outcome is what the newest final days of a bill have come to.
type Outcome struct {
	Provider           string          `json:"provider"`
	From               string          `json:"from"`
	To                 string          `json:"to"` // not included
	Days               int             `json:"days"`
	Invoiced           modelgate.Nano  `json:"invoiced_usd"`
	Own                modelgate.Nano  `json:"own_usd"`
	ExplainedPercent   float64         `json:"explained_percent"`
	UnexplainedPercent float64         `json:"unexplained_percent"`
	WrongPrice         bool            `json:"wrong_price"`
	Causes             []invoice.Cause `json:"causes"`
}

// Status is how a provider's bill stands.
type Status struct {
	Provider    string     `json:"provider"`
	Source      string     `json:"source"` // openai, anthropic or file
	Scheduled   bool       `json:"scheduled"`
	LastDay     string     `json:"last_day"` // the newest whose bill is there, "" for none
	Final       bool       `json:"final"`    // LastDay's does not change any more
	SucceededAt *time.Time `json:"succeeded_at"`
	Failure     string     `json:"failure"` // why the last reading failed, "" where it did not
	Outcome     *Outcome   `json:"outcome"` // null before the first comparison
}

// Status is how the bills of all providers stand.
func (s *Service) Status(ctx context.Context) ([]Status, error) {
	readings, err := s.Ledger.Readings(ctx)
	if err != nil {
		return nil, err
	}
	list := []Status{}
	for _, p := range s.Providers() {
		st := Status{Provider: p.Name, Source: p.API, Scheduled: p.Scheduled()}
		if p.API == "" {
			st.Source = "file"
		}
		for _, r := range readings {
			if r.Provider != p.Name {
				continue
			}
			st.Failure = r.Failure
			if !r.SucceededAt.IsZero() {
				st.SucceededAt = &r.SucceededAt
			}
			if r.Outcome != "" {
				if err := json.Unmarshal([]byte(r.Outcome), &st.Outcome); err != nil {
					return nil, fmt.Errorf("the outcome of %s: %w", p.Name, err)
				}
			}
		}
		states, err := s.Days(ctx, p.Name, s.Now().Add(-kept*day), s.Now().Add(day))
		if err != nil {
			return nil, err
		}
		for _, d := range states {
			if d.State != Missing {
				st.LastDay, st.Final = d.Day, d.State == Final
			}
		}
		list = append(list, st)
	}
	return list, nil
}

// DayState says whether the bill of a day is there.
type DayState string

// The states. A final bill is not expected to change.
const (
	Missing DayState = "missing"
	Fetched DayState = "fetched"
	Final   DayState = "final"
)

// Day is how the bill of a day stands.
type Day struct {
	Day       string          `json:"day"`
	State     DayState        `json:"state"`
	FetchedAt *time.Time      `json:"fetched_at"`
	Digest    string          `json:"digest"`  // "" while missing
	Own       *modelgate.Nano `json:"own_usd"` // what the rows cost; null until they are summed
	Sealed    bool            `json:"sealed"`  // the rows do not change any more
}

// Days are the days in [from, to) of which there is a bill or sums of rows.
func (s *Service) Days(ctx context.Context, name string, from, to time.Time) ([]Day, error) {
	p, err := s.provider(name)
	if err != nil {
		return nil, err
	}
	states, err := s.Ledger.BillStates(ctx, name, dateOf(from), dateOf(to))
	days := make([]Day, 0, len(states))
	for _, st := range states {
		d := Day{Day: st.Bill.Day, State: Missing, Digest: st.Digest, Sealed: st.Sealed}
		if !st.FetchedAt.IsZero() {
			at := st.FetchedAt
			if d.FetchedAt, d.State = &at, Fetched; p.final(d.Day, at) {
				d.State = Final
			}
		}
		if !st.SummedAt.IsZero() {
			d.Own = &st.Cost
		}
		days = append(days, d)
	}
	return days, err
}

// Run reads bills when they are due until the context ends.
func (s *Service) Run(ctx context.Context) {
	for s.Sleep(ctx, tick) == nil {
		s.Round(ctx)
	}
}

// Round reads the bills that are due, compares them, and tells what is wrong. A
// provider that cannot be read does not hold up the others.
func (s *Service) Round(ctx context.Context) {
	for _, p := range s.Providers() {
		if !p.Scheduled() || ctx.Err() != nil {
			continue
		}
		if err := s.round(ctx, &p); err != nil && ctx.Err() == nil {
			s.Log.Warn("the bill of a provider was not read; will retry", "provider", p.Name, "error", err)
		}
	}
	list, err := s.Status(ctx)
	if err != nil {
		return // the database is away, which others say
	}
	s.Observe(list)
	for i := range list {
		s.tell(ctx, &list[i])
	}
}

func (s *Service) round(ctx context.Context, p *Provider) error {
	claimed, err := s.Ledger.ClaimReading(ctx, p.Name, claimLease, false)
	if err != nil || !claimed {
		return err
	}
	state, err := s.reading(ctx, p.Name)
	if err != nil {
		return err
	}
	now := s.Now()
	// The newest day has ended lag and half an hour ago.
	end := now.Add(-afterMidnight - p.Lag).UTC().Truncate(day)
	_, err = s.fetch(ctx, p, end.Add(-(again+1)*day), end, s.Audit("invoice.fetch"))
	if err == nil {
		err = s.watch(ctx, p, &state, end)
	}
	s.ended(&state, err)
	if state.DueAt = end.Add(day + p.Lag + afterMidnight); err != nil {
		state.DueAt = now.Add(retryAfter)
	}
	if finishErr := s.Ledger.FinishReading(context.WithoutCancel(ctx), state); err == nil {
		err = finishErr
	}
	return err
}

// watch sums the rows of the days that were read again, compares the newest final
// days, and forgets the oldest.
func (s *Service) watch(ctx context.Context, p *Provider, state *bills.Reading, end time.Time) error {
	from, err := s.oldest(ctx)
	if err != nil {
		return err
	}
	if newest := end.Add(-(again + 1) * day); from.Before(newest) {
		from = newest
	}
	if err := s.sum(ctx, p, invoice.NewBooks(), from, end, sumPause); err != nil {
		return err
	}
	r, err := s.check(ctx, p, end.Add(-watched*day), end, "", sumPause)
	if err != nil {
		return err
	}
	text, err := json.Marshal(Outcome{
		Provider: p.Name, From: r.From, To: r.To, Days: watched - len(r.Missing), Invoiced: r.Invoiced, Own: r.Own,
		ExplainedPercent: r.ExplainedPercent, UnexplainedPercent: r.UnexplainedPercent, WrongPrice: r.WrongPrice(), Causes: r.Causes,
	})
	if err != nil {
		return err
	}
	state.Outcome = string(text)
	return s.Ledger.PruneBills(ctx, p.Name, dateOf(end.Add(-kept*day)))
}

// tell sends an alert about a bill once a day. Several instances take turns.
func (s *Service) tell(ctx context.Context, st *Status) {
	kind, most := "", s.AlertPercent()
	switch {
	case !st.Scheduled:
		return
	case st.SucceededAt == nil && st.Failure != "", st.SucceededAt != nil && s.Now().Sub(*st.SucceededAt) > day+staleAfter:
		kind = Stale
	case st.Outcome != nil && most > 0 && (st.Outcome.WrongPrice || st.Outcome.UnexplainedPercent > most):
		kind = Unexplained
	default:
		return
	}
	what := dateOf(s.Now()) + " " + kind
	mine, err := s.Ledger.Tell(ctx, st.Provider, what)
	if err != nil || !mine {
		return
	}
	s.Log.Warn("the bill of a provider needs a look", "alert", kind, "provider", st.Provider, "failure", st.Failure)
	data := struct {
		Provider    string     `json:"provider"`
		SucceededAt *time.Time `json:"succeeded_at"`
		Failure     string     `json:"failure"`
		Outcome     *Outcome   `json:"outcome"`
	}{st.Provider, st.SucceededAt, st.Failure, st.Outcome}
	if err := s.Alert(ctx, kind, st.Provider+" "+what, data); err != nil {
		s.Log.Warn("an alert about a bill was not delivered; will retry", "provider", st.Provider, "error", err)
		_, _ = s.Ledger.Tell(context.WithoutCancel(ctx), st.Provider, "") // the next round tries again
	}
}
