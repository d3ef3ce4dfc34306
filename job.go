package modelgate

import "time"

// TaskID is a provider's id of an asynchronous job. It is unique among the
// jobs of one organization at one provider.
type TaskID string

// MaxTaskID is how many bytes a task id has at most; a job with a longer one
// is not followed.
const MaxTaskID = 256

// JobStatus is the state of an asynchronous job.
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

// JobEvent is an event in the life of a job.
type JobEvent string

// The events. JobRuns changes nothing; the next four come from providers.
const (
	JobRuns        JobEvent = ""
	JobSucceeds    JobEvent = "succeeds"
	JobFails       JobEvent = "fails"
	JobIsCancelled JobEvent = "is cancelled" // by the provider, or on request
	JobLapses      JobEvent = "lapses"       // the provider has given it up
	JobOverdue     JobEvent = "is overdue"   // its deadline has passed
	JobLost        JobEvent = "is lost"      // its credential is gone
)

// NewJob is the asynchronous job that a call created, as its end records it.
type NewJob struct {
	TaskID TaskID
	// Kind is video, image, 3d or audio.
	Kind ModelKind
	// Protocol names how the provider's format follows the job: a JobProtocol of
	// package provider.
	Protocol string
	// Credential is the fingerprint of the credential it was made with, ""
	// for none.
	Credential string
	Deadline   time.Time
	// Reserve is how much the job may cost more than its provisional cost. It
	// stays reserved on the call's budgets until the job is final.
	Reserve Nano
	// Price is the snapshot of the price, see pricing.Snapshot.
	Price string
}

// Job is an asynchronous job in the ledger. Its id is that of its usage row.
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
	Rules        []int64
	Usage        Usage // what was asked for
	Status       JobStatus
	Reason       JobReason
	Provisional  Nano
	Final        Nano // 0 while pending
	CreatedAt    time.Time
	FinalizedAt  time.Time // zero while pending
}

// JobNews is the news about a job from one poll of its provider.
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

// transitions are the ends of a pending job by event.
var transitions = map[JobEvent]JobFinal{
	JobSucceeds:    {Status: JobSucceeded, ParseStatus: ParseOK},
	JobFails:       {Status: JobFailed, ParseStatus: ParseFailed},
	JobIsCancelled: {Status: JobCancelled, ParseStatus: ParseCancelled},
	JobLapses:      {Status: JobExpired, Reason: ReasonProvider, ParseStatus: ParseExpired},
	JobOverdue:     {Status: JobExpired, Reason: ReasonDeadline, ParseStatus: ParseExpired},
	JobLost:        {Status: JobExpired, Reason: ReasonRotated, ParseStatus: ParseExpired},
}

// Next is the end that an event leads to, as yet without usage and cost; false
// where it moves nothing: final states never change.
func (j *Job) Next(e JobEvent) (JobFinal, bool) {
	f, ok := transitions[e]
	f.Job = j
	return f, ok && j.Status == JobPending
}
