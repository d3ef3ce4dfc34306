package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"modelgate/internal/store"
)

// About is what an instance says of itself every InstancePause.
type About struct {
	Version    string    `json:"version"`
	StartedAt  time.Time `json:"started_at"`
	ConfigHash string    `json:"config_hash"` // SHA-256 of its configuration file, "" without one
	// What its spool holds that is not booked yet, and for how long booking has failed.
	SpoolBacklogBytes  int64   `json:"spool_backlog_bytes"`
	SpoolOldestSeconds float64 `json:"spool_oldest_seconds"`
	Quarantined        int64   `json:"quarantined"` // damaged places and entries kept aside
	EvidenceLagSeconds float64 `json:"evidence_lag_seconds"`
	Draining           bool    `json:"draining"`
}

const (
	// InstancePause is the time between what an instance says of itself.
	InstancePause = 10 * time.Second
	// silence is how long an instance may say nothing until that is a warning.
	silence = time.Minute
)

type instanceView struct {
	ID string `json:"id"`
	About
	SeenAt time.Time `json:"seen_at"`
}

// healthView is GET /operator/v1/health.
type healthView struct {
	Database struct {
		Engine     string     `json:"engine"`
		LatencyMS  int64      `json:"latency_ms"`
		LastReadAt *time.Time `json:"last_read_at"` // of keys, by this instance
	} `json:"database"`
	Instances    []instanceView `json:"instances"`
	EvidenceLag  float64        `json:"evidence_lag_seconds"`
	ExportsWait  int64          `json:"exports_pending"`
	ExportOldest float64        `json:"export_oldest_pending_seconds"`
	JobsPending  int64          `json:"jobs_pending"`
	JobsOldest   *time.Time     `json:"jobs_oldest_at"`
	Warnings     []string       `json:"warnings"`
}

// health gathers what an operator looks at first. Without the database it is 503.
func (a *API) health(ctx context.Context, x *exchange) (any, error) {
	if err := x.ready(); err != nil {
		return nil, err
	}
	var v healthView
	begun := time.Now()
	found, err := a.Store.Instances(ctx)
	if err != nil {
		return nil, err
	}
	v.Database.Engine, v.Database.LatencyMS = a.Store.Engine(), time.Since(begun).Milliseconds()
	if last := a.Keys.LastRead(); !last.IsZero() {
		v.Database.LastReadAt = &last
	}
	if v.Instances, err = instances(found); err != nil {
		return nil, err
	}
	var oldest time.Duration
	if v.ExportsWait, oldest, err = a.Store.ExportBacklog(ctx); err != nil {
		return nil, err
	}
	v.ExportOldest = oldest.Seconds()
	var since time.Time
	if v.JobsPending, since, err = a.Store.PendingJobs(ctx); err != nil {
		return nil, err
	}
	if v.JobsPending > 0 {
		v.JobsOldest = &since
	}
	providers, err := a.providerViews(ctx)
	if err != nil {
		return nil, err
	}
	v.warn(a.Now(), providers)
	return v, nil
}

func instances(found []store.Instance) ([]instanceView, error) {
	views := []instanceView{}
	for i := range found {
		v := instanceView{ID: found[i].ID, SeenAt: found[i].SeenAt}
		if err := json.Unmarshal(found[i].About, &v.About); err != nil {
			return nil, fmt.Errorf("what instance %s says: %w", v.ID, err)
		}
		views = append(views, v)
	}
	return views, nil
}

// warn says what wants looking after. Instances that are silent are compared with
// nothing.
func (v *healthView) warn(now time.Time, providers []providerView) {
	v.Warnings = []string{}
	add := func(format string, args ...any) { v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...)) }
	versions, configs := map[string]bool{}, map[string]bool{}
	for i := range v.Instances {
		n := &v.Instances[i]
		if quiet := now.Sub(n.SeenAt); quiet > silence {
			add("instance %s was not seen for %s", n.ID, quiet.Truncate(time.Second))
			continue
		}
		versions[n.Version], configs[n.ConfigHash] = true, true
		v.EvidenceLag = max(v.EvidenceLag, n.EvidenceLagSeconds)
		if n.SpoolOldestSeconds > 0 {
			add("instance %s cannot book its calls for %.0f seconds", n.ID, n.SpoolOldestSeconds)
		}
		if n.Quarantined > 0 {
			add("instance %s keeps %d damaged places or entries of its spool aside", n.ID, n.Quarantined)
		}
	}
	if len(versions) > 1 {
		add("instances run %d versions", len(versions))
	}
	if len(configs) > 1 {
		add("instances run %d configurations", len(configs))
	}
	for i := range providers {
		if p := &providers[i]; p.Status == providerDown || p.Status == providerDegraded {
			add("provider %s is %s", p.Name, p.Status)
		}
	}
}
