package server

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"time"

	"modelgate"
	"modelgate/internal/config"
	"modelgate/internal/evidence"
	"modelgate/internal/secrets"
	"modelgate/internal/signing"
	"modelgate/internal/store"
	chain "modelgate/internal/store/evidence"
	"modelgate/internal/worker"
)

// NewSigning returns what signs evidence, as configured.
func NewSigning(cfg *config.Config, db *store.DB, master *secrets.Keys) (*signing.Signing, error) {
	o := signing.Options{Store: db, Master: master, Name: "modelgate/evidence", Audit: func() modelgate.Audit {
		return Audit(modelgate.Actor{Operator: "evidence key rotate"}, "")
	}}
	if u, err := url.Parse(cfg.Server.BaseURL); err == nil && u.Host != "" {
		o.Name = u.Host + "/evidence"
	}
	if onSQLite(cfg) {
		o.File = filepath.Join(cfg.Server.DataDir, "evidence.key")
	}
	if !cfg.Evidence.SigningKey.Empty() {
		for _, secret := range append([]config.Secret{cfg.Evidence.SigningKey}, cfg.Evidence.PreviousSigningKeys...) {
			if !secret.Empty() {
				o.Configured = append(o.Configured, secret.Reveal())
			}
		}
	}
	return signing.New(o)
}

// openEvidence makes what signs evidence and what chains it. Without a signing
// key the service runs all the same: records do not wait for one.
func (s *Server) openEvidence(ctx context.Context, cfg *config.Config) (err error) {
	if s.signing, err = NewSigning(cfg, s.db, s.master); err != nil {
		return err
	}
	if _, err := s.signing.Signer(ctx); err != nil {
		s.log.Warn("exports of evidence are answered 503", "error", err)
	}
	s.chains = &worker.Sequencer{Ledger: s.db, Instance: s.spool.Instance(), Now: time.Now, Log: s.log}
	return nil
}

// pruneChunks bounds what one transaction deletes of a chain.
const pruneChunks = 200

// pruneEvidence deletes records that are too old, before the rows that they
// are about. Where nothing signs, they stay: their end could not be. The rows of
// a client whose records cannot be pruned are to be spared.
func (s *Server) pruneEvidence(ctx context.Context, before time.Time) (spare map[modelgate.ClientID]error, err error) {
	signer, err := s.signing.Signer(ctx)
	if errors.Is(err, signing.ErrNotConfigured) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	clients, err := s.db.EvidenceClients(ctx)
	if err != nil {
		return nil, err
	}
	spare = make(map[modelgate.ClientID]error)
	for _, client := range clients {
		err := s.pruneChain(ctx, client, before, signer)
		if err != nil && (ctx.Err() != nil || store.Unreachable(err)) {
			return nil, err
		}
		if err != nil {
			spare[client] = err
		}
	}
	return spare, nil
}

// pruneChain deletes what is too old of one client's chain.
func (s *Server) pruneChain(ctx context.Context, client modelgate.ClientID, before time.Time, signer *evidence.Signer) error {
	for {
		record := Audit(modelgate.Actor{System: true}, "evidence.prune")
		more, err := s.db.PruneEvidence(ctx, client, chain.Pruning{
			Before: store.Cutoff(before), Chunks: pruneChunks, Audit: record,
			Sign: func(h evidence.Head) (string, error) { return signer.Key.Anchor(h, time.Now()) },
		})
		if err != nil || !more {
			return err
		}
	}
}
