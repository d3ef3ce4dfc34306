package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"modelgate/internal/cancelctx"
)

// loop repeats a step until its context ends.
type loop struct {
	first, pause time.Duration // before the first step, and between two
	retry        time.Duration // after a step that failed; 0 means pause
	log          *slog.Logger
	trouble      string                                     // logged when the step begins to fail
	wait         func(context.Context, time.Duration) error // nil means cancelctx.Sleep
	failing      bool
}

// run repeats the step. Pauses vary by a half, so that instances do not keep in
// step with each other.
func (l *loop) run(ctx context.Context, step func(context.Context) error) {
	if l.wait == nil {
		l.wait = cancelctx.Sleep
	}
	for pause := l.first; l.wait(ctx, pause) == nil; {
		pause = l.pause
		if err := step(ctx); l.report(ctx, err) && l.retry > 0 {
			pause = l.retry
		}
		pause = pause/2 + rand.N(pause)
	}
}

// report logs the first of several errors in a row, and reports whether there
// was one. One that the end of the context explains is none.
func (l *loop) report(ctx context.Context, err error) bool {
	failed := err != nil && ctx.Err() == nil
	if failed && !l.failing {
		l.log.Warn(l.trouble, "error", err)
	}
	l.failing = failed
	return failed
}
