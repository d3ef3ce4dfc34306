package store

import (
	"testing"
	"time"

	"modelgate"
)

// session is the n-th one of a key, which begins n seconds after noon.
func session(k modelgate.Key, n int) modelgate.Session {
	at := noon.Add(time.Duration(n) * time.Second)
	return modelgate.Session{
		ID: modelgate.SessionID(id(n)), Kind: modelgate.KeySession, Place: "dashboard", ClientID: k.ClientID, KeyID: k.ID,
		Idle: modelgate.SessionIdle, CreatedAt: at, LastSeenAt: at, ExpiresAt: at.Add(modelgate.SessionLife),
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	eachAndPooler(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key, other := issue(t, db, client, "", 21), issue(t, db, client, "", 22)
		version := func() int64 {
			v, err := db.SessionVersion(ctx)
			must(t, err)
			return v
		}
		control, err := db.ControlVersion(ctx)
		must(t, err)
		before := version()
		for n, k := range map[int]modelgate.Key{31: key, 32: key, 33: other} {
			must(t, db.StartSession(ctx, session(k, n), digest(n)))
		}
		if version() != before {
			t.Error("a session that begins raises the version")
		}
		want := session(key, 31)
		want.Key = digest(21)
		if got, err := db.Session(ctx, digest(31)); err != nil || got != want {
			t.Errorf("found %+v, %v, want %+v", got, err, want)
		}
		_, err = db.Session(ctx, digest(34))
		wantKind(t, "an unknown cookie", err, modelgate.Unauthorized)

		later := want.LastSeenAt.Add(time.Hour)
		must(t, db.TouchSessions(ctx, map[modelgate.SessionID]time.Time{want.ID: later, "none": later}))
		must(t, db.TouchSessions(ctx, map[modelgate.SessionID]time.Time{want.ID: want.CreatedAt}))
		if got, err := db.Session(ctx, digest(31)); err != nil || !got.LastSeenAt.Equal(later) {
			t.Errorf("last seen %s, %v, want %s", got.LastSeenAt, err, later)
		}

		must(t, db.EndSession(ctx, digest(31), "portal-acme"))
		if _, err := db.Session(ctx, digest(31)); err != nil || version() != before {
			t.Errorf("a session is ended from another place: %v", err)
		}
		must(t, db.EndSession(ctx, digest(31), "dashboard"))
		_, err = db.Session(ctx, digest(31))
		wantKind(t, "a session that was ended", err, modelgate.Unauthorized)
		ended := version()
		must(t, db.EndSession(ctx, digest(31), "dashboard")) // again
		if ended <= before || version() != ended {
			t.Errorf("the version went from %d to %d to %d", before, ended, version())
		}
		must(t, db.EndSessionsOfKey(ctx, key.ID))
		_, err = db.Session(ctx, digest(32))
		wantKind(t, "another session of the key", err, modelgate.Unauthorized)
		if _, err := db.Session(ctx, digest(33)); err != nil || version() <= ended {
			t.Errorf("another key's session: %v", err)
		}
		if now, err := db.ControlVersion(ctx); err != nil || now != control {
			t.Errorf("sessions raise the version of keys: %d, %v", now, err)
		}
	})
}

// TestSessionsAreBounded: a key has a hundred sessions at most, the newest, and
// those that have expired go when others begin.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	const sessionsPerKey = 100
	each(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		client := createClient(t, db, 1)
		key, other := issue(t, db, client, "", 21), issue(t, db, client, "", 22)
		expired := session(other, 1000)
		expired.ExpiresAt = noon.Add(-time.Hour)
		must(t, db.StartSession(ctx, expired, digest(1000)))
		for n := range sessionsPerKey + 2 {
			must(t, db.StartSession(ctx, session(key, 100+n), digest(100+n)))
		}
		if got := number(t, db, "SELECT COUNT(*) FROM session"); got != sessionsPerKey {
			t.Errorf("%d sessions are kept, want %d", got, sessionsPerKey)
		}
		_, err := db.Session(ctx, digest(101))
		wantKind(t, "the second oldest", err, modelgate.Unauthorized)
		_, err = db.Session(ctx, digest(102))
		wantKind(t, "the third oldest", err, "")
	})
}
