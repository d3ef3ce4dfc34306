package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// turn is one target's figures in one round.
type turn struct {
	CPU       float64 // µs per call, of the target's process
	Rate      float64 // calls per second
	P50, P99  time.Duration
	Calls     int // that succeeded, at least one
	Failures  int
	FirstFail error
	Stolen    float64 // the time the host kept processors while calls were made, of all added up, over that time
	Repeats   int     // how many more such turns were made for one that lost less
}

// yardsticks are the targets with which the others are compared.
var yardsticks = [...]string{nameProxy, nameNginx, nameUnbudgeted}

// line is one target's figures over all rounds of a scenario.
type line struct {
	Scenario string
	Target   string
	Turns    []turn
	// Ratios are CPU ÷ that of the targets in yardsticks, of the same round.
	Ratios [len(yardsticks)]spread
	RSS    int64 // bytes, the most while the scenario ran
	Own    bool  // of a gateway of ours
	Peer   *way  // how the target is set up that is somebody else's product, or nil
	Failed error // why there are no turns; only peers may fail
}

// measure runs the rounds of one scenario.
func measure(o *options, sc *scenario, targets []*target) ([]line, error) {
	lines, rates := make([]line, len(targets)), make([]int, len(targets))
	for i, t := range targets {
		lines[i] = line{Scenario: sc.Name, Target: t.name, Own: t.gateway, Peer: t.peer}
		first, err := drive(t, sc, o.slice/3, 0) // pools fill
		if err != nil && t.peer == nil {
			return nil, fmt.Errorf("%s, %s: %w", sc.Name, t.name, err)
		}
		lines[i].Failed = err
		rates[i] = sc.Rate
		if sc.Share > 0 {
			rates[i] = int(first.Rate * sc.Share)
		}
		t.resetPeak()
	}
	for round := range o.rounds {
		order := rand.New(rand.NewPCG(0, uint64(round))).Perm(len(targets)) // no target always follows the same one
		for _, at := range order {
			if lines[at].Failed != nil {
				continue
			}
			got, err := quietSlice(targets[at], sc, o.slice*time.Duration(max(sc.Long, 1)), rates[at])
			if err != nil && targets[at].peer != nil {
				lines[at].Failed, lines[at].Turns = err, nil
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", sc.Name, targets[at].name, err)
			}
			if got.FirstFail != nil {
				fmt.Fprintf(os.Stderr, "bench: %s, %s: %d calls failed, one with: %v\n", sc.Name, targets[at].name, got.Failures, got.FirstFail)
			}
			lines[at].Turns = append(lines[at].Turns, got)
		}
	}
	for i, t := range targets {
		lines[i].RSS = t.peak()
		for k, name := range yardsticks {
			lines[i].Ratios[k] = ratio(lines, i, name)
		}
	}
	return lines, nil
}

// A turn from which the host took more than mostStolen of a processor says more
// about the host's other guests than about the target: it is made again, up to
// mostRepeats times.
const (
	mostStolen  = 0.03
	mostRepeats = 4
)

// quietSlice is the turn of a few that lost the least to the host.
func quietSlice(t *target, sc *scenario, d time.Duration, rate int) (turn, error) {
	best, err := slice(t, sc, d, rate)
	for repeats := 1; err == nil && best.Stolen > mostStolen && repeats <= mostRepeats; repeats++ {
		var again turn
		if again, err = slice(t, sc, d, rate); again.Stolen < best.Stolen {
			best = again
		}
		best.Repeats = repeats
	}
	return best, err
}

// slice is one turn: a moment to warm up, then the measured time.
func slice(t *target, sc *scenario, d time.Duration, rate int) (turn, error) {
	if _, err := drive(t, sc, d/6, rate); err != nil {
		return turn{}, err
	}
	if err := t.settle(); err != nil {
		return turn{}, err
	}
	before, err := t.cpu()
	if err != nil {
		return turn{}, err
	}
	began, lost := time.Now(), stolen()
	got, err := drive(t, sc, d, rate)
	if err != nil {
		return turn{}, err
	}
	got.Stolen = float64(stolen()-lost) / float64(time.Since(began))
	if err := t.settle(); err != nil { // what a call leaves to be done is part of its cost
		return turn{}, err
	}
	after, err := t.cpu()
	if err != nil {
		return turn{}, err
	}
	got.CPU = float64((after - before).Microseconds()) / float64(got.Calls)
	return got, nil
}

// spread is a figure over the rounds; all 0 where there is none.
type spread struct{ Median, Least, Most float64 }

// ratio is a target's CPU time over another's, round by round; none where
// there is no such other, or one of them failed.
func ratio(lines []line, i int, other string) spread {
	base := slices.IndexFunc(lines, func(l line) bool { return l.Target == other && l.Failed == nil })
	if base < 0 || lines[i].Failed != nil {
		return spread{}
	}
	var ratios []float64
	for r, t := range lines[i].Turns {
		ratios = append(ratios, t.CPU/lines[base].Turns[r].CPU)
	}
	return spreadOf(ratios)
}

func spreadOf(values []float64) spread {
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

// median of an even number is the mean of the two in the middle.
func median[T int | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
