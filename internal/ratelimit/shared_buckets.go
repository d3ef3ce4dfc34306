package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// drawScript draws from buckets and takes places, all or none, on the clock of
// Redis. It answers the number of the limit that makes the call wait longest, 0
// for none, for how many µs, and the level of each bucket afterwards, rounded up. A bucket
// is held as what is drawn and when that was so.
//
// KEYS: the buckets and places. ARGV: whether to draw (1) or to look (0), how
// long a place is leased in µs, its name; then for each key the amount that
// comes back in a µs (0: places), the size, and what is to be drawn.
const drawScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local held = redis.call('MGET', unpack(KEYS))
local out, have = {0, 0}, {}
local longest = 0
for i = 1, #KEYS do
	local rate, size, cost = tonumber(ARGV[3*i+1]), tonumber(ARGV[3*i+2]), tonumber(ARGV[3*i+3])
	local level, wait = 0, 0
	if rate == 0 then
		redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', string.format('%.0f', now))
		level = redis.call('ZCARD', KEYS[i])
		if level >= size then wait = 1000000 end
	else
		if held[i] then
			local drawn, at = string.match(held[i], '^(%S+) (%S+)$')
			level = math.max(0, drawn - math.max(0, now - at) * rate)
		end
		local missing = level + math.min(cost, size) - size
		if missing > 0.001 * rate + size * 1e-12 then wait = math.max(1, math.ceil(missing / rate - 0.001)) end
	end
	have[i], out[i+2] = level, math.ceil(level)
	if wait > longest then longest, out[1], out[2] = wait, i, math.ceil(wait) end
end
if out[1] > 0 or ARGV[1] == '0' then return out end
for i = 1, #KEYS do
	local rate, cost = tonumber(ARGV[3*i+1]), tonumber(ARGV[3*i+3])
	if rate == 0 then
		redis.call('ZADD', KEYS[i], string.format('%.0f', now + ARGV[2]), ARGV[3])
		redis.call('PEXPIRE', KEYS[i], math.ceil(ARGV[2] / 1000))
		out[i+2] = have[i] + 1
	elseif cost > 0 then
		local level = have[i] + cost
		redis.call('SET', KEYS[i], string.format('%.17g %.0f', level, now), 'PX', math.ceil(level / rate / 1000) + 1)
		out[i+2] = math.ceil(level)
	end
end
return out`

// addScript adds to what is drawn from buckets.
//
// KEYS: the buckets. ARGV: for each key the amount that comes back in a µs, and
// what to add.
const addScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for i = 1, #KEYS do
	local rate, level = tonumber(ARGV[2*i-1]), 0
	local held = redis.call('GET', KEYS[i])
	if held then
		local drawn, at = string.match(held, '^(%S+) (%S+)$')
		level = math.max(0, drawn - math.max(0, now - at) * rate)
	end
	level = level + ARGV[2*i]
	if level > 0 then
		redis.call('SET', KEYS[i], string.format('%.17g %.0f', level, now), 'PX', math.ceil(level / rate / 1000) + 1)
	else
		redis.call('DEL', KEYS[i])
	end
end
return 1`

// How changes are gathered.
const (
	gatherFor  = 10 * time.Millisecond
	mostWaits  = 10_000 // buckets whose changes wait; what is given back beyond comes back by itself
	keysAtOnce = 50
)

// sharedBuckets keeps buckets and places of all instances in Redis. While Redis
// does not answer each instance keeps its own.
type sharedBuckets struct {
	*Shared
	local   *localBuckets
	drawing script
	adding  script
	wake    chan struct{} // has a token while changes wait

	mu      sync.Mutex
	waiting map[groupBucket]draw
}

// groupBucket is a bucket of a group.
type groupBucket struct {
	group string
	bucketName
}

func newSharedBuckets(s *Shared) *sharedBuckets {
	return &sharedBuckets{
		Shared: s, local: newLocalBuckets(s.local.now), drawing: newScript(drawScript), adding: newScript(addScript),
		wake: make(chan struct{}, 1), waiting: make(map[groupBucket]draw),
	}
}

// key is a bucket's name in Redis. Those of a group share a hash tag.
func (n *bucketName) key(group string) string {
	var b strings.Builder
	b.WriteString("modelgate:rate:{")
	b.WriteString(group)
	b.WriteString("}:")
	b.WriteString(strconv.FormatInt(n.rule, 36))
	for _, part := range []string{n.id, n.value} {
		b.WriteByte(':')
		b.WriteString(part)
	}
	return b.String()
}

func (b *sharedBuckets) draw(group string, draws []draw) verdict {
	if b.leftAlone() {
		return b.alone(group, draws)
	}
	v, err := b.ask(group, draws, true)
	if err != nil {
		b.lost(err)
		return b.alone(group, draws)
	}
	b.answers()
	return v
}

// alone judges by this instance's own buckets.
func (b *sharedBuckets) alone(group string, draws []draw) verdict {
	b.fallbacks.Add(1)
	for i := range draws {
		draws[i].lease = nil
	}
	return b.local.draw(group, draws)
}

func (b *sharedBuckets) levels(group string, draws []draw) verdict {
	if !b.leftAlone() {
		v, err := b.ask(group, draws, false)
		if err == nil {
			b.answers()
			return v
		}
		b.lost(err)
	}
	return b.local.levels(group, draws)
}

// ask runs the script. Where the answer does not come, places may have been
// taken all the same; their leases are given back by Run.
func (b *sharedBuckets) ask(group string, draws []draw, take bool) (verdict, error) {
	keys := make([]string, len(draws))
	args := make([]any, 3, 3+3*len(draws))
	args[0], args[1], args[2] = 0, leaseFor.Microseconds(), ""
	if take {
		args[0] = 1
	}
	var leases []*lease
	for i := range draws {
		d := &draws[i]
		keys[i] = d.name.key(group)
		if d.rule.Window == "" && take {
			if args[2] == "" {
				args[2] = b.ids.New().String()
			}
			d.lease = &lease{shared: b.Shared, places: keys[i], member: args[2].(string)}
			leases = append(leases, d.lease)
		}
		args = append(args, strconv.FormatFloat(d.rate(), 'g', -1, 64), d.rule.Size(), d.cost)
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.wait)
	defer cancel()
	got, err := redis.Int64s(b.server.run(ctx, b.drawing, keys, args...))
	if err == nil && len(got) != 2+len(draws) {
		err = fmt.Errorf("redis: %d numbers from a script, want %d", len(got), 2+len(draws))
	}
	for _, l := range leases {
		l.ended = err != nil
		if err != nil || got[0] == 0 {
			b.keep(l)
		}
	}
	if err != nil {
		return verdict{}, err
	}
	return verdict{refused: int(got[0]) - 1, after: time.Duration(got[1]) * time.Microsecond, levels: got[2:], by: b}, nil
}

// add gathers changes for a moment. A call does not wait for them.
func (b *sharedBuckets) add(group string, changes []draw) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range changes {
		name := groupBucket{group, d.name}
		w, known := b.waiting[name]
		if !known && len(b.waiting) >= mostWaits {
			continue
		}
		d.cost += w.cost
		b.waiting[name] = d
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// flush sends what was gathered. What was drawn in addition is tried again
// where no answer comes: twice is safe, and what is given back is not.
func (b *sharedBuckets) flush() {
	b.mu.Lock()
	waiting := b.waiting
	b.waiting = make(map[groupBucket]draw)
	b.mu.Unlock()
	groups := make(map[string][]draw)
	for name, d := range waiting {
		groups[name.group] = append(groups[name.group], d)
	}
	for group, changes := range groups {
		err := errAway
		if b.away.Load() == 0 {
			if err = b.send(group, changes); err != nil {
				b.lost(err)
			}
		}
		if err != nil {
			b.retry(group, changes)
		}
	}
}

func (b *sharedBuckets) send(group string, changes []draw) error {
	ctx, cancel := context.WithTimeout(context.Background(), b.wait)
	defer cancel()
	for len(changes) > 0 {
		n := min(len(changes), keysAtOnce)
		keys, args := make([]string, n), make([]any, 0, 2*n)
		for i := range changes[:n] {
			d := &changes[i]
			keys[i] = d.name.key(group)
			args = append(args, strconv.FormatFloat(d.rate(), 'g', -1, 64), d.cost)
		}
		if _, err := b.server.eval(ctx, b.adding, keys, args...); err != nil {
			return err
		}
		changes = changes[n:]
	}
	return nil
}

var errAway = errors.New("redis did not answer lately")

// retry keeps what was drawn in addition for Renew.
func (b *sharedBuckets) retry(group string, changes []draw) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range changes {
		name := groupBucket{group, d.name}
		if d.cost > 0 && len(b.waiting) < mostWaits {
			d.cost += b.waiting[name].cost
			b.waiting[name] = d
		}
	}
}
