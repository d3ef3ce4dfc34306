package jobs

import (
	"context"
	"fmt"
	"net/http"

	"modelgate"
	"modelgate/internal/provider"
)

// Client asks a provider about its jobs.
type Client struct{ *provider.Provider }

// reply is what a provider answered about a job.
type reply struct {
	status int
	header http.Header
	body   []byte // without its encoding; nil when that is unknown
}

// call asks about a job with the gateway's own headers. Errors:
// modelgate.ErrCredentialGone where the credential of the job is gone for good;
// any other means that the provider could not be asked.
func (c Client) call(ctx context.Context, call provider.Call) (*reply, error) {
	call.Header = http.Header{"Accept": {"application/json"}, "User-Agent": {"Modelgate/1"}}
	out, err := c.Outbound(ctx, call)
	if err != nil {
		return nil, err
	}
	resp, _, err := c.Send(out)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, body, err := provider.ReadReply(resp)
	return &reply{resp.StatusCode, resp.Header, body}, err
}

// about asks for a job on the path of a role. Errors are those of call.
func (c Client) about(ctx context.Context, j *modelgate.Job, role provider.Role) (*reply, *provider.JobProtocol, error) {
	protocol := c.JobProtocol(j.Protocol)
	if protocol == nil {
		return nil, nil, fmt.Errorf("provider %s does not follow jobs as %q", c.Name(), j.Protocol)
	}
	call, err := protocol.Call(role, j)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.call(ctx, call)
	return r, protocol, err
}

// Poll asks for the state of a job. A reply that cannot be understood is no
// news. Errors are those of call.
func (c Client) Poll(ctx context.Context, j *modelgate.Job) (modelgate.JobNews, error) {
	r, protocol, err := c.about(ctx, j, provider.AsyncPoll)
	if err != nil {
		return modelgate.JobNews{}, err
	}
	news := protocol.Read(r.status, r.body)
	if r.status >= 500 || r.status == http.StatusTooManyRequests {
		return news, fmt.Errorf("provider %s answers %d about a job", c.Name(), r.status)
	}
	return c.complete(ctx, j, news)
}

// complete reads the result of a job that has succeeded where the usage stands
// there and not in its state. Errors are those of call.
func (c Client) complete(ctx context.Context, j *modelgate.Job, news modelgate.JobNews) (modelgate.JobNews, error) {
	if news.Event != modelgate.JobSucceeds || !c.JobProtocol(j.Protocol).Has(provider.AsyncResult) {
		return news, nil
	}
	r, protocol, err := c.about(ctx, j, provider.AsyncResult)
	if err != nil {
		return modelgate.JobNews{}, err
	}
	news, ok := protocol.ReadResult(r.status, r.header, r.body)
	if !ok {
		return modelgate.JobNews{}, fmt.Errorf("provider %s answers %d about the result of a job", c.Name(), r.status)
	}
	return news, nil
}

// locate finds the result of a job that has succeeded. Errors:
// provider.ErrNoFile and those of call.
func (c Client) locate(ctx context.Context, j *modelgate.Job) (provider.Location, error) {
	role := provider.AsyncPoll
	if protocol := c.JobProtocol(j.Protocol); protocol != nil && protocol.Has(provider.AsyncResult) {
		role = provider.AsyncResult
	}
	r, protocol, err := c.about(ctx, j, role)
	if err != nil {
		return provider.Location{}, err
	}
	address, err := provider.ReadAddress(r.status, r.body, protocol.File...)
	if err == nil && protocol.Lookup != "" {
		address, err = c.lookUp(ctx, protocol, address, j)
	}
	if err != nil {
		return provider.Location{}, err
	}
	return c.Locate(protocol, address)
}

// lookUp asks for the address of a file that the provider has named by its id.
func (c Client) lookUp(ctx context.Context, protocol *provider.JobProtocol, file string, j *modelgate.Job) (string, error) {
	call, err := protocol.LookupCall(file, j)
	if err != nil {
		return "", err
	}
	r, err := c.call(ctx, call)
	if err != nil {
		return "", err
	}
	return provider.ReadAddress(r.status, r.body, protocol.At)
}
