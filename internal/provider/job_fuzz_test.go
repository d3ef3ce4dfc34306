package provider

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/provider/target"
	"modelgate/internal/provider/usage"
)

// jobReplies are replies about jobs in the shapes of the table.
func jobReplies() []string {
	return []string{
		`{"id":"v1","object":"video","status":"completed","seconds":"8","size":"720x1280","error":null}`,
		`{"id":"cgt-1","status":"succeeded","service_tier":"flex","content":{"file_url":"https://cdn.example/a.glb"},"usage":{"completion_tokens":1000,"tool_usage":{"web_search":2}}}`,
		`{"request_id":"x1","status":"done","video":{"url":"https://cdn.example/a.mp4","duration":6,"respect_moderation":false},"usage":{"cost_in_usd_ticks":5000000000}}`,
		`{"output":{"task_id":"d1","task_status":"UNKNOWN","results":[{"url":"https://cdn.example/1.png"}]},"usage":{"output_video_duration":6.5,"image_count":2,"size":"1280*720"}}`,
		`{"task_id":"m1","status":"Success","file_id":"77","base_resp":{"status_code":0},"file":{"download_url":"https://cdn.example/m.mp4"}}`,
		`{"task_id":8,"task":{"status":"succeeded","usage":{"total_seconds":7},"duration":6,"resolution":"1080P","content":{"url":"//x"}}}`,
		`{"name":"models/veo/operations/abc","done":true,"response":{"generateVideoResponse":{"generatedSamples":[{"video":{"uri":"http://localhost/v1beta/files/a:download?alt=media"}}]}}}`,
		`{"name":"models/veo/operations/abc","done":true,"error":{"code":3,"message":"no"}}`,
		`{"id":"t1","status":"completed","outputs":{"cost":0.2800000000001,"video_url":"https://u:p@cdn.example/a"}}`,
		`{"id":"o1","status":"failed","usage":{"cost":"0.05"}}`,
		`{"id":"r1","status":"canceled","metrics":{"predict_time":1e400,"image_count":-1},"output":["https://cdn.example/1"]}`,
		`{"id":"z1","task_status":"PROCESSING","video_result":[{"url":"https://cdn.example/z"}]}`,
		`{"request_id":"../../x","status":"IN_QUEUE","images":[{},{}]}`,
		`{"id":"a/b?c#d%2f","status":{"status":"failed"}}`, `[{"id":1}]`, `{`, ``, `null`,
	}
}

// FuzzJobReply reads a reply about a job in a way of the table, which the
// thousands of the status choose. Whatever it says: what is counted and charged stays in bounds, an id that is taken
// has paths which name that very job again, and nothing but the way's own
// paths is fetched with the credential.
func FuzzJobReply(f *testing.F) {
	type follower struct {
		p *Provider
		w *JobProtocol
	}
	var all []follower
	for _, format := range Formats() {
		p, err := New(Config{Name: format.Name, Format: format.Name, BaseURL: "http://localhost"})
		if err != nil {
			f.Fatal(err)
		}
		for _, w := range p.protocols {
			all = append(all, follower{p, w})
		}
	}
	for i := range all {
		for j, reply := range jobReplies() {
			f.Add(i*1000+200, reply, []string{"", "2.5", "-1", "1e300", "NaN"}[j%5])
		}
		f.Add(i*1000+404, `{"detail":"no"}`, "")
		f.Add(i*1000+500, `{}`, "1")
	}
	f.Fuzz(func(t *testing.T, which int, body, units string) {
		at, status := all[uint(which)/1000%uint(len(all))], int(uint(which)%1000)
		p, w := at.p, at.w
		readJob(t, w.Read(status, []byte(body)))
		news, ok := w.ReadResult(status, http.Header{w.Units: {units}}, []byte(body))
		if ok && news.Event != modelgate.JobSucceeds && news.Event != modelgate.JobFails {
			t.Errorf("%s: a result is %q", p.Name(), news.Event)
		}
		readJob(t, news)
		id, usage := w.ReadCreated(status, []byte(body), usage.RequestedUnits{}, modelgate.Video)
		if usage.Seconds < 0 || usage.Images < 0 {
			t.Errorf("%s: a job will use %+v", p.Name(), usage)
		}
		if id != "" {
			namesJob(t, p, w, id)
		}
		findsFile(t, p, w, status, body)
	})
}

// readJob holds news to their bounds, and what they make of a job.
func readJob(t *testing.T, n modelgate.JobNews) {
	t.Helper()
	j := &modelgate.Job{NewJob: modelgate.NewJob{Price: `{"base":"second=0.1 output=5"}`}, Status: modelgate.JobPending, Provisional: 7}
	_, moves := j.Next(n.Event)
	if n.Units < 0 || n.Units > modelgate.MaxQuantity || n.Length < 0 || n.Charged && n.Charge < 0 || !moves && n.Event != modelgate.JobRuns {
		t.Errorf("news %+v", n)
	}
	final, ok := pricing.FinishJob(j, n)
	usage := final.Usage
	if ok != moves || ok && (final.Cost < 0 || final.Status == modelgate.JobPending || final.ParseStatus == "" || !usage.Clamp()) {
		t.Errorf("news %+v end a job as %+v, %v", n, final, ok)
	}
}

// namesJob follows the paths of a job back to it.
func namesJob(t *testing.T, p *Provider, w *JobProtocol, id modelgate.TaskID) {
	t.Helper()
	for _, role := range []Role{AsyncPoll, AsyncResult, AsyncContent, AsyncCancel} {
		if !w.Has(role) {
			continue
		}
		call, err := w.Call(role, &modelgate.Job{NewJob: modelgate.NewJob{TaskID: id}, Model: "owner/name"})
		if err != nil || target.Judge(call.Path) != nil {
			t.Errorf("%s: job %q: %v, path %q", p.Name(), id, err, call.Path)
			continue
		}
		route, captures := p.Route(call.Method, call.Path)
		if route == nil { // no path of the proxy: the door alone reaches it
			continue
		}
		if route.Job == nil || route.Async != role {
			t.Errorf("%s: %s of job %q is the route %+v", p.Name(), role, id, route)
			continue
		}
		if task, err := route.Job.Task(captures, call.Query); task != id || err != nil {
			t.Errorf("%s: %s of job %q is that of job %q, %v", p.Name(), role, id, task, err)
		}
	}
}

func findsFile(t *testing.T, p *Provider, w *JobProtocol, status int, body string) {
	t.Helper()
	name, err := ReadAddress(status, []byte(body), append(slices.Clone(w.File), w.At)...)
	var at Location
	if err == nil {
		at, err = p.Locate(w, name)
	}
	switch {
	case errors.Is(err, ErrNoFile) || err != nil && status >= 400:
	case err != nil:
		t.Errorf("%s: file %q: %v", p.Name(), name, err)
	case at.Own != nil && (len(w.Own) == 0 || !strings.Contains(at.Own.Path, "/files/") || target.Judge(at.Own.Path) != nil):
		t.Errorf("%s: %+v would be fetched with the credential", p.Name(), at.Own)
	case at.Own == nil && !strings.HasPrefix(at.URL, "http"):
		t.Errorf("%s: file at %q", p.Name(), at.URL)
	}
}

// TestJobReplies counts what the seeds of FuzzJobReply say, so that they say
// something.
func TestJobReplies(t *testing.T) {
	t.Parallel()
	ends, files, made := 0, 0, 0
	for _, format := range Formats() {
		p, err := New(Config{Name: format.Name, Format: format.Name, BaseURL: "http://localhost"})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range p.protocols {
			for _, body := range jobReplies() {
				if n := w.Read(200, []byte(body)); n.Event != modelgate.JobRuns {
					ends++
				}
				if id, _ := w.ReadCreated(200, []byte(body), usage.RequestedUnits{}, modelgate.Video); id != "" {
					made++
				}
				if name, err := ReadAddress(200, []byte(body), w.File...); err == nil && name != "" {
					files++
				}
			}
			if d := w.Deadline(time.Unix(0, 0)); d.Sub(time.Unix(0, 0)) < DefaultLife {
				t.Errorf("%s: jobs live until %v", format.Name, d)
			}
		}
	}
	if ends < 20 || files < 8 || made < 20 {
		t.Errorf("the seeds end %d jobs, make %d and name %d files", ends, made, files)
	}
}
