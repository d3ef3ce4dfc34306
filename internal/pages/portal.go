package pages

import (
	"context"
	"net/http"
	"sync"
	"time"

	"modelgate"
)

// A portal's branding is read for everyone who opens it, signed in or not, so
// it is kept for a moment: what strangers may cost the database is bounded.
const (
	brandAge  = 2 * time.Second
	maxBrands = 1024
)

type brandEntry struct {
	brand modelgate.Branding
	err   error // not_found
	read  time.Time
}

// brands are the portals read lately, unknown ones too.
type brands struct {
	mu    sync.Mutex
	found map[string]brandEntry
}

// brand is the portal with a slug, at most brandAge old. Errors: not_found.
func (p *Pages) brand(ctx context.Context, slug string) (modelgate.Branding, error) {
	now := p.Now()
	p.brands.mu.Lock()
	e, ok := p.brands.found[slug]
	p.brands.mu.Unlock()
	if ok && now.Sub(e.read) < brandAge {
		return e.brand, e.err
	}
	brand, err := p.Store.BrandingBySlug(ctx, slug)
	if err != nil && modelgate.KindOf(err) != modelgate.NotFound {
		return brand, err
	}
	p.brands.mu.Lock()
	defer p.brands.mu.Unlock()
	if len(p.brands.found) >= maxBrands {
		clear(p.brands.found)
	}
	p.brands.found[slug] = brandEntry{brand, err, now}
	return brand, err
}

const noPortal = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Not found</title>
<h1>Not found</h1>
<p>There is nothing at this address.</p>
</html>
`

func (p *Pages) noPortal(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(noPortal)) // the client is gone: nobody is left to tell
	return nil
}
