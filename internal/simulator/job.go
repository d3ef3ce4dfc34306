package simulator

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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
	hash     string // of the request that made it
	nth      int    // among those of equal hash
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

// jobs is the jobs of one simulator. The zero value has none.
type jobs struct {
	mu    sync.Mutex
	byID  map[string]*job
	order []*job
	equal map[string]int // how many jobs one request made, while they are remembered
}

// add stores a job under an id that depends on the request and on how many
// equal ones came before.
func (j *jobs) add(hash, prefix string, made job) job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.byID == nil {
		j.byID, j.equal = map[string]*job{}, map[string]int{}
	}
	j.equal[hash]++
	made.hash, made.nth = hash, j.equal[hash]
	sum := sha256.Sum256([]byte(hash + strconv.Itoa(made.nth)))
	made.id, made.status = prefix+hex.EncodeToString(sum[:12]), jobQueued
	j.byID[made.id] = &made
	j.order = append(j.order, &made)
	if len(j.order) > maxJobs {
		j.forget(j.order[0])
		j.order = j.order[1:]
	}
	return made
}

// forget drops a job, and the count of its equals when it is their last, so
// that no later id can be that of a remembered job.
func (j *jobs) forget(old *job) {
	delete(j.byID, old.id)
	if j.equal[old.hash] == old.nth {
		delete(j.equal, old.hash)
	}
}

// poll moves the job on and returns it.
func (j *jobs) poll(id string, now time.Time) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.byID[id]
	if !ok {
		return job{}, false
	}
	if found.status == jobQueued || found.status == jobRunning {
		found.status = jobRunning
		found.polls--
		done := found.polls <= 0
		if found.after > 0 {
			done = !now.Before(found.created.Add(found.after))
		}
		if done {
			found.status, found.finished = found.ending, now
		}
	}
	return *found, true
}

// cancel ends a job that has not been polled yet.
func (j *jobs) cancel(id string, now time.Time) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.byID[id]
	if !ok {
		return job{}, false
	}
	if found.status == jobQueued {
		found.status, found.finished = jobCancelled, now
	}
	return *found, true
}

// remove forgets a job and returns it as it was.
func (j *jobs) remove(id string) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.byID[id]
	if !ok {
		return job{}, false
	}
	delete(j.byID, id)
	return *found, true
}

// get is the job as it stands.
func (j *jobs) get(id string) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.byID[id]
	if !ok {
		return job{}, false
	}
	return *found, true
}

// list is at most n jobs, the newest first.
func (j *jobs) list(n int) []job {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []job
	for i := len(j.order) - 1; i >= 0 && len(list) < n; i-- {
		if found, ok := j.byID[j.order[i].id]; ok {
			list = append(list, *found)
		}
	}
	return list
}

// createJob makes a job of the call, seconds long.
func (p *Provider) createJob(c *call, prefix string, seconds float64) job {
	made := job{
		marker: c.d.mark, model: c.served.Model, prompt: c.prompt.steer, seconds: seconds, size: c.fields.text("size"),
		ending: jobSucceeded, polls: defaultPolls, after: c.d.after, created: p.opts.Now(),
	}
	if c.d.job != "" {
		made.ending = c.d.job
	}
	if c.d.polls >= 0 {
		made.polls = c.d.polls
	}
	made = p.jobs.add(p.hash(c), prefix, made)
	c.sawJob(made)
	return made
}

// sawJob puts the job into the record of the call.
func (c *call) sawJob(j job) {
	c.served.Marker, c.served.Model, c.served.Job, c.served.JobStatus = j.marker, j.model, j.id, j.status
	if j.status == jobSucceeded {
		c.served.Seconds = j.seconds
	}
}
