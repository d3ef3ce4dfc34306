package auth_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/auth"
)

// TestBoundsHoldInEverySchedule plays random schedules of revocations and
// reactivations elsewhere, outages and uses, with and without the loop that
// reads the control version, against the promises: a revoked key works for
// less than 30 s, less than 90 s while the database is away, and less than
// 3 s where the loop runs; a live key is never unauthorized and never
// unavailable while the database answers.
func TestBoundsHoldInEverySchedule(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]func(*bench, *testing.T){
		"age alone":            func(*bench, *testing.T) {},
		"with control version": (*bench).run,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) {
				steps := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 60).Draw(r, "steps")
				pauses := rapid.SliceOfN(rapid.IntRange(1, 12_000), len(steps), len(steps)).Draw(r, "pauses in ms")
				ok := true
				synctest.Test(t, func(t *testing.T) {
					s := &schedule{bench: setup(t), promise: 30 * time.Second}
					if name != "age alone" {
						s.promise = 3 * time.Second
					}
					loop(s.bench, t)
					for i, step := range steps {
						time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
						if broken := s.play(t, step); broken != "" {
							t.Errorf("step %d of %v with pauses %v: %s", i, steps, pauses, broken)
							ok = false
							return
						}
					}
				})
				if !ok {
					r.Fatal("a promise is broken")
				}
			})
		})
	}
}

// schedule is one run and what the promises depend on.
type schedule struct {
	*bench
	promise     time.Duration
	revoked     time.Time // zero: live
	away        bool
	lastAway    time.Time // when the database was last away
	everAway    bool
	reactivated time.Time
}

// play makes one step and says which promise it broke, "" for none.
func (s *schedule) play(t *testing.T, step int) string {
	switch {
	case step == 0 && s.revoked.IsZero() && !s.away:
		s.db.change(func() { delete(s.db.keys, s.digest); s.db.version++ })
		s.revoked = time.Now()
	case step == 1 && !s.revoked.IsZero() && !s.away:
		s.db.change(func() { s.db.keys[s.digest] = modelgate.Caller{KeyID: "k1"}; s.db.version++ })
		s.revoked, s.reactivated = time.Time{}, time.Now()
	case step == 2:
		s.away = !s.away
		s.db.change(func() { s.db.err = nil })
		if s.away {
			s.db.change(func() { s.db.err = errAway })
			s.everAway = true
		} else {
			s.lastAway = time.Now()
		}
	default:
		return s.judge(t)
	}
	return ""
}

func (s *schedule) judge(t *testing.T) string {
	_, err := s.Identify(t.Context(), s.secret, auth.Origin{})
	disturbed := s.away || s.everAway && time.Since(s.lastAway) < 5*time.Second
	age := time.Since(s.revoked)
	switch kind := modelgate.KindOf(err); {
	case kind == "" && s.revoked.IsZero():
	case kind == "" && age >= 90*time.Second:
		return "a key revoked 90 s ago works"
	case kind == "" && age >= s.promise && !disturbed && !s.lastAway.After(s.revoked):
		return "a revoked key works past the promise"
	case kind == modelgate.Unauthorized && s.revoked.IsZero() && time.Since(s.reactivated) > 6*time.Second && !s.away:
		return "a live key is unauthorized"
	case kind == modelgate.Unavailable && !disturbed:
		return "unavailable while the database answers"
	case kind == modelgate.Internal:
		return err.Error()
	}
	return ""
}
