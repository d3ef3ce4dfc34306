package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// localBuckets keeps buckets and places of this instance alone. Those of an
// organization are under one lock, so that a call draws from all or none.
type localBuckets struct {
	now    func() time.Time
	start  time.Time
	seed   maphash.Seed
	shards [shardCount]bucketShard
}

type bucketShard struct {
	mu      sync.Mutex
	buckets map[bucketName]*fill
	sweepAt int // the size at which empty ones are dropped
}

// fill is what was drawn and has not come back at an instant, or the calls
// under way.
type fill struct {
	drawn float64
	at    time.Duration // since start
	rate  float64       // that comes back in a microsecond; 0: calls
}

// level is what is drawn at a later instant. An amount may be below 0 for a
// moment, where changes come out of order.
func (b *fill) level(now time.Duration) float64 {
	if b.rate == 0 {
		return b.drawn
	}
	return max(0, b.drawn-float64(max(0, now-b.at))/float64(time.Microsecond)*b.rate)
}

// slack is a nanosecond, in microseconds: what comes back within it is there, so
// that rounding keeps no call waiting that comes at the time it was told.
const slack = 1e-3

func newLocalBuckets(now func() time.Time) *localBuckets {
	l := &localBuckets{now: now, start: now(), seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i] = bucketShard{buckets: make(map[bucketName]*fill), sweepAt: firstSweep}
	}
	return l
}

func (l *localBuckets) shard(group string) *bucketShard {
	return &l.shards[maphash.String(l.seed, group)%shardCount]
}

func (l *localBuckets) draw(group string, draws []draw) verdict {
	s := l.shard(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.now().Sub(l.start)
	v := s.judge(draws, now)
	v.by = l
	if v.refused >= 0 {
		return v
	}
	for i := range draws {
		d := &draws[i]
		cost := d.cost
		if d.rule.Window == "" {
			cost = 1
		}
		s.change(d, cost, now)
		v.levels[i] += cost
	}
	return v
}

func (l *localBuckets) levels(group string, draws []draw) verdict {
	s := l.shard(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judge(draws, l.now().Sub(l.start))
}

// judge says whether all have enough.
func (s *bucketShard) judge(draws []draw, now time.Duration) verdict {
	v := verdict{refused: -1, levels: make([]int64, len(draws))}
	for i := range draws {
		d := &draws[i]
		level, size := 0.0, float64(d.rule.Size())
		if b := s.buckets[d.name]; b != nil {
			level = b.level(now)
		}
		v.levels[i] = int64(math.Ceil(level)) // what has come back in part is not there yet
		wait := time.Duration(-1)
		if rate := d.rate(); rate == 0 && level+1 > size {
			wait = time.Second
		} else if missing := level + min(float64(d.cost), size) - size; rate > 0 && missing > slack*rate+size*1e-12 {
			wait = time.Duration(math.Ceil(missing/rate-slack)) * time.Microsecond
		}
		if wait > v.after {
			v.refused, v.after = i, wait
		}
	}
	return v
}

func (l *localBuckets) add(group string, changes []draw) {
	s := l.shard(group)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.now().Sub(l.start)
	for i := range changes {
		s.change(&changes[i], changes[i].cost, now)
	}
}

// change adds to what is drawn from a bucket.
func (s *bucketShard) change(d *draw, by int64, now time.Duration) {
	b := s.buckets[d.name]
	if b == nil {
		if by <= 0 {
			return
		}
		b = s.create(d, now)
	}
	b.drawn, b.at = max(0, b.level(now)+float64(by)), now
}

// create makes a bucket, and drops those that say no more than a new one would.
func (s *bucketShard) create(d *draw, now time.Duration) *fill {
	if len(s.buckets) >= s.sweepAt {
		for name, b := range s.buckets {
			if b.level(now) <= 0 {
				delete(s.buckets, name)
			}
		}
		s.sweepAt = max(firstSweep, 2*len(s.buckets))
	}
	b := &fill{rate: d.rate(), at: now}
	s.buckets[d.name] = b
	return b
}
