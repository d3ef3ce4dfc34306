package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"modelgate/test/testkit"
)

// asNobody runs a command as a user who owns nothing, where the test may choose
// one, and otherwise as itself.
func asNobody(t *testing.T, args ...string) (stderr string, code int) {
	t.Helper()
	const nobody = 65534
	program, err := os.Open(testkit.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	// The binary lies in a folder that nobody may enter; an open file needs none.
	cmd := exec.Command("/proc/self/fd/3", args...)
	cmd.ExtraFiles = []*os.File{program}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var errs bytes.Buffer
	cmd.Stderr, cmd.Dir = &errs, "/"
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return errs.String(), cmd.ProcessState.ExitCode()
}

// TestPermissionDenied names what may not be read, and what to do.
func TestPermissionDenied(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("NOT PROVED HERE: only /proc lets a program be started that lies out of reach")
	}
	dir, err := os.MkdirTemp("/tmp", "modelgate-permission-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config, data := filepath.Join(dir, "modelgate.yaml"), filepath.Join(dir, "data")
	for _, step := range []error{
		os.Chmod(dir, 0o755),
		os.WriteFile(config, []byte("server: {data_dir: data}\n"), 0o600),
		os.Mkdir(data, 0o700),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	create := func() {
		if _, stderr, code := testkit.RunBinary(t, nil, "client", "create", "--name", "acme", "--config", config); code != 0 {
			t.Fatal(stderr)
		}
	}
	create()
	deny := func(path string) {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	deny(config)
	stderr, code := asNobody(t, "client", "list", "--config", config)
	if want := "modelgate: " + config + ": cannot be opened: permission denied; give the user that runs modelgate the right to read it\n"; code != 1 || stderr != want {
		t.Errorf("exit %d: %s, want %s", code, stderr, want)
	}
	if err := os.Chmod(config, 0o644); err != nil {
		t.Fatal(err)
	}
	deny(data)
	stderr, code = asNobody(t, "client", "list", "--config", config)
	if !strings.Contains(stderr, "permission denied") || !strings.Contains(stderr, data) || !strings.Contains(stderr, "Run it as the user that owns ") || code != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
