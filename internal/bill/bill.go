// Package bill reads what providers bill, keeps it by UTC day, and compares it with
// the usage rows: on demand and, where a provider has an API for it, every day.
package bill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/invoice"
	"modelgate/internal/store/bills"
)

// The APIs that a bill is read from; "" is files alone.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// Provider is how a provider's bill is read, and what it is compared with.
type Provider struct {
	Name           string
	API            string // OpenAI, Anthropic or ""
	BaseURL        string
	Credential     string // an administrator's key; "" where CredentialFile has it, or where there is none
	CredentialFile string
	Projects, Keys []string      // see invoice.Scope
	Daily          bool          // the API is read every day
	Lag            time.Duration // after a day's end its bill is final
	Amount         string        // the column of a FOCUS file that counts
	SKUs           []invoice.SKU
	Factor         func(day string) *big.Rat // see invoice.Scope
}

// Scheduled reports whether the bill is read every day.
func (p *Provider) Scheduled() bool {
	return p.Daily && p.API != "" && (p.Credential != "" || p.CredentialFile != "")
}

// Ledger is where rows and bills are stored; *store.DB is one.
type Ledger interface {
	Clients(context.Context) ([]modelgate.Client, error)
	UsageBounds(context.Context, modelgate.ClientID) (pruned, final time.Time, err error)
	UsageSpan(ctx context.Context, client modelgate.ClientID, sub modelgate.SubAccountID, from, to time.Time, visit func(*modelgate.UsageRow) error) error
	Readings(context.Context) ([]bills.Reading, error)
	ClaimReading(ctx context.Context, provider string, lease time.Duration, force bool) (bool, error)
	FinishReading(context.Context, bills.Reading) error
	Tell(ctx context.Context, provider, what string) (bool, error)
	Bills(ctx context.Context, provider, from, to string) ([]bills.Bill, error)
	Sums(ctx context.Context, provider, from, to string) ([]bills.Sums, error)
	BillStates(ctx context.Context, provider, from, to string) ([]bills.State, error)
	PutBills(ctx context.Context, provider string, days []bills.Bill, replace bool, audit modelgate.Audit) error
	PutSums(ctx context.Context, provider string, days []bills.Sums) error
	PruneBills(ctx context.Context, provider, before string) error
}

// Service reads, keeps and compares bills. Safe for concurrent use.
type Service struct {
	Ledger    Ledger
	Providers func() []Provider // of the configuration in force
	Now       func() time.Time
	Sleep     func(context.Context, time.Duration) error
	Log       *slog.Logger
	// Audit is the record of a change that this service makes by itself.
	Audit func(action string) modelgate.Audit
	// AlertPercent is how much of a bill may be unexplained without an alert; 0 means
	// any.
	AlertPercent func() float64
	// Alert tells the operator; id is the same for each try.
	Alert func(ctx context.Context, kind, id string, data any) error
	// Observe is told how the bills stand, every few minutes.
	Observe func([]Status)
}

// MaxDays bounds a range of days, maxImport that of a file.
const (
	MaxDays   = 92
	maxImport = 400
)

// Errors for people.
var (
	ErrRange   = errors.New("at most 92 days, and the end after the beginning")
	ErrRunning = errors.New("a fetch is running")
)

// provider finds one by its name.
func (s *Service) provider(name string) (*Provider, error) {
	list := s.Providers()
	at := slices.IndexFunc(list, func(p Provider) bool { return p.Name == name })
	if at < 0 {
		return nil, &modelgate.Error{Kind: modelgate.NotFound, Message: fmt.Sprintf("the configuration has no provider %q", name)}
	}
	return &list[at], nil
}

// Read is what a reading has stored.
type Read struct {
	Provider string         `json:"provider"`
	From     string         `json:"from"`
	To       string         `json:"to"` // not included
	Days     int            `json:"days"`
	Lines    int            `json:"lines"`
	Changed  []string       `json:"changed"` // days whose bill was there and is another now
	Invoiced modelgate.Nano `json:"invoiced_usd"`
	Digest   string         `json:"digest"` // of all days
}

// Fetch reads the bill of the days [from, to) from the provider's API and stores it,
// all days or none. While another instance reads it, ErrRunning.
func (s *Service) Fetch(ctx context.Context, name string, from, to time.Time, audit modelgate.Audit) (*Read, error) {
	p, err := s.provider(name)
	if err != nil {
		return nil, err
	}
	if !inRange(from, to) {
		return nil, ErrRange
	}
	claimed, err := s.Ledger.ClaimReading(ctx, name, claimLease, true)
	if err != nil {
		return nil, err
	}
	if !claimed {
		return nil, ErrRunning
	}
	state, err := s.reading(ctx, name)
	if err != nil {
		return nil, err
	}
	read, err := s.fetch(ctx, p, from, to, audit)
	s.ended(&state, err)
	return read, errors.Join(err, s.Ledger.FinishReading(context.WithoutCancel(ctx), state))
}

func inRange(from, to time.Time) bool { return to.After(from) && to.Sub(from) <= MaxDays*day }

// reading is how the reading of a bill stands.
func (s *Service) reading(ctx context.Context, name string) (bills.Reading, error) {
	all, err := s.Ledger.Readings(ctx)
	for _, r := range all {
		if r.Provider == name {
			return r, err
		}
	}
	return bills.Reading{Provider: name}, err
}

// ended notes how a reading has ended.
func (s *Service) ended(r *bills.Reading, err error) {
	if r.Failure = ""; err != nil {
		r.Failure = err.Error()
		return
	}
	r.SucceededAt = s.Now()
}

func (s *Service) fetch(ctx context.Context, p *Provider, from, to time.Time, audit modelgate.Audit) (*Read, error) {
	lines, err := p.read(ctx, s.Sleep, from, to)
	if err != nil {
		return nil, err
	}
	return s.keep(ctx, p, lines, from, to, true, audit)
}

// Import stores the bill in a file, all days or none. Days that are there already
// refuse it, unless they are to be replaced. Within the days of the file, one
// without lines costs nothing.
func (s *Service) Import(ctx context.Context, name string, file io.Reader, replace bool, audit modelgate.Audit) (*Read, error) {
	p, err := s.provider(name)
	if err != nil {
		return nil, err
	}
	lines, err := p.readFile(file)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("the file has no lines")
	}
	from, to := dayAt(lines[0].Day), dayAt(lines[len(lines)-1].Day).Add(day) // they are in order
	if to.Sub(from) > maxImport*day {
		return nil, fmt.Errorf("the file has more than %d days", maxImport)
	}
	return s.keep(ctx, p, lines, from, to, replace, audit)
}

// keep stores lines of the days [from, to), and the audit of that.
func (s *Service) keep(ctx context.Context, p *Provider, lines []invoice.Line, from, to time.Time, replace bool, audit modelgate.Audit) (*Read, error) {
	read := &Read{Provider: p.Name, From: dateOf(from), To: dateOf(to), Lines: len(lines), Changed: []string{}}
	of := make(map[string][]invoice.Line)
	all := new(big.Rat)
	for _, l := range lines {
		of[l.Day] = append(of[l.Day], l)
		all.Add(all, l.Amount)
	}
	read.Invoiced = invoice.Nano(all)
	before, err := s.digests(ctx, p.Name, read.From, read.To)
	if err != nil {
		return nil, err
	}
	var days []bills.Bill
	digests := sha256.New()
	for at := from; at.Before(to); at = at.Add(day) {
		b := bills.Bill{Day: dateOf(at), FetchedAt: s.Now()}
		if b.Lines, err = invoice.StoredLines(of[b.Day]); err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(b.Lines))
		b.Digest = hex.EncodeToString(sum[:])
		_, _ = digests.Write(sum[:]) // a hash never fails
		if old := before[b.Day]; old != "" && old != b.Digest {
			read.Changed = append(read.Changed, b.Day)
		}
		days = append(days, b)
	}
	read.Days, read.Digest = len(days), hex.EncodeToString(digests.Sum(nil))
	audit.TargetType, audit.TargetID = "provider", p.Name
	if audit.Change, err = json.Marshal(read); err != nil {
		return nil, err
	}
	return read, s.Ledger.PutBills(ctx, p.Name, days, replace, audit)
}

// digests are those of the bills that are there, by day.
func (s *Service) digests(ctx context.Context, name, from, to string) (map[string]string, error) {
	states, err := s.Ledger.BillStates(ctx, name, from, to)
	found := make(map[string]string, len(states))
	for _, d := range states {
		found[d.Bill.Day] = d.Digest
	}
	return found, err
}

const day = 24 * time.Hour

func dateOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// dayAt is when a day of dateOf begins.
func dayAt(date string) time.Time {
	t, _ := time.Parse(time.DateOnly, date)
	return t
}
