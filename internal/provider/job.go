package provider

import (
	"fmt"
	"modelgate/internal/provider/target"
	"modelgate/internal/provider/usage"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelgate"
)

// JobProtocol is how the jobs that some paths of a format create are polled,
// downloaded and cancelled. JobStatus says how the reply to a poll is read.
type JobProtocol struct {
	// Name tells the protocols of a format apart. The ledger keeps it.
	Name string
	// TaskID is where the reply to the creation holds the job's id, as a gjson
	// path.
	TaskID string
	// Poll, Result, Content and Cancel are a method and a path below the base
	// URL, perhaps with a query; "" where there is none. {id} stands for the
	// task id, {task} for one that is a path itself, {model} for the model and
	// {app} for the first two segments of it. Result is read once Poll says
	// that the job has succeeded.
	Poll, Result, Content, Cancel string
	// Query are parameters that calls about a job may have beside those in
	// its path; see Door.Query.
	Query []string
	// Stem is what a task id that is a path begins with, {model} standing for
	// one segment: a proxy path names only what follows. "" for other ids.
	Stem string
	// Asks: an accepted Cancel is a wish that may come too late.
	Asks bool
	// Frames: the provider counts a video in output tokens, one for so many
	// pixels of its images; see Tokens.
	Frames bool
	// Life is how long a job is followed; 0 is DefaultLife.
	Life time.Duration
	usage.JobStatus
	Download
}

// DefaultLife is how long a job is followed where its protocol says nothing else.
const DefaultLife = 24 * time.Hour

// Deadline is when a job made at the instant is given up.
func (j *JobProtocol) Deadline(made time.Time) time.Time {
	if j.Life > 0 {
		return made.Add(j.Life)
	}
	return made.Add(DefaultLife)
}

// path is the path for a role; "" where the protocol has none.
func (j *JobProtocol) path(role Role) string {
	switch role {
	case AsyncPoll:
		return j.Poll
	case AsyncResult:
		return j.Result
	case AsyncContent:
		return j.Content
	case AsyncCancel:
		return j.Cancel
	}
	return ""
}

// Has reports whether the protocol has a path for the role.
func (j *JobProtocol) Has(role Role) bool { return j.path(role) != "" }

// routes are the proxy paths of the protocol's jobs. All of them are judged by
// whose the job is.
func (j *JobProtocol) routes() []Route {
	var routes []Route
	for _, role := range []Role{AsyncPoll, AsyncResult, AsyncContent, AsyncCancel} {
		if !j.Has(role) {
			continue
		}
		pattern, query, _ := strings.Cut(j.path(role), "?")
		pattern = strings.NewReplacer("{app}", "{owner}/{alias}", "{task}", j.Stem+"{id}").Replace(pattern)
		routes = append(routes, Route{Pattern: pattern, Async: role, Endpoint: Endpoint{Free: true, Job: j, Query: append(parameterNames(query), j.Query...)}})
	}
	return routes
}

// Task is the id of the job that a proxy call names: in its path, or as the
// one query parameter task_id. "" is none.
func (j *JobProtocol) Task(captures target.Captures, query string) (modelgate.TaskID, error) {
	id := captures.Get("id")
	if id == "" {
		text, _, err := queryValue(query, "task_id")
		return modelgate.TaskID(text), err
	}
	return modelgate.TaskID(strings.ReplaceAll(j.Stem, "{model}", captures.Get("model")) + id), nil
}

// Call is the request for a role on a job, without header and body. Errors:
// the protocol has no such path.
func (j *JobProtocol) Call(role Role, job *modelgate.Job) (Call, error) {
	method, path, ok := strings.Cut(j.path(role), " ")
	if !ok {
		return Call{}, fmt.Errorf("jobs of provider %s have no way to %s", job.Provider, role)
	}
	path, query, _ := strings.Cut(path, "?")
	app := strings.SplitN(job.Model, "/", 3)
	path = strings.NewReplacer("{id}", url.PathEscape(string(job.TaskID)), "{task}", escapeSegments(string(job.TaskID)),
		"{model}", escapeSegments(job.Model), "{app}", escapeSegments(strings.Join(app[:min(len(app), 2)], "/"))).Replace(path)
	query = strings.ReplaceAll(query, "{id}", url.QueryEscape(string(job.TaskID)))
	return Call{Method: method, Path: path, Query: query, Credential: job.Credential, MadeAt: job.CreatedAt}, nil
}

func escapeSegments(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// Followable reports whether a job of the id can be asked for: its paths are
// such as every server reads alike.
func (j *JobProtocol) Followable(id modelgate.TaskID) bool {
	if id == "" || len(id) > modelgate.MaxTaskID || strings.ContainsFunc(string(id), isHidden) {
		return false
	}
	c, err := j.Call(AsyncPoll, &modelgate.Job{NewJob: modelgate.NewJob{TaskID: id}, Model: "owner/name"})
	// Without what stands between model and id, the path is that of a model.
	return err == nil && target.Judge(c.Path) == nil && strings.Contains(string(id), j.Stem[strings.LastIndexByte(j.Stem, '}')+1:])
}

// JobProtocol is the provider's protocol of the name; nil where there is none
// (any more).
func (p *Provider) JobProtocol(name string) *JobProtocol {
	i := slices.IndexFunc(p.protocols, func(j *JobProtocol) bool { return j.Name == name })
	if i < 0 {
		return nil
	}
	return p.protocols[i]
}

// addProtocol keeps a protocol, once.
func (p *Provider) addProtocol(j *JobProtocol) {
	if j != nil && p.JobProtocol(j.Name) == nil {
		p.protocols = append(p.protocols, j)
	}
}

// moved is the protocol for jobs that are created at another path: jobs that are
// followed below the usual path are followed below that one.
func (j *JobProtocol) moved(from, to string) *JobProtocol {
	if j == nil || j.Poll != openAIJobs(from).Poll {
		return j
	}
	there, at := openAIJobs(to), *j
	at.Poll = there.Poll
	if j.Content != "" {
		at.Content = there.Content
	}
	if j.Cancel != "" {
		at.Cancel = there.Cancel
	}
	return &at
}

// openAIJobs follows jobs in OpenAI's format, created with POST at the path. The
// query of the path is sent on every call.
func openAIJobs(path string) *JobProtocol {
	path, query, found := strings.Cut(path, "?")
	if found {
		query = "?" + query
	}
	return &JobProtocol{
		Name: "videos", TaskID: "id", Query: []string{"variant"},
		Poll: "GET " + path + "/{id}" + query, Content: "GET " + path + "/{id}/content" + query, Cancel: "DELETE " + path + "/{id}" + query,
		JobStatus: usage.JobStatus{State: []string{"status"}, Length: []string{"seconds"}, Size: "size"},
	}
}
