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

// JobProtocol is how a format follows the jobs that some of its paths make. A way is
// data; Shape says how a job's state is read.
type JobProtocol struct {
	// Name tells the ways of a format apart. The ledger keeps it.
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
	// Frames: the provider counts a film in output tokens, one for so many
	// pixels of its pictures; see Tokens.
	Frames bool
	// Life is how long a job is followed; 0 is DefaultLife.
	Life time.Duration
	usage.JobStatus
	Download
}

// DefaultLife is how long a job is followed where its way says nothing else.
const DefaultLife = 24 * time.Hour

// Deadline is when a job made at the instant is given up.
func (w *JobProtocol) Deadline(made time.Time) time.Time {
	if w.Life > 0 {
		return made.Add(w.Life)
	}
	return made.Add(DefaultLife)
}

// path is the path for a role; "" where the way has none.
func (w *JobProtocol) path(role Role) string {
	switch role {
	case AsyncPoll:
		return w.Poll
	case AsyncResult:
		return w.Result
	case AsyncContent:
		return w.Content
	case AsyncCancel:
		return w.Cancel
	}
	return ""
}

// Has reports whether the way has a path for the role.
func (w *JobProtocol) Has(role Role) bool { return w.path(role) != "" }

// routes are the proxy paths of the way's jobs. All of them are judged by
// whose the job is.
func (w *JobProtocol) routes() []Route {
	var routes []Route
	for _, role := range []Role{AsyncPoll, AsyncResult, AsyncContent, AsyncCancel} {
		if !w.Has(role) {
			continue
		}
		pattern, query, _ := strings.Cut(w.path(role), "?")
		pattern = strings.NewReplacer("{app}", "{owner}/{alias}", "{task}", w.Stem+"{id}").Replace(pattern)
		routes = append(routes, Route{Pattern: pattern, Async: role, Endpoint: Endpoint{Free: true, Job: w, Query: append(parameterNames(query), w.Query...)}})
	}
	return routes
}

// Task is the id of the job that a proxy call names: in its path, or as the
// one query parameter task_id. "" is none.
func (w *JobProtocol) Task(captures target.Captures, query string) (modelgate.TaskID, error) {
	id := captures.Get("id")
	if id == "" {
		text, _, err := queryValue(query, "task_id")
		return modelgate.TaskID(text), err
	}
	return modelgate.TaskID(strings.ReplaceAll(w.Stem, "{model}", captures.Get("model")) + id), nil
}

// Call is the request for a role on a job, without header and body. Errors:
// the way has no such path.
func (w *JobProtocol) Call(role Role, j *modelgate.Job) (Call, error) {
	method, path, ok := strings.Cut(w.path(role), " ")
	if !ok {
		return Call{}, fmt.Errorf("jobs of provider %s have no way to %s", j.Provider, role)
	}
	path, query, _ := strings.Cut(path, "?")
	app := strings.SplitN(j.Model, "/", 3)
	path = strings.NewReplacer("{id}", url.PathEscape(string(j.TaskID)), "{task}", escapeSegments(string(j.TaskID)),
		"{model}", escapeSegments(j.Model), "{app}", escapeSegments(strings.Join(app[:min(len(app), 2)], "/"))).Replace(path)
	query = strings.ReplaceAll(query, "{id}", url.QueryEscape(string(j.TaskID)))
	return Call{Method: method, Path: path, Query: query, Credential: j.Credential, MadeAt: j.CreatedAt}, nil
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
func (w *JobProtocol) Followable(id modelgate.TaskID) bool {
	if id == "" || len(id) > modelgate.MaxTaskID || strings.ContainsFunc(string(id), isHidden) {
		return false
	}
	c, err := w.Call(AsyncPoll, &modelgate.Job{NewJob: modelgate.NewJob{TaskID: id}, Model: "owner/name"})
	// Without what stands between model and id, the path is that of a model.
	return err == nil && target.Judge(c.Path) == nil && strings.Contains(string(id), w.Stem[strings.LastIndexByte(w.Stem, '}')+1:])
}

// Way finds a way of the provider's by its name; nil where there is none
// (any more).
func (p *Provider) Way(name string) *JobProtocol {
	i := slices.IndexFunc(p.ways, func(w *JobProtocol) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return p.ways[i]
}

// addWay keeps a way, once.
func (p *Provider) addWay(w *JobProtocol) {
	if w != nil && p.Way(w.Name) == nil {
		p.ways = append(p.ways, w)
	}
}

// moved is the way of jobs that are made at another path than usual: those
// that are followed below the usual one are followed below that.
func (w *JobProtocol) moved(from, to string) *JobProtocol {
	if w == nil || w.Poll != openAIJobs(from).Poll {
		return w
	}
	there, at := openAIJobs(to), *w
	at.Poll = there.Poll
	if w.Content != "" {
		at.Content = there.Content
	}
	if w.Cancel != "" {
		at.Cancel = there.Cancel
	}
	return &at
}

// openAIJobs follows jobs in OpenAI's shape, made with POST at the path, whose
// query goes along.
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
