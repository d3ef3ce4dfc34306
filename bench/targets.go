package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// roleVariable makes a child process of this program one of the servers.
const (
	roleVariable     = "MODELGATE_BENCH_ROLE"
	upstreamVariable = "MODELGATE_BENCH_UPSTREAM"
)

// target is something that answers chat completions.
type target struct {
	name    string
	address string
	model   string
	key     string
	process *exec.Cmd
}

// request is the bytes of one call.
func (t *target) request(sc scenario) []byte {
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":%q}]}`, t.model, sc.Stream, strings.Repeat("word ", sc.Body/5))
	if sc.Stream {
		body = strings.Replace(body, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nUser-Agent: OpenAI/Go 3.95.0\r\nContent-Length: %d\r\n\r\n%s",
		t.address, t.key, len(body), body)
	return b.Bytes()
}

// cpu is the processor time the target's process has used so far.
func (t *target) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", t.process.Process.Pid))
	if err != nil {
		return psTime(t.process.Process.Pid)
	}
	// The name, in parentheses, may hold spaces; utime and stime are the 12th
	// and 13th fields behind it, in ticks of 10 ms.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	ticks := 0
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// psTime asks ps where there is no /proc.
func psTime(pid int) (time.Duration, error) {
	out, err := exec.Command("ps", "-o", "time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, err
	}
	minutes, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), ":")
	m, err1 := strconv.Atoi(minutes)
	s, err2 := strconv.ParseFloat(seconds, 64)
	return time.Duration(m)*time.Minute + time.Duration(s*float64(time.Second)), errors.Join(err1, err2)
}

// startTargets starts the provider, the bare proxy and the gateway with both
// ways of syncing.
func startTargets(o options) ([]*target, func(), error) {
	dir, err := os.MkdirTemp("", "modelgate-bench-")
	if err != nil {
		return nil, nil, err
	}
	var started []*target
	stop := func() {
		for _, t := range started {
			_ = t.process.Process.Signal(os.Interrupt) // it may have ended by itself
			_ = t.process.Wait()
		}
		_ = os.RemoveAll(dir)
	}
	add := func(t *target, err error) error {
		if err == nil {
			started = append(started, t)
		}
		return err
	}
	err = add(startSelf("direct", "upstream", ""))
	if err == nil {
		err = add(startSelf("bare proxy", "proxy", started[0].address))
	}
	for _, fsync := range []string{"interval", "always"} {
		if err == nil {
			err = add(startGateway(o, filepath.Join(dir, fsync), fsync, started[0].address))
		}
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return started, stop, nil
}

// startSelf starts a server of this program in a process of its own.
func startSelf(name, role, upstream string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, upstreamVariable+"="+upstream)
	return started(&target{name: name, model: "sim-chat", key: "sk-bench", process: cmd})
}

var address = regexp.MustCompile(`"?addr"?[=:]"?(127\.0\.0\.1:\d+)`)

// started starts the process and waits for the line that says where it
// listens.
func started(t *target) (*target, error) {
	lines, err := t.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := t.process.Start(); err != nil {
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

const gatewayConfig = `server: {listen: "127.0.0.1:0", data_dir: %q}
database: {url: "sqlite:modelgate.db"}
limits: {requests_per_second: 0, concurrency: 0}
metering: {fsync: %s}
log: {format: text}
providers:
  - {name: openai, format: openai, base_url: "http://%s", credential: sk-bench}
catalog:
  - {slug: bench/chat, kind: llm, context_length: 128000, routes: [{provider: openai, model: sim-chat}], price: {input: 1, cached_input: 0.1, output: 2}}
`

// startGateway starts Modelgate on a database of its own, with one key.
func startGateway(o options, dir, fsync, upstream string) (*target, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "modelgate.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, gatewayConfig, dir, fsync, upstream), 0o600); err != nil {
		return nil, err
	}
	var client struct {
		ID string `json:"id"`
	}
	if err := operate(o, &client, "client", "create", "--config", file, "--name", "bench"); err != nil {
		return nil, err
	}
	var key struct {
		Key string `json:"key"`
	}
	if err := operate(o, &key, "key", "issue", "--config", file, "--client", client.ID); err != nil {
		return nil, err
	}
	cmd := exec.Command(o.binary, "serve", "--config", file)
	return started(&target{name: "modelgate, fsync " + fsync, model: "bench/chat", key: key.Key, process: cmd})
}

func operate(o options, into any, args ...string) error {
	cmd := exec.Command(o.binary, append(args, "--json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return json.Unmarshal(out, into)
}

// serveRole is what a child process does.
func serveRole(role string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "addr=%s\n", listener.Addr())
	if role == "upstream" {
		return serveUpstream(listener)
	}
	return http.Serve(listener, bareProxy(os.Getenv(upstreamVariable)))
}

// bareProxy is the yardstick: the standard library's reverse proxy with a
// tuned transport, and nothing else.
func bareProxy(upstream string) http.Handler {
	to := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		BufferPool:    &pool{free: make(chan []byte, 512)},
		Transport: &http.Transport{
			MaxIdleConns: 8192, MaxIdleConnsPerHost: 2048, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
		},
	}
}

type pool struct{ free chan []byte }

func (p *pool) Get() []byte {
	select {
	case b := <-p.free:
		return b
	default:
		return make([]byte, 16<<10)
	}
}

func (p *pool) Put(b []byte) {
	select {
	case p.free <- b:
	default:
	}
}
