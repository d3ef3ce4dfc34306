package usage

import (
	"net/http"
	"testing"

	"modelgate"
)

// A result tells that a job has succeeded or failed, or nothing.
func TestReadResult(t *testing.T) {
	t.Parallel()
	shape := JobStatus{Refusal: []string{"error_type", "detail.0.type"}}
	for _, tt := range []struct {
		status int
		body   string
		want   modelgate.JobEvent
		ok     bool
	}{
		{200, `{"video":{}}`, modelgate.JobSucceeds, true},
		{202, `{"status":"IN_PROGRESS"}`, "", false},
		{422, `{"detail":"no"}`, modelgate.JobFails, true},
		{404, ``, modelgate.JobFails, true},
		{401, `{"error_type":"x"}`, "", false},
		{403, `{"error_type":"x"}`, "", false},
		{408, ``, "", false},
		{429, ``, "", false},
		{503, `{"detail":"no runner","error_type":"runner_scheduling_failure"}`, modelgate.JobFails, true},
		{500, `{"detail":[{"type":"internal_server_error"}]}`, modelgate.JobFails, true},
		{500, `{"detail":"Internal Server Error"}`, "", false},
		{502, `<html>`, "", false},
		{503, ``, "", false},
	} {
		n, ok := shape.ReadResult(tt.status, http.Header{}, []byte(tt.body))
		if n.Event != tt.want || ok != tt.ok {
			t.Errorf("%d %s is %q, %v, want %q, %v", tt.status, tt.body, n.Event, ok, tt.want, tt.ok)
		}
	}
}
