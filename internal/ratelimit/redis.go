package ratelimit

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// How connections to Redis are kept.
const (
	mostConnections = 128
	dialTimeout     = 2 * time.Second
	keepIdle        = 30 * time.Second // a middlebox may forget one that is quiet for longer
)

// script is Lua, known to Redis by its sum once it has run there.
type script struct{ text, sum string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// connection is one that is not in use, and since when.
type connection struct {
	redis.Conn
	since time.Time
}

// server is the connections to one Redis, made as they are needed. What is
// sent is sent once. Safe for concurrent use.
type server struct {
	url    string
	within time.Duration // the most that making a connection may take
	free   chan connection
	made   atomic.Int64 // connections, and tries to make one

	mu     sync.Mutex // held while free is filled or emptied for good
	closed bool
}

func newServer(text string, within time.Duration) (*server, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("redis url: is none") // the error would repeat the password
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, fmt.Errorf("redis url: scheme %q; want redis or rediss", u.Scheme)
	}
	u.Path = "/" + strings.Trim(u.Path, "/")
	return &server{url: u.String(), within: within, free: make(chan connection, mostConnections)}, nil
}

// get is a connection. It is dialed beside the caller, so that one that takes
// longer than the caller waits serves a later one.
func (s *server) get(ctx context.Context) (redis.Conn, error) {
	for {
		select {
		case c := <-s.free:
			if time.Since(c.since) < keepIdle {
				return c.Conn, nil
			}
			s.drop(c.Conn)
			continue
		default:
		}
		break
	}
	failed := make(chan error, 1)
	if s.made.Add(1) <= mostConnections {
		go s.dial(failed)
	} else {
		s.made.Add(-1)
	}
	select {
	case c := <-s.free:
		return c.Conn, nil
	case err := <-failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *server) dial(failed chan<- error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.within)
	defer cancel()
	c, err := redis.DialURLContext(ctx, s.url, redis.DialConnectTimeout(s.within),
		redis.DialTLSHandshakeTimeout(s.within), redis.DialWriteTimeout(s.within))
	if err != nil {
		s.made.Add(-1)
		failed <- err
		return
	}
	s.put(c)
}

// put keeps a connection for the next. Where one broke, those that are not in
// use are most likely broken too.
func (s *server) put(c redis.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	broken := c.Err() != nil
	if broken || s.closed {
		s.drop(c)
	}
	if broken {
		s.empty()
	}
	if !broken && !s.closed {
		s.free <- connection{c, time.Now()} // there is room: no more are made
	}
}

func (s *server) drop(c redis.Conn) {
	_ = c.Close()
	s.made.Add(-1)
}

func (s *server) empty() {
	for {
		select {
		case c := <-s.free:
			s.drop(c.Conn)
		default:
			return
		}
	}
}

func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.empty()
}

// do sends one command and waits for its answer until ctx ends.
func (s *server) do(ctx context.Context, command string, args ...any) (any, error) {
	c, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	defer s.put(c)
	return redis.DoWithTimeout(c, remaining(ctx), command, args...)
}

// eval runs a script that answers with a number.
func (s *server) eval(ctx context.Context, lua script, keys []string, args ...any) (int64, error) {
	return redis.Int64(s.run(ctx, lua, keys, args...))
}

// run runs a script.
func (s *server) run(ctx context.Context, lua script, keys []string, args ...any) (any, error) {
	all := arguments(lua.sum, keys, args)
	got, err := s.do(ctx, "EVALSHA", all...)
	if e, ok := errors.AsType[redis.Error](err); ok && strings.HasPrefix(string(e), "NOSCRIPT ") {
		all[0] = lua.text
		got, err = s.do(ctx, "EVAL", all...)
	}
	return got, err
}

// command is one of several that are sent at once.
type command struct {
	name string
	args []any
}

// all sends commands together. The error is the first of any.
func (s *server) all(ctx context.Context, commands []command) error {
	c, err := s.get(ctx)
	if err != nil {
		return err
	}
	defer s.put(c)
	for _, one := range commands {
		if err := c.Send(one.name, one.args...); err != nil {
			return err
		}
	}
	answers, err := redis.Values(redis.DoWithTimeout(c, remaining(ctx), ""))
	for _, a := range answers {
		if e, ok := a.(redis.Error); ok && err == nil {
			err = e
		}
	}
	return err
}

func arguments(lua string, keys []string, args []any) []any {
	all := make([]any, 0, 2+len(keys)+len(args))
	all = append(all, lua, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return append(all, args...)
}

// remaining is the time left; never 0, which would be without end.
func remaining(ctx context.Context) time.Duration {
	ends, ok := ctx.Deadline()
	if !ok {
		return dialTimeout
	}
	return max(time.Until(ends), time.Nanosecond)
}
