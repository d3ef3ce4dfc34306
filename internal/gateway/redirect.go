package gateway

import (
	"context"
	"errors"
	"net/http"

	"modelgate"
	"modelgate/internal/provider"
)

// redirectDownload answers a download where the provider has no path for it: with the
// address that it names, or with what lies there where only the provider's
// credential opens it.
func (g *Gateway) redirectDownload(c *call) error {
	e := c.jobRequest
	ctx, cancel := context.WithTimeout(c.r.Context(), errandTime)
	defer cancel()
	if err := g.refresh(ctx, c); err != nil {
		return err
	}
	switch e.job.Status {
	case modelgate.JobSucceeded:
	case modelgate.JobPending:
		return modelgate.Errorf(modelgate.Conflict, "the task has not ended; poll it until it has")
	default:
		return modelgate.Errorf(modelgate.Conflict, "the task has not succeeded; there is nothing to download")
	}
	at, err := e.at.Locate(ctx, e.job)
	if errors.Is(err, modelgate.ErrCredentialGone) {
		e.job.Credential = "" // it has ended: any other may ask for it
		at, err = e.at.Locate(ctx, e.job)
	}
	switch {
	case errors.Is(err, provider.ErrNoFile):
		return modelgate.Errorf(modelgate.NotFound, "the provider names no result of this task any more")
	case err != nil:
		g.jobAway(c, err)
		return errTaskAway
	case at.Own != nil:
		e.call = *at.Own
		e.call.Header, e.call.Credential, e.call.MadeAt = c.r.Header, e.job.Credential, e.job.CreatedAt
		return g.download(c)
	case !dropsKey(c.r.Header):
		return modelgate.Errorf(modelgate.BadRequest, "the result lies at the address that a poll answers; only a key in Authorization: Bearer is redirected there")
	}
	g.Metrics.errand(c, http.StatusFound)
	c.w.Header().Set("Location", at.URL)
	c.w.WriteHeader(http.StatusFound)
	return nil
}

// dropsKey reports whether the client's key stands where clients leave it out
// when they follow a redirect to another host: in Authorization and nowhere
// else.
func dropsKey(h http.Header) bool {
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			return false
		}
	}
	return h.Get("Authorization") != ""
}
