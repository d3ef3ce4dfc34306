package security

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestProcessKeepsItsSecrets looks at a running gateway as another process
// of its own account would: command line, environment, memory, core dumps,
// profiles, files.
func TestProcessKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what one process may see of another is told by /proc here")
	}
	dir := t.TempDir()
	account := syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	if account.Uid == 0 {
		account.Uid, account.Gid = 65534, 65534 // root sees everything; take another account
	}
	binary := filepath.Join(dir, "modelgate")
	text, err := os.ReadFile(testkit.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "modelgate.yaml")
	yaml := "server: {listen: \"127.0.0.1:0\", data_dir: ./data}\nlog: {level: debug, format: text}\nproviders:\n  - {name: far, format: openai, base_url: \"http://127.0.0.1:9\", credential: \"${SECRET_OF_PROVIDER}\"}\n"
	for name, content := range map[string][]byte{binary: text, config: []byte(yaml)} {
		if err := errors.Join(os.WriteFile(name, content, 0o700), os.Chown(name, int(account.Uid), int(account.Gid))); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Chown(dir, int(account.Uid), int(account.Gid)), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	as := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, []string{"SECRET_OF_PROVIDER=canary-of-the-environment"}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &account}
		}
		return cmd
	}
	gateway := as(binary, "serve", "--config", config)
	stderr, err := gateway.StderrPipe()
	if err == nil {
		err = gateway.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gateway.Process.Kill(); _ = gateway.Wait() })
	address := awaitAddress(t, stderr)
	proc := fmt.Sprintf("/proc/%d/", gateway.Process.Pid)
	for _, file := range []string{"environ", "mem", "auxv", "maps"} {
		if out, err := as("head", "-c", "64", proc+file).CombinedOutput(); err == nil {
			t.Errorf("%s can be read by the same account: %q", file, out)
		}
	}
	if out, err := as("ls", proc+"fd").CombinedOutput(); err == nil {
		t.Errorf("its open files can be listed: %q", out)
	}
	line, err := os.ReadFile(proc + "cmdline")
	if err != nil || strings.Contains(string(line), "canary") {
		t.Errorf("command line %q, %v", line, err)
	}
	limits, err := os.ReadFile(proc + "limits")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(limits)) {
		if strings.HasPrefix(line, "Max core file size") && strings.Join(strings.Fields(line)[4:6], " ") != "0 0" {
			t.Errorf("core dumps are possible: %s", line)
		}
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/vars", "/debug/pprof/goroutine?debug=2"} {
		if resp, err := http.Get("http://" + address + path); err != nil || resp.StatusCode != 404 {
			t.Errorf("%s: %v, %v", path, resp, err)
		}
	}
	if n := metric(t, "http://"+address, "process_open_fds"); n < 5 {
		t.Errorf("the gateway counts %v open files of its own", n)
	}
	err = filepath.Walk(filepath.Join(dir, "data"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 && info.IsDir() {
			err = fmt.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestMetricsStayInside asks for what is the operator's from outside: past
// a reverse proxy on this machine, and under other names.
func TestMetricsStayInside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ask := func(host, lines string) *answer {
		return l.raw(t, "GET /metrics HTTP/1.1\r\nHost: "+host+"\r\n"+lines+"\r\n")
	}
	for _, line := range []string{"X-Forwarded-For: 203.0.113.9", "X-Real-IP: 203.0.113.9", "Forwarded: for=203.0.113.9", "Via: 1.1 proxy", "X-Forwarded-Host: gateway", "X-Forwarded-Proto: https"} {
		if a := ask("127.0.0.1", line+"\r\n"); a == nil || a.StatusCode != 404 {
			t.Errorf("with %s: %v", line, a)
		}
	}
	// A proxy that adds nothing may still pass on the name that was asked for,
	// and so does a browser that was led here by a name.
	for _, host := range []string{"gateway.example.com", "gateway.example.com:8080", "203.0.113.9", "localhost.example.com", "127.0.0.1.example.com", "[2001:db8::1]:80", ""} {
		if a := ask(host, ""); a == nil || a.StatusCode != 404 {
			t.Errorf("as %q: %v", host, a)
		}
	}
	for _, host := range []string{"127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:8080", strings.TrimPrefix(l.URL, "http://")} {
		if a := ask(host, ""); a == nil || a.StatusCode != 200 || !strings.Contains(a.body, "process_open_fds") {
			t.Errorf("as %q: %v", host, a)
		}
	}
	for _, path := range []string{"/metrics/", "/Metrics", "/%6detrics", "/%6Detric%73", "/debug/pprof/", "/admin", "/v1/metrics", "/gw/metrics"} {
		for _, lines := range []string{"Host: g\r\nX-Forwarded-For: 203.0.113.9", "Host: 127.0.0.1"} {
			if a := l.raw(t, "GET "+path+" HTTP/1.1\r\n"+lines+"\r\n\r\n"); a == nil || a.StatusCode == 200 {
				t.Errorf("%s with %q: %v", path, lines, a)
			}
		}
	}
	if a := l.raw(t, "OPTIONS * HTTP/1.1\r\nHost: g\r\n\r\n"); a == nil || a.StatusCode != 400 || a.Header.Get("X-Gateway-Request-Id") == "" {
		t.Errorf("OPTIONS *: %v", a)
	}
}

// awaitAddress reads a gateway's log up to the line with its address.
func awaitAddress(t *testing.T, log io.Reader) string {
	t.Helper()
	found := make(chan string, 1)
	go func() {
		buffer, text := make([]byte, 4096), ""
		for {
			n, err := log.Read(buffer)
			text += string(buffer[:n])
			if _, rest, ok := strings.Cut(text, " addr="); ok && strings.Contains(rest, " ") {
				found <- strings.Fields(rest)[0]
				_, _ = io.Copy(io.Discard, log)
				return
			}
			if err != nil {
				found <- text
				return
			}
		}
	}()
	said := ""
	select {
	case said = <-found:
		if _, _, err := net.SplitHostPort(said); err == nil {
			return said
		}
	case <-time.After(time.Minute):
	}
	t.Fatalf("the gateway does not listen: %s", said)
	return ""
}
