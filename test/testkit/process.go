//go:build unix

package testkit

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// The servers started here must not outlive the test process, not even when it
// is killed. Each has a watchdog: a shell in a session of its own that waits
// for the end of its input. The test process holds the other end of that pipe,
// and the kernel closes it whatever ends the process.

// watchdog runs a script that reads its input before it cleans up.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// watch starts a watchdog. The script sees dir as $0 and the command as "$@".
func watch(script, dir string, command []string) (*watchdog, error) {
	cmd := exec.Command("sh", append([]string{"-c", "trap '' HUP INT TERM; " + script, dir}, command...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start watchdog: %w", err)
	}
	return &watchdog{cmd, pipe}, nil
}

// stop lets the watchdog clean up and waits until it has. A second stop does
// nothing.
func (w *watchdog) stop() {
	w.pipe.Close()
	w.cmd.Wait()
}

// freePort is a loopback port that nobody listened on a moment ago. It lies
// below those that systems give out by themselves: a server that is stopped for
// a while finds its port free when it starts again, and nobody who calls it
// meanwhile is given that port and calls himself.
func freePort() (int, error) {
	const first, after, tries = 10_000, 32_000, 100
	var err error
	for range tries {
		port := first + rand.IntN(after-first)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port among %d: %w", tries, err)
}

// FreeAddress is a loopback address, host:port, for a server that a test starts
// and stops by itself.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// findProgram looks for an executable in PATH and then in the folders that the
// patterns match, the last in order of name first. It is "" when there is none.
func findProgram(name string, patterns ...string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		if len(found) > 0 {
			return slices.Max(found)
		}
	}
	return ""
}

// notShort leaves a test out of a run that starts no other program.
func notShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts another program: leave -short out, or run make test")
	}
}

// Chromium is the browser's program: where there is one, that which has no
// windows and starts and draws in two thirds of the time.
func Chromium(t testing.TB) string {
	t.Helper()
	notShort(t)
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "Google Chrome", "Chromium"} {
		if path := findProgram(name, "/Applications/*.app/Contents/MacOS"); path != "" {
			return path
		}
	}
	t.Fatal("this test needs Chromium; scripts/deps installs it")
	return ""
}

// owner is the account that a server which refuses to run as root runs as.
type owner struct {
	prefix   []string // what its commands begin with
	uid, gid int      // -1: as we are
}

// findOwner is ourselves, or the postgres account when we are root.
func findOwner() (owner, error) {
	if os.Geteuid() != 0 {
		return owner{nil, -1, -1}, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return owner{}, fmt.Errorf("the tests run as root, and Postgres refuses to: make an account for it (useradd postgres): %w", err)
	}
	uid, _ := strconv.Atoi(account.Uid) // numbers on every Unix
	gid, _ := strconv.Atoi(account.Gid)
	if path := findProgram("setpriv", "/usr/bin"); path != "" {
		return owner{[]string{path, "--reuid=" + account.Uid, "--regid=" + account.Gid, "--clear-groups"}, uid, gid}, nil
	}
	if path := findProgram("runuser", "/sbin", "/usr/sbin"); path != "" {
		return owner{[]string{path, "-u", "postgres", "--"}, uid, gid}, nil
	}
	return owner{}, fmt.Errorf("the tests run as root, Postgres refuses to, and neither setpriv nor runuser is there: install util-linux")
}

// own gives files to the account.
func (o owner) own(paths ...string) error {
	for _, path := range paths {
		if err := os.Chown(path, o.uid, o.gid); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command as the owner, in dir.
func (o owner) run(dir string, command ...string) error {
	command = slices.Concat(o.prefix, command)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	log, err := os.CreateTemp("", "gate-run-*.log")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	// A file, not a pipe: a server left behind by the command would keep a
	// pipe open, and waiting for the command would wait for the server.
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%v: %w\n%s", command, err, said)
	}
	return nil
}
