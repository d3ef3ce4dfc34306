package modelgate

import (
	"slices"
	"time"
)

// TaskID is a provider's id of an asynchronous job. It is unique among the
// jobs of one organization at one provider.
type TaskID string

// MaxTaskID is how many bytes a task id has at most; a job with a longer one
// is not followed.
const MaxTaskID = 256

// JobStatus is the state of an asynchronous job (spec: Async job ledger
// entry).
type JobStatus string

// The states. All but JobPending are final.
const (
	JobPending   JobStatus = "pending"
	JobSucceeded JobStatus = "succeeded"
	JobFailed    JobStatus = "failed"
	JobCancelled JobStatus = "cancelled"
	JobExpired   JobStatus = "expired"
)

// JobReason says why a job expired; "" for one that did not.
type JobReason string

// The reasons.
const (
	// ReasonDeadline: the provider had not finished it in time, or could not
	// be asked.
	ReasonDeadline JobReason = "deadline"
	// ReasonRotated: the credential that it was made with is gone, so that
	// nobody can ask the provider.
	ReasonRotated JobReason = "credential_rotated"
	// ReasonProvider: the provider itself says so.
	ReasonProvider JobReason = "provider"
)

// JobEvent is what moves a job.
type JobEvent string

// The events. The first four are what providers say, and JobRuns is that they
// say nothing of the kind.
const (
	JobRuns        JobEvent = ""
	JobSucceeds    JobEvent = "succeeds"
	JobFails       JobEvent = "fails"
	JobIsCancelled JobEvent = "is cancelled" // by the provider, or on request
	JobLapses      JobEvent = "lapses"       // the provider has given it up
	JobOverdue     JobEvent = "is overdue"   // its deadline has passed
	JobLost        JobEvent = "is lost"      // its credential is gone
)

// transition is one line of the table of Next.
type transition struct {
	event  JobEvent
	status JobStatus
	reason JobReason
	parse  ParseStatus
}

// transitions all lead from pending.
var transitions = [...]transition{
	{JobSucceeds, JobSucceeded, "", ParseOK},
	{JobFails, JobFailed, "", ParseFailed},
	{JobIsCancelled, JobCancelled, "", ParseCancelled},
	{JobLapses, JobExpired, ReasonProvider, ParseExpired},
	{JobOverdue, JobExpired, ReasonDeadline, ParseExpired},
	{JobLost, JobExpired, ReasonRotated, ParseExpired},
}

// Next is the state that an event leads to and why; false where it moves
// nothing: final states never change.
func Next(s JobStatus, e JobEvent) (JobStatus, JobReason, bool) {
	i := slices.IndexFunc(transitions[:], func(t transition) bool { return t.event == e })
	if s != JobPending || i < 0 {
		return s, "", false
	}
	return transitions[i].status, transitions[i].reason, true
}

// NewJob is what the end of a call says of the job that it made.
type NewJob struct {
	TaskID TaskID
	// Kind is video, image, 3d or audio.
	Kind ModelKind
	// Way names how the provider's format follows the job.
	Way string
	// Credential is the fingerprint of the credential it was made with, ""
	// for none.
	Credential string
	Deadline   time.Time
	// Reserve stays held of the call's budgets beside its cost until the job
	// is final: what it may cost more than its provisional cost.
	Reserve Nano
	// Price is the frozen price, see Price.Freeze.
	Price string
}

// Job is an asynchronous job in the ledger (spec: Async job ledger entry). Its
// id is that of its usage row.
type Job struct {
	NewJob
	ID           UUID
	ClientID     ClientID
	KeyID        KeyID
	SubAccountID SubAccountID
	Provider     string // route provider
	Model        string // the provider's own id
	Author       string // "" where the route is not catalogued
	Slug         string // likewise
	Attribution  map[string]string
	Holds        Holds
	Usage        Usage // what was asked for
	Status       JobStatus
	Reason       JobReason
	Provisional  Nano
	Final        Nano // 0 while pending
	CreatedAt    time.Time
	FinalizedAt  time.Time // zero while pending
}

// JobNews is what was learned of a job.
type JobNews struct {
	Event JobEvent
	// Usage is what the provider states that the job used; Stated says that it
	// does.
	Usage  Usage
	Stated bool
	// Length is how long the provider says the result is, in millionths of a
	// second; 0 is unknown. It goes before what was asked for.
	Length int64
	// Videos is how many films there are; 0 is unknown.
	Videos int64
	// Units is how much the provider says it used of what the model is billed
	// by, in millionths; 0 is unknown.
	Units int64
	// Charge is what the provider states that it charged; Charged says that it
	// does.
	Charge  Nano
	Charged bool
}

// JobFinal is the end of a job and of its usage row.
type JobFinal struct {
	Job         *Job
	Status      JobStatus
	Reason      JobReason
	ParseStatus ParseStatus
	Usage       Usage
	Cost        Nano
	PriceLabel  string
}

// Finish is what the news make of a pending job; false where they end
// nothing.
//
// A job that has succeeded costs what the provider says it used, in what it
// does not say what was asked for, at the price of its creation; one that nothing prices costs what
// the provider charged. One that ended otherwise costs nothing, unless the
// provider states a charge. At its deadline the provisional cost becomes the
// final one, because the provider may bill it.
func (j *Job) Finish(n JobNews) (JobFinal, bool) {
	status, reason, ok := Next(j.Status, n.Event)
	if !ok {
		return JobFinal{}, false
	}
	i := slices.IndexFunc(transitions[:], func(t transition) bool { return t.event == n.Event })
	f := JobFinal{Job: j, Status: status, Reason: reason, ParseStatus: transitions[i].parse}
	switch {
	case n.Event == JobLost:
		return f, true
	case n.Event == JobOverdue:
		f.Usage, f.Cost = j.Usage, j.Provisional
		_, _, f.PriceLabel = j.cost(&f.Usage)
		return f, true
	case n.Event == JobSucceeds:
		f.Usage = n.Usage.or(j.Usage)
		f.Usage.film(n)
		j.bill(&f.Usage, n.Units)
	case n.Stated:
		f.Usage = n.Usage
	case !n.Charged:
		return f, true
	}
	fine := f.Usage.Clamp()
	var priced Priced
	f.Cost, priced, f.PriceLabel = j.cost(&f.Usage)
	blind := f.Cost == 0 && !f.Usage.counts()
	if n.Charged && (priced == Unpriced || blind || !n.Stated && n.Event != JobSucceeds) {
		f.Cost, priced, f.PriceLabel = max(n.Charge, 0), FullyPriced, "stated by the provider"
		blind = false
	}
	if n.Event == JobSucceeds && (blind || priced != FullyPriced || !fine) {
		f.ParseStatus = ParsePartial
	}
	return f, true
}

// film takes over what the news say of the films that were made, where they do
// not say how many seconds were used.
func (u *Usage) film(n JobNews) {
	switch {
	case n.Usage.Seconds > 0:
	case n.Length > 0:
		u.Seconds = n.Length
	case n.Videos > 0 && n.Videos < max(u.Videos, 1):
		u.Seconds = u.Seconds / u.Videos * n.Videos
		u.Videos = n.Videos
	}
}

// bill says what was used in the one unit that the job's price is for; where
// it is for several, nobody can say which of them the provider means.
func (j *Job) bill(u *Usage, millionths int64) {
	price, err := ThawPrice(j.Price)
	if err != nil || price == nil || millionths <= 0 {
		return
	}
	unit, ok := price.Base.sole()
	switch {
	case !ok:
	case unit == UnitSecond:
		u.Seconds = millionths
	case unit == UnitMegapixel:
		u.Megapixels = millionths
	case unit == UnitImage && millionths%1_000_000 == 0:
		u.Images = millionths / 1_000_000
	case unit == UnitCharacters && millionths%1_000_000 == 0:
		u.Characters = millionths / 1_000_000
	}
}

// cost is the cost of a usage at the price of the job's creation.
func (j *Job) cost(u *Usage) (Nano, Priced, string) {
	price, err := ThawPrice(j.Price)
	if err != nil {
		return 0, Unpriced, ""
	}
	return price.Cost(u, j.CreatedAt)
}
