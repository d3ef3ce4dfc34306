package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"modelgate"
	"modelgate/internal/provider/usage"
)

// MaxJobReply is how many bytes of a reply about a job are read.
const MaxJobReply = 8 << 20

var errLongReply = errors.New("reply about a job is too long")

// ReadReply takes in a reply about a job whole: raw as it came, plain without
// its content encoding. A reply of more than MaxJobReply bytes is an error.
func ReadReply(resp *http.Response) (raw, plain []byte, err error) {
	raw, err = io.ReadAll(io.LimitReader(resp.Body, MaxJobReply+1))
	if err != nil {
		return nil, nil, err
	}
	if len(raw) > MaxJobReply {
		return nil, nil, errLongReply
	}
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	if coding == "" || coding == "identity" {
		return raw, raw, nil
	}
	decoder := usage.NewDecoded(coding)
	if decoder == nil {
		return raw, nil, nil
	}
	defer decoder.Close()
	if plain, whole := decoder.Decode(raw); whole && len(plain) <= MaxJobReply {
		return raw, plain, nil
	}
	return raw, nil, nil // nothing can be read out of it
}

// Ask polls a job. What cannot be understood is news of nothing. Errors:
// modelgate.ErrCredentialGone where the credential of the job is gone for
// good; any other means that the provider could not be asked.
func (p *Provider) Ask(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
	way := p.Way(j.Way)
	if way == nil {
		return modelgate.JobNews{}, fmt.Errorf("provider %s does not follow jobs as %q", p.name, j.Way)
	}
	call, err := way.Call(AsyncPoll, j)
	if err != nil {
		return modelgate.JobNews{}, err
	}
	r, err := p.ask(ctx, call)
	if err != nil {
		return modelgate.JobNews{}, err
	}
	news := way.Read(r.status, r.body)
	if r.status >= 500 || r.status == http.StatusTooManyRequests {
		return news, fmt.Errorf("provider %s answers %d about a job", p.name, r.status)
	}
	return p.Result(ctx, j, news)
}

// Result completes news of a success where the result has to be read for
// that.
func (p *Provider) Result(ctx context.Context, j *modelgate.Job, news modelgate.JobNews) (modelgate.JobNews, error) {
	way := p.Way(j.Way)
	if news.Event != modelgate.JobSucceeds || !way.Has(AsyncResult) {
		return news, nil
	}
	call, err := way.Call(AsyncResult, j)
	if err != nil {
		return modelgate.JobNews{}, err
	}
	r, err := p.ask(ctx, call)
	if err != nil {
		return modelgate.JobNews{}, err
	}
	news, ok := way.ReadResult(r.status, r.header, r.body)
	if !ok {
		return modelgate.JobNews{}, fmt.Errorf("provider %s answers %d about the result of a job", p.name, r.status)
	}
	return news, nil
}

// reply is what a provider answered about a job.
type reply struct {
	status int
	header http.Header
	body   []byte // without its encoding; nil when that is unknown
}

func (p *Provider) ask(ctx context.Context, call Call) (*reply, error) {
	call.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {"Modelgate/1"}}
	out, err := p.Outbound(ctx, call)
	if err != nil {
		return nil, err
	}
	resp, _, err := p.Send(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, body, err := ReadReply(resp)
	return &reply{resp.StatusCode, resp.Header, body}, err
}
