//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestImage puts the image's contents together and runs them as a container
// engine does: the root read-only, nothing else of this machine in sight, as
// an account without rights, its data on a volume.
func TestImage(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "true").CombinedOutput(); err != nil && os.Geteuid() != 0 {
		t.Skipf("namespaces cannot be made here: %v %s", err, out)
	}
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		t.Skip("no certificates of authorities to put into the image:", err)
	}
	root := filepath.Join(t.TempDir(), "root")
	assemble := exec.CommandContext(t.Context(), "sh", "../../scripts/image-root", root)
	assemble.Env = append(os.Environ(), "MODELGATE_BINARY="+static(t))
	if out, err := assemble.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantContents(t, root)
	if err := os.MkdirAll(filepath.Join(root, "etc/modelgate"), 0o755); err != nil { // as a mount would
		t.Fatal(err)
	}
	config := "server: {listen: \"127.0.0.1:0\", data_dir: /data, drain_delay: 0s}\ndatabase: {url: \"sqlite:modelgate.db\"}\nlog: {format: text}\n"
	if err := os.WriteFile(filepath.Join(root, "etc/modelgate/modelgate.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	url, log, stop := contained(t, root)
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err, log())
	}
	resp.Body.Close()
	resp, err = http.Get(url + "/v1/models")
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v %v\n%s", resp, err, log())
	}
	if err == nil {
		resp.Body.Close()
	}
	stop()
}

// static is the binary without cgo, as the image has it.
func static(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "modelgate")
	build := exec.CommandContext(t.Context(), "go", "build", "-pgo=off", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// wantContents checks that the image holds what it should and nothing else.
func wantContents(t *testing.T, root string) {
	t.Helper()
	var got []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, strings.TrimPrefix(path, root))
		}
		return err
	})
	want := []string{"/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/modelgate"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the image holds %v, want %v (%v)", got, want, err)
	}
	containerfile, err := os.ReadFile("../../deploy/container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, final, ok := strings.Cut(string(containerfile), "\nFROM scratch\n")
	if !ok || !strings.Contains(final, "COPY --from=build /image/ /\n") || !strings.Contains(final, "USER 65532:65532\n") || strings.Count(final, "COPY") != 1 ||
		!strings.Contains(string(containerfile), "RUN scripts/image-root /image\n") {
		t.Errorf("the Containerfile does not end in these contents and this account:\n%s", final)
	}
	wantPages(t, string(containerfile))
}

// wantPages checks what can be checked without a container engine of the
// stage that builds the pages: that what it copies is there and let through,
// and that what it builds comes to where the binary takes it from.
func wantPages(t *testing.T, containerfile string) {
	t.Helper()
	pages, build, ok := strings.Cut(containerfile, "\nFROM docker.io/library/golang")
	if !ok || !strings.Contains(pages, "\nWORKDIR /src/web\n") || !strings.Contains(pages, "\nRUN npm run build\n") {
		t.Fatalf("no stage that builds the pages:\n%s", pages)
	}
	if _, after, copied := strings.Cut(build, "COPY --from=pages /src/internal/dashboard/dist internal/dashboard/dist\n"); !copied || !strings.Contains(after, "scripts/image-root") {
		t.Error("the pages do not come into the binary")
	}
	if !strings.Contains(read(t, "web/vite.config.ts"), "internal/dashboard/dist") || !strings.Contains(read(t, "web/package.json"), `"build":`) {
		t.Error("the web app is not built into internal/dashboard/dist")
	}
	ignored := read(t, ".containerignore")
	if ignored != read(t, "deploy/container/Containerfile.dockerignore") {
		t.Error("what Podman and Docker leave out is not the same")
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY ((?:[a-z./-]+ )+)\S+$`).FindAllStringSubmatch(containerfile, -1) {
		for _, source := range strings.Fields(m[1]) {
			if _, err := os.Stat(filepath.Join("../..", source)); err != nil {
				t.Error(err)
			}
			if slices.Contains(strings.Fields(ignored), strings.Split(source, "/")[0]) {
				t.Errorf("%s is copied and ignored", source)
			}
		}
	}
}

// contained runs the image's contents in namespaces of their own. The script
// writes what may go wrong with the root before it starts the gateway.
func contained(t *testing.T, root string) (url string, log func() string, stop func()) {
	t.Helper()
	const script = `set -eu
mount --bind "$1" "$1"
mount -t tmpfs -o mode=0700,uid=$2,gid=$2 data "$1/data"
mount -o remount,bind,ro "$1"
if touch "$1/x" 2>/dev/null; then echo "the root can be written" >&2; exit 3; fi
exec chroot --userspec="$2:$2" "$1" /modelgate serve --config /etc/modelgate/modelgate.yaml`
	args, account := []string{"--mount", "--ipc", "--uts"}, "65532"
	if os.Geteuid() != 0 {
		args, account = append(args, "--user", "--map-root-user"), "0" // the only account that such a namespace maps
	}
	cmd := exec.Command("unshare", append(args, "sh", "-c", script, "sh", root, account)...)
	var output lockedBuffer
	cmd.Stderr, cmd.Stdout = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	address := regexp.MustCompile(`msg=listening.* addr=(127\.0\.0\.1:\d+)`)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if m := address.FindStringSubmatch(output.String()); m != nil {
			url = "http://" + m[1]
			break
		}
		select {
		case err := <-exited:
			t.Fatalf("the image's contents do not run: %v\n%s", err, output.String())
		case <-ctx.Done():
			t.Fatalf("the image's contents do not listen\n%s", output.String())
		case <-tick.C:
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil || os.Geteuid() == 0 && !bytes.Contains(status, []byte("Uid:\t65532\t65532\t65532\t65532")) || os.Geteuid() == 0 && !bytes.Contains(status, []byte("CapEff:\t0000000000000000")) {
		t.Errorf("the process has rights (%v):\n%s", err, status)
	}
	return url, output.String, func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-exited; err != nil {
			t.Errorf("SIGTERM: %v\n%s", err, output.String())
		}
	}
}

// TestUnit has systemd read the unit. It is told of another binary, because
// it looks whether there is one.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile("../../deploy/systemd/modelgate.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "modelgate.service")
	text = bytes.ReplaceAll(text, []byte("/usr/local/bin/modelgate"), []byte(testkit.Binary(t)))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput()
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "modelgate.service") || err != nil && line != "" {
			t.Errorf("%s (%v)", line, err)
		}
	}
}

// lockedBuffer is what a process writes while a test reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
