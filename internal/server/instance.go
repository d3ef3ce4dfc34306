package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"time"

	"modelgate/internal/operator"
	"modelgate/internal/store"
)

// instanceTimeout bounds a statement about this instance: at its end nobody waits
// long for a database that does not answer.
const instanceTimeout = 2 * time.Second

// hashConfig is the SHA-256 of the configuration file, "" without one.
func (s *Server) hashConfig() string {
	text, err := os.ReadFile(s.ConfigFile)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// tellOthers says every while how this instance is, and takes it back at its end.
// Where the database does not answer nothing is said.
func (s *Server) tellOthers(ctx context.Context) {
	started, tick := time.Now().UTC(), time.NewTicker(operator.InstancePause)
	defer tick.Stop()
	say := func(ctx context.Context, what string, do func(context.Context) error) {
		bounded, cancel := context.WithTimeout(ctx, instanceTimeout)
		defer cancel()
		if err := do(bounded); err != nil {
			s.log.Debug(what, "error", err)
		}
	}
	for {
		say(ctx, "others are not told of this instance", func(ctx context.Context) error {
			about, err := json.Marshal(s.about(started))
			if err != nil {
				return err
			}
			return s.db.PutInstance(ctx, store.Instance{ID: s.spool.Instance(), SeenAt: time.Now(), About: about})
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
			say(context.WithoutCancel(ctx), "this instance is not forgotten", func(ctx context.Context) error { return s.db.ForgetInstance(ctx, s.spool.Instance()) })
			return
		}
	}
}

func (s *Server) about(started time.Time) operator.About {
	spooled, shipped := s.spool.Stats(), s.shipper.Stats()
	return operator.About{
		Version: s.Version, StartedAt: started, ConfigHash: *s.configHash.Load(),
		SpoolBacklogBytes: s.shipper.Backlog(), SpoolOldestSeconds: shipped.FailingFor.Seconds(), Quarantined: spooled.Quarantined + shipped.Quarantined,
		EvidenceLagSeconds: s.chains.Stats().Lag.Seconds(), Draining: s.health.draining.Load(),
	}
}
