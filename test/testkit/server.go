//go:build unix

package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// startTimeout is how long a server may take to answer; on a busy machine it
// is seconds.
const startTimeout = 60 * time.Second

// portAttempts is how often another port is tried: between finding a free one
// and its use, another process can take it.
const portAttempts = 5

// program is a server that tests start.
type program struct {
	name    string
	command func(dir string, port int) ([]string, error) // may write files that the server reads into dir
	ready   func(dir string, port int) error             // nil when the server that was started in dir answers
}

// process is a running server. Its watchdog ends it and removes its folder when
// this process ends at the latest.
type process struct {
	*watchdog
	port int
}

// start starts the server on a free port.
func (p program) start() (running *process, err error) {
	for range portAttempts {
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		if running, err = p.startOn(port); err == nil {
			return running, nil
		}
	}
	return nil, err
}

// startOn starts the server on a port and returns when it answers.
func (p program) startOn(port int) (*process, error) {
	dir, err := os.MkdirTemp("", "gate-"+p.name+"-")
	if err != nil {
		return nil, err
	}
	command, err := p.command(dir, port)
	if err != nil {
		return nil, err
	}
	dog, err := watch(`cd /; "$@" >"$0/log" 2>&1 & pid=$!; read -r _; kill -9 $pid; wait $pid; rm -rf "$0"`, dir, command)
	if err != nil {
		return nil, err
	}
	if err := await(func() error { return p.ready(dir, port) }); err != nil {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		dog.stop()
		return nil, fmt.Errorf("%s did not answer on port %d within %v: %w; it printed:\n%s", strings.Join(command, " "), port, startTimeout, err, said)
	}
	return &process{dog, port}, nil
}

// await asks until the answer is nil; there is no signal to wait for.
func await(ready func() error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(startTimeout); ; <-tick.C {
		if err := ready(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
