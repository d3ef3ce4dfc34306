package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The simulator's own words for the states of a job; each provider's format
// translates them.
const (
	jobQueued    = "queued"
	jobRunning   = "running"
	jobSucceeded = "succeeded"
	jobFailed    = "failed"
	jobCancelled = "cancelled"
	jobExpired   = "expired"
)

// defaultPolls is the poll at which a job is done; maxJobs is how many are
// remembered, the oldest being forgotten first.
const (
	defaultPolls = 2
	maxJobs      = 100_000
)

// job is one asynchronous piece of work. It runs from its first poll on.
type job struct {
	id       string
	marker   string
	model    string
	prompt   string
	size     string
	seconds  float64
	status   string
	ending   string        // the status it will end with
	polls    int           // polls left before it ends; unused with after
	after    time.Duration // time from creation to its end; 0: by polls
	created  time.Time
	finished time.Time
}

// poll moves the job on.
func (j *job) poll(now time.Time) {
	if j.status != jobQueued && j.status != jobRunning {
		return
	}
	j.status = jobRunning
	j.polls--
	done := j.polls <= 0
	if j.after > 0 {
		done = !now.Before(j.created.Add(j.after))
	}
	if done {
		j.status, j.finished = j.ending, now
	}
}

// cancel ends a job that has not been polled yet.
func (j *job) cancel(now time.Time) {
	if j.status == jobQueued {
		j.status, j.finished = jobCancelled, now
	}
}

// look changes nothing.
func (j *job) look(time.Time) {}

// jobs are the jobs of one simulator. The zero value has none.
type jobs struct {
	mu    sync.Mutex
	byID  map[string]*job
	order []string // ids, the oldest first
	made  int      // since the start: part of an id, for equal requests make different jobs
}

// add stores a job and names it.
func (j *jobs) add(id string, made job) job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byID == nil {
		j.byID = map[string]*job{}
	}
	j.made++
	made.id, made.status = fmt.Sprintf("%s%06d", id, j.made), jobQueued
	j.byID[made.id] = &made
	j.order = append(j.order, made.id)
	if len(j.order) > maxJobs {
		delete(j.byID, j.order[0])
		j.order = j.order[1:]
	}
	return made
}

// remove forgets a job.
func (j *jobs) remove(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.byID, id)
}

// latest is at most n jobs, the newest first.
func (j *jobs) latest(n int) (list []job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range slices.Backward(j.order) {
		if found, ok := j.byID[id]; ok && len(list) < n {
			list = append(list, *found)
		}
	}
	return list
}

// createJob makes a job of the call that is as long as a member says, by
// default usual seconds. It is false where no film has that length.
func (c *call) createJob(prefix string, f fields, member string, usual float64) (job, bool) {
	const longest = 60
	seconds := usual
	if f[member] != nil {
		seconds = f.number(member)
	}
	if !(seconds >= 1 && seconds <= longest) {
		return job{}, false
	}
	made := job{
		marker: c.d.mark, model: c.served.Model, prompt: c.prompt.steer, seconds: seconds, size: c.fields.text("size"),
		ending: cmp.Or(c.d.job, jobSucceeded), polls: defaultPolls, after: c.d.after, created: c.now(),
	}
	if c.d.polls >= 0 {
		made.polls = c.d.polls
	}
	made = c.p.jobs.add(c.id(prefix), made)
	c.recordJob(made)
	return made, true
}

// job is the job that the path names, after the change. It is false where there
// is none.
func (c *call) job(change func(*job, time.Time)) (job, bool) {
	j := &c.p.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.byID[c.arg]
	if !ok {
		return job{}, false
	}
	change(found, c.now())
	c.recordJob(*found)
	return *found, true
}

// recordJob puts the job into the record of the call.
func (c *call) recordJob(j job) {
	c.served.Marker, c.served.Model, c.served.Job, c.served.JobStatus = j.marker, j.model, j.id, j.status
	if j.status == jobSucceeded {
		c.served.Seconds = j.seconds
	}
}
