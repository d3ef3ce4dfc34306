package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Names of targets that others are compared with.
const (
	nameDirect = "direct"
	nameProxy  = "bare proxy"
	nameNginx  = "nginx"
	nameAlways = "modelgate, always"
	// nameUnbudgeted is a gateway whose organization has no budgets.
	nameUnbudgeted = "modelgate, no budgets"
	// nameLarge is one with a hundred times as much of everything.
	nameLarge = "modelgate, hundredfold"
)

// target is something that answers chat completions, in a process of its own.
type target struct {
	name    string
	gateway bool
	address string
	admin   string   // where a gateway serves profiles
	keys    []string // to present; each connection has one
	process *exec.Cmd
}

// cpu is the processor time that the target's process has used so far.
func (t *target) cpu() (time.Duration, error) { return cpuOf(t.process.Process.Pid) }

// status is a figure of the process's memory in bytes, 0 where the system does
// not say.
func (t *target) status(name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", t.process.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

func (t *target) rss() int64  { return t.status("VmRSS") }
func (t *target) peak() int64 { return t.status("VmHWM") }

// resetPeak makes peak begin anew, where the system can.
func (t *target) resetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", t.process.Process.Pid), []byte("5"), 0)
}

// fleet is what has been started.
type fleet struct {
	dir     string
	secure  *target // the provider over TLS; nobody calls it directly
	targets []*target
}

func (f *fleet) stop() {
	all := f.targets
	if f.secure != nil {
		all = append(all, f.secure)
	}
	for _, t := range all {
		_ = t.process.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		_ = t.process.Wait()
	}
	_ = os.RemoveAll(f.dir)
}

// startTargets starts all that take turns: the provider, the bare proxy,
// nginx where there is one, and the gateway in all its ways.
func startTargets(o *options) ([]*target, func(), error) {
	dir, err := os.MkdirTemp("", "modelgate-bench-")
	if err != nil {
		return nil, nil, err
	}
	f := &fleet{dir: dir}
	if err := f.startAll(o); err != nil {
		f.stop()
		return nil, nil, err
	}
	return f.targets, f.stop, nil
}

func (f *fleet) startAll(o *options) error {
	if err := trustProvider(f.dir); err != nil {
		return err
	}
	if err := f.add(startSelf(nameDirect, "upstream")); err != nil {
		return err
	}
	secure, err := startSelf(nameDirect, "TLS upstream")
	if err != nil {
		return err
	}
	f.secure = secure
	upstream := f.targets[0].address
	if err := f.add(startSelf(nameProxy, "proxy", upstreamVariable+"="+upstream, tlsVariable+"="+secure.address)); err != nil {
		return err
	}
	if path, err := exec.LookPath("nginx"); err == nil && o.targets.MatchString(nameNginx) {
		if err := f.add(startNginx(path, f.dir, upstream)); err != nil {
			return err
		}
	}
	gateways := []gateway{
		{name: "modelgate, interval", binary: o.binary, fsync: "interval"},
		{name: nameAlways, binary: o.binary, fsync: "always"},
		{name: nameUnbudgeted, binary: o.binary, fsync: "interval"},
		{name: nameLarge, binary: o.binary, fsync: "interval"},
	}
	if o.ablate {
		const server, provider = ", http: standard", ", transport: standard"
		gateways = append(gateways,
			gateway{name: "modelgate, standard server", binary: o.binary, fsync: "interval", server: server},
			gateway{name: "modelgate, standard client", binary: o.binary, fsync: "interval", provider: provider},
			gateway{name: "modelgate, standard both", binary: o.binary, fsync: "interval", server: server, provider: provider})
	}
	for _, g := range append(gateways, o.others...) {
		if g.name == nameUnbudgeted && !o.unbudgeted || g.name == nameLarge && !o.large {
			continue
		}
		if !o.targets.MatchString(g.name) {
			continue
		}
		g.scale, g.upstream, g.secure = ordinary(), upstream, secure.address
		if g.name == nameLarge {
			g.scale = hundredfold()
		}
		g.scale.unlimited = g.name == nameUnbudgeted
		g.dir = filepath.Join(f.dir, strings.ReplaceAll(g.name, " ", "-"))
		if err := f.add(g.start()); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) add(t *target, err error) error {
	if err == nil {
		f.targets = append(f.targets, t)
	}
	return err
}

// startSelf starts a server of this program in a process of its own.
func startSelf(name, role string, env ...string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	return started(&target{name: name, keys: []string{"sk-bench"}, process: cmd})
}

// address finds where a server listens in the line with which it says so.
var address = regexp.MustCompile(`"?addr"?[=:]"?(127\.0\.0\.1:\d+)`)

// started starts the process and waits for the line that says where it
// listens.
func started(t *target) (*target, error) {
	lines, err := t.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	start := startMeasured
	if t.name == nameDirect {
		start = (*exec.Cmd).Start
	}
	if err := start(t.process); err != nil {
		return nil, err
	}
	scanner := bufio.NewScanner(lines)
	var said []string
	for scanner.Scan() {
		if m := address.FindStringSubmatch(scanner.Text()); m != nil {
			t.address = m[1]
			go func() {
				for scanner.Scan() { // keep the pipe empty
				}
			}()
			return t, nil
		}
		said = append(said, scanner.Text())
	}
	return nil, fmt.Errorf("%s did not start: %s", t.name, strings.Join(said, "\n"))
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

const nginxConfig = `daemon off; master_process off; pid %[1]s/nginx.pid; error_log %[1]s/error.log crit;
events { worker_connections 8192; }
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  client_body_buffer_size 256k; client_max_body_size 20m; keepalive_requests 100000000;
  upstream provider { server %[3]s; keepalive 1024; keepalive_requests 100000000; }
  server { listen %[2]s; location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 600s; } }
}
`

func startNginx(path, dir, upstream string) (*target, error) {
	dir = filepath.Join(dir, "nginx")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, dir, addr, upstream), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"))
	t := &target{name: nameNginx, address: addr, keys: []string{"sk-bench"}, process: cmd}
	if err := startMeasured(cmd); err != nil {
		return nil, err
	}
	return t, awaitOK(addr, "/")
}

// awaitOK waits until a server answers with 200.
func awaitOK(addr, path string) error {
	client := http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		resp, err := client.Get("http://" + addr + path)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = fmt.Errorf("%s: %s", path, resp.Status)
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}
