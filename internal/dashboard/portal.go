package dashboard

import (
	"context"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

// A portal's branding is read for everyone who opens it, signed in or not. It is
// cached for a moment, which bounds the load that unauthenticated clients can put
// on the database.
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

// brand is the portal with a slug, at most brandAge old. While the store does
// not answer it may be older, so that the error is shown under the portal's brand.
// Errors: not_found.
func (p *Pages) brand(ctx context.Context, slug string) (modelgate.Branding, error) {
	now := p.Now()
	p.brands.mu.Lock()
	e, ok := p.brands.found[slug]
	p.brands.mu.Unlock()
	if ok && now.Sub(e.read) < brandAge {
		return e.brand, e.err
	}
	brand, err := p.Store.BrandingBySlug(ctx, slug)
	if ok && e.err == nil && store.Unreachable(err) {
		return e.brand, nil
	}
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
