package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"modelgate/test/testkit"
)

// shells are the shells that completion is made for, without the files of
// whoever runs the test, and how each loads the script.
var shells = [...]struct {
	name, load string
	args       []string
}{
	{"bash", "source /usr/share/bash-completion/bash_completion; source <(modelgate completion bash)", []string{"--norc", "--noprofile", "-i"}},
	{"zsh", "autoload -Uz compinit; compinit -u -D; source <(modelgate completion zsh)", []string{"-f", "-i"}},
	{"fish", "modelgate completion fish | source", []string{"--no-config", "-i"}},
}

// TestCompletion types half a word and the tab key in each shell, and looks at the
// command that the shell then runs.
func TestCompletion(t *testing.T) {
	t.Parallel()
	g := testkit.StartGateway(t, testkit.GatewayOptions{})
	g.NewClient("bakery")
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell.name)
			if err == nil && shell.name == "bash" {
				_, err = os.Stat("/usr/share/bash-completion/bash_completion")
			}
			if err != nil {
				t.Skipf("NOT PROVED HERE: completion for %s: %v", shell.name, err)
			}
			s := openShell(t, path, shell.args, g.ConfigFile)
			s.enter(shell.load + "; modelgate loaded")
			s.want("loaded")
			for typed, ran := range map[string]string{
				"reconc\t":                   "reconcile",
				"subacc\tlis\t--clie\tbak\t": "subaccount list --client bakery",
				"client show bak\t":          "client show bakery",
				"key list --status rev\t":    "key list --status revoked",
			} {
				s.enter("modelgate " + typed)
				s.want(ran)
			}
		})
	}
}

// shell is a shell on a terminal of its own. Its modelgate says what it was called
// with, except for completions, which the real one makes.
type shell struct {
	t        *testing.T
	terminal *os.File
	unread   string
}

func openShell(t *testing.T, path string, args []string, config string) *shell {
	t.Helper()
	bin := t.TempDir()
	wrapper := fmt.Sprintf("#!/bin/sh\ncase $1 in *omplet*) exec '%s' \"$@\" ;; esac\necho \"RAN<$*>\"\n", testkit.Binary(t))
	if err := os.WriteFile(filepath.Join(bin, "modelgate"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = bin
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + bin, "TERM=dumb", "LC_ALL=C.UTF-8", "MODELGATE_CONFIG=" + config}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 250})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = terminal.Close() // hangs up, which ends the shell
		_ = cmd.Wait()
	})
	return &shell{t: t, terminal: terminal}
}

// enter types a line.
func (s *shell) enter(line string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(line + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// want reads until a command has run, and compares it.
func (s *shell) want(args string) {
	s.t.Helper()
	buffer := make([]byte, 4096)
	for {
		if _, after, begins := strings.Cut(s.unread, "RAN<"); begins {
			if ran, rest, ends := strings.Cut(after, ">"); ends {
				s.unread = rest
				if strings.TrimSpace(ran) != args {
					s.t.Errorf("ran modelgate %s, want modelgate %s", ran, args)
				}
				return
			}
		}
		n, err := s.terminal.Read(buffer)
		if err != nil {
			s.t.Fatalf("waiting for modelgate %s: %v\n%s", args, err, s.unread)
		}
		s.unread += string(buffer[:n])
	}
}
