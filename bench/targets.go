package main

import (
	"bufio"
	"crypto/tls"
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

	"modelgate/test/testkit"
)

// Names of targets that others are compared with.
const (
	nameDirect   = "direct"
	nameProxy    = "bare proxy"
	nameNginx    = "nginx"
	nameAlways   = "modelgate, always"
	nameInterval = "modelgate, interval"
	namePostgres = "modelgate, PostgreSQL"
	// nameUnbudgeted is a gateway whose organization has no budgets.
	nameUnbudgeted = "modelgate, no budgets"
	// nameRuled is a gateway with six budgets and limits beside the usual ones that
	// count every call.
	nameRuled = "modelgate, six rules"
	// nameLarge is one with a hundred times as much of everything.
	nameLarge = "modelgate, hundredfold"
)

// target is something that answers chat completions, in a process of its own.
type target struct {
	name    string
	gateway bool
	// forwards: a path names the link, as in /tls/v1/chat/completions.
	forwards bool
	// onlyHTTP1: it cannot call a provider over HTTP/2.
	onlyHTTP1 bool
	address   string
	certified *tls.Config                          // how clients call it over TLS, nil without TLS
	header    func(*scenario) string               // lines that it wants in the header of each call, nil: none
	model     func(*scenario) (path, model string) // where it has a scenario's API and what it calls the model, nil: as the provider does
	peer      *way                                 // somebody else's product, set up like this, or nil
	admin     string                               // where a gateway serves profiles
	keys      []string                             // to present; each connection has one
	process   *exec.Cmd
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

// end ends the target's process.
func (t *target) end() {
	_ = t.process.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	_ = t.process.Wait()
}

// fleet is what has been started.
type fleet struct {
	dir       string
	providers [len(links)]*target // by the link over which they are called
	trust     *tls.Config         // of the certificate that all have
	ends      []func()            // of what is no target
	targets   []*target
	missing   []absent // products that could not be started
}

func (f *fleet) stop() {
	for _, t := range append(f.targets, f.providers[:]...) {
		if t == nil {
			continue
		}
		t.end()
	}
	for _, end := range f.ends {
		end()
	}
	_ = os.RemoveAll(f.dir)
}

// startTargets starts all that take turns: the provider, the bare proxy,
// nginx where there is one, and the gateway in all its ways.
func startTargets(o *options) (*fleet, error) {
	dir, err := os.MkdirTemp("", "modelgate-bench-")
	if err != nil {
		return nil, err
	}
	f := &fleet{dir: dir}
	if err := f.startAll(o); err != nil {
		f.stop()
		return nil, err
	}
	return f, nil
}

func (f *fleet) startAll(o *options) error {
	var err error
	if f.trust, err = makeCertificate(f.dir); err != nil {
		return err
	}
	for l, role := range [...]string{overPlain: "upstream", overTLS: "TLS upstream", overHTTP2: "HTTP/2 upstream"} {
		if f.providers[l], err = startSelf(nameDirect, role); err != nil {
			return err
		}
	}
	f.targets = append(f.targets, f.providers[overPlain], f.overTLS(*f.providers[overTLS]))
	if err := f.startProxies(o); err != nil {
		return err
	}
	gateways := []gateway{
		{name: nameInterval, binary: o.binary, fsync: "interval"},
		{name: nameAlways, binary: o.binary, fsync: "always"},
		{name: nameInterval, binary: o.binary, fsync: "interval", front: true},
		{name: nameUnbudgeted, binary: o.binary, fsync: "interval"},
		{name: nameRuled, binary: o.binary, fsync: "interval"},
		{name: nameLarge, binary: o.binary, fsync: "interval"},
	}
	if o.postgres && o.targets.MatchString(namePostgres) {
		database, end, err := testkit.StartPostgres()
		if err != nil {
			return err
		}
		f.ends = append(f.ends, end)
		gateways = append(gateways, gateway{name: namePostgres, binary: o.binary, fsync: "interval", database: database})
	}
	if o.ablate {
		const server, provider = ", http: standard", ", transport: standard"
		gateways = append(gateways,
			gateway{name: "modelgate, standard server", binary: o.binary, fsync: "interval", server: server},
			gateway{name: "modelgate, standard client", binary: o.binary, fsync: "interval", provider: provider},
			gateway{name: "modelgate, standard both", binary: o.binary, fsync: "interval", server: server, provider: provider})
	}
	if o.peers {
		f.missing = append(f.missing, f.startPeers(o.ways)...)
		gateways = gateways[:2]
	}
	for _, g := range append(gateways, o.others...) {
		if g.name == nameUnbudgeted && !o.unbudgeted || g.name == nameRuled && !o.ruled || g.name == nameLarge && !o.large || !o.targets.MatchString(g.name) {
			continue
		}
		if err := f.startGateway(g); err != nil {
			return err
		}
	}
	return nil
}

// overTLS is a target that clients call over TLS.
func (f *fleet) overTLS(t target) *target {
	t.certified = f.trust
	return &t
}

// startProxies starts what only forwards.
func (f *fleet) startProxies(o *options) error {
	var env []string
	for l, provider := range f.providers {
		env = append(env, upstreamVariable+strings.ToUpper(links[l])+"="+provider.address)
	}
	for _, role := range []string{"proxy", "TLS proxy"} {
		t, err := startSelf(nameProxy, role, env...)
		if err != nil {
			return err
		}
		t.forwards = true
		if role == "TLS proxy" {
			t = f.overTLS(*t)
		}
		f.targets = append(f.targets, t)
	}
	path, err := exec.LookPath("nginx")
	if err != nil || o.peers || !o.targets.MatchString(nameNginx) {
		return nil
	}
	return f.add(startNginx(program{path: path}, f.dir, f.providers))
}

// startGateway starts a gateway on a database of its own.
func (f *fleet) startGateway(g gateway) error {
	g.scale, g.providers = ordinary(), f.providers
	if g.name == nameLarge {
		g.scale = hundredfold()
	}
	g.scale.unlimited, g.scale.ruled = g.name == nameUnbudgeted, g.name == nameRuled
	g.dir = filepath.Join(f.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(g.name, " ", "-"), len(f.targets)))
	if g.front {
		g.server += fmt.Sprintf(", tls: {cert_file: %q, key_file: %q}", filepath.Join(f.dir, certificateFile), filepath.Join(f.dir, certificateKeyFile))
	}
	t, err := g.start()
	if err == nil && g.front {
		t = f.overTLS(*t)
	}
	return f.add(t, err)
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
  client_body_buffer_size 2m; client_max_body_size 20m; keepalive_requests 100000000;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 600s;
  upstream plain { server %[3]s; keepalive 1024; keepalive_requests 100000000; }
  upstream secure { server %[4]s; keepalive 1024; keepalive_requests 100000000; }
  server { listen %[2]s; location / { proxy_pass http://plain; } location /tls/ { proxy_pass https://secure/; } }
}
`

func startNginx(p program, dir string, providers [len(links)]*target) (*target, error) {
	dir = filepath.Join(dir, "nginx")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, dir, addr, providers[overPlain].address, providers[overTLS].address), 0o600); err != nil {
		return nil, err
	}
	cmd := p.command([]string{"-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log")})
	t := &target{name: nameNginx, forwards: true, onlyHTTP1: true, address: addr, keys: []string{"sk-bench"}, process: cmd}
	if err := startMeasured(cmd); err != nil {
		return nil, err
	}
	return t, awaitOK(addr, "/", 10*time.Second)
}

// awaitOK waits until a server answers with 200, for a while.
func awaitOK(addr, path string, patience time.Duration) error {
	client := http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
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
