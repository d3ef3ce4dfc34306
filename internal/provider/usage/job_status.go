package usage

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"modelgate"
)

// JobStatus is where the reply to a poll says what. Its texts are gjson paths; of
// several the first that is there counts.
type JobStatus struct {
	// State holds the word for the job's state. Words says what it means,
	// lower case, beside the usual ones.
	State []string
	Words map[string]modelgate.JobEvent
	// Done is a boolean in place of a word; then Error tells failure from
	// success.
	Done, Error string
	// ResultField is a member whose presence alone says that the job has succeeded.
	ResultField string
	// Rejected is false where the result is withheld: the job has failed, and
	// is charged all the same.
	Rejected string
	// What the job used, also one that has failed.
	Seconds, Images, Output, Searches []string
	// Length is the requested length in seconds, which a failed job has too: it
	// is what a success used whose request named none.
	Length []string
	// Videos is how many videos there are.
	Videos            string
	Size, ServiceTier string
	// USD is what the provider charged in USD, Ticks in units of 1e-10 USD.
	USD, Ticks string
	// Refusal are members of a result that is a server error: a text in one of
	// them says that the job has failed, and not the call.
	Refusal []string
	// Units is a header of the result: how much it used of what the model is
	// billed by, whatever that is.
	Units string
}

// usualWords are the words for states that all formats share; a row adds its own
// in Words. An unknown word means that the job still runs.
func usualWords(word string) modelgate.JobEvent {
	switch word {
	case "succeeded", "success", "succeed", "completed", "complete", "done", "ready":
		return modelgate.JobSucceeds
	case "failed", "fail", "failure", "error", "banned":
		return modelgate.JobFails
	case "cancelled", "canceled", "aborted":
		return modelgate.JobIsCancelled
	case "expired":
		return modelgate.JobLapses
	}
	return modelgate.JobRuns
}

// Read is what a reply about a job says. A reply without success, or that is
// not JSON, says nothing.
func (s *JobStatus) Read(status int, body []byte) modelgate.JobNews {
	if status < 200 || status > 299 || !gjson.ValidBytes(body) {
		return modelgate.JobNews{}
	}
	doc := gjson.ParseBytes(body)
	n := modelgate.JobNews{Event: s.event(doc)}
	if code := doc.Get("base_resp.status_code"); code.Type == gjson.Number && code.Num != 0 {
		if n.Event == modelgate.JobFails { // the code is why the job has failed, not why the poll has
			return modelgate.JobNews{Event: modelgate.JobFails}
		}
		return modelgate.JobNews{}
	}
	if v := get(doc, s.Rejected); v.Type == gjson.False && n.Event == modelgate.JobSucceeds {
		n.Event = modelgate.JobFails
	}
	var r, requested reading
	r.job(s, doc)
	n.Usage, n.Stated = r.usage, r.read
	requested.firstSeconds(doc, s.Length)
	n.Length = requested.usage.Seconds
	r.set(&n.Videos, get(doc, s.Videos))
	n.Charge, n.Charged = s.charge(doc)
	return n
}

// get is what stands at a gjson path; nothing at "".
func get(doc gjson.Result, path string) gjson.Result {
	if path == "" {
		return gjson.Result{}
	}
	return doc.Get(path)
}

func (s *JobStatus) event(doc gjson.Result) modelgate.JobEvent {
	if s.Done != "" {
		switch failure := get(doc, s.Error); {
		case !doc.Get(s.Done).Bool():
			return modelgate.JobRuns
		case failure.Exists() && failure.Type != gjson.Null:
			return modelgate.JobFails
		}
		return modelgate.JobSucceeds
	}
	for _, path := range s.State {
		v := doc.Get(path)
		if v.Type != gjson.String {
			continue
		}
		word := strings.ToLower(v.Str)
		if event, ok := s.Words[word]; ok {
			return event
		}
		return usualWords(word)
	}
	if get(doc, s.ResultField).Exists() {
		return modelgate.JobSucceeds
	}
	return modelgate.JobRuns
}

// firstSeconds reads the first of the members that is a number or a text.
func (r *reading) firstSeconds(doc gjson.Result, paths []string) {
	for _, path := range paths {
		if v := doc.Get(path); v.Type == gjson.Number || v.Type == gjson.String {
			r.seconds(v)
			return
		}
	}
}

// job reads what a job used.
func (r *reading) job(s *JobStatus, doc gjson.Result) {
	r.firstSeconds(doc, s.Seconds)
	for _, unit := range []struct {
		to    *int64
		paths []string
	}{{&r.usage.Images, s.Images}, {&r.usage.Output, s.Output}, {&r.usage.Searches, s.Searches}} {
		for _, path := range unit.paths {
			if r.set(unit.to, doc.Get(path)) {
				r.read = true
				break
			}
		}
	}
	word(&r.usage.Size, get(doc, s.Size))
	word(&r.usage.ServiceTier, get(doc, s.ServiceTier))
}

// charge is what the provider says it charged.
func (s *JobStatus) charge(doc gjson.Result) (modelgate.Nano, bool) {
	if v := get(doc, s.USD); v.Type == gjson.Number || v.Type == gjson.String {
		usd, err := modelgate.ParseUSD(v.String())
		if err != nil && v.Type == gjson.Number && v.Num >= 0 && v.Num < 1e6 { // more decimals than nano-USD have
			usd, err = modelgate.Nano(math.Round(v.Num*1e9)), nil
		}
		return usd, err == nil && usd >= 0
	}
	if v := get(doc, s.Ticks); v.Type == gjson.Number && v.Num >= 0 && v.Num < 1e16 {
		return modelgate.Nano(math.RoundToEven(v.Num / 10)), true
	}
	return 0, false
}

// ReadResult is what the result of a job says that has succeeded as far as
// its state tells: a refusal says that it has failed. False where the reply
// says nothing of the job.
func (s *JobStatus) ReadResult(status int, header http.Header, body []byte) (modelgate.JobNews, bool) {
	switch {
	case status == http.StatusAccepted:
		return modelgate.JobNews{}, false
	case status >= 200 && status <= 299:
		n := s.Read(status, body)
		n.Event = modelgate.JobSucceeds
		if s.Units != "" {
			n.Units = units(header.Get(s.Units))
		}
		return n, true
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout &&
		status != http.StatusUnauthorized && status != http.StatusForbidden,
		status >= 500 && s.refuses(body):
		return modelgate.JobNews{Event: modelgate.JobFails}, true
	}
	return modelgate.JobNews{}, false
}

func (s *JobStatus) refuses(body []byte) bool {
	return gjson.ValidBytes(body) && slices.ContainsFunc(s.Refusal, func(path string) bool {
		v := gjson.GetBytes(body, path)
		return v.Type == gjson.String && v.Str != ""
	})
}

// units reads a decimal count into millionths; 0 for what is none.
func units(text string) int64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(n > 0 && n <= modelgate.MaxQuantity/1e6) {
		return 0
	}
	return int64(math.Round(n * 1e6))
}
