//go:build linux

package testkit

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// ReverseProxy is a program that people put in front of a gateway.
type ReverseProxy struct {
	Name   string
	config string // its address, that of the gateway, its folder
	args   func(file string) []string
}

// ReverseProxies are nginx and HAProxy, which tell the gateway who asks as their
// manuals have it: nginx adds to the line of X-Forwarded-For, HAProxy adds a line.
func ReverseProxies() []ReverseProxy {
	return []ReverseProxy{
		{"nginx", `daemon off; master_process off; pid %[3]s/pid; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[3]s/1; proxy_temp_path %[3]s/2; fastcgi_temp_path %[3]s/3; uwsgi_temp_path %[3]s/4; scgi_temp_path %[3]s/5;
  server {
    listen %[1]s;
    location / {
      proxy_pass http://%[2]s;
      proxy_buffering off;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`, func(file string) []string { return []string{"-c", file, "-e", "stderr"} }},
		{"haproxy", `defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  option forwardfor
frontend clients
  bind %[1]s
  http-request set-header X-Forwarded-Proto http
  default_backend gateway
backend gateway
  server one %[2]s # %[3]s
`, func(file string) []string { return []string{"-db", "-f", file} }},
	}
}

// Start starts the proxy in front of an address, host:port, and returns its own
// address. It ends with the test.
func (p ReverseProxy) Start(t testing.TB, backend string) string {
	t.Helper()
	notShort(t)
	path := findProgram(p.Name, "/usr/sbin", "/usr/local/sbin")
	if path == "" {
		t.Fatalf("this test needs %s; scripts/deps installs it", p.Name)
	}
	address := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	server, err := program{
		name: p.Name,
		command: func(dir string, port int) ([]string, error) {
			file := filepath.Join(dir, "config")
			return append([]string{path}, p.args(file)...), os.WriteFile(file, fmt.Appendf(nil, p.config, address(port), backend, dir), 0o600)
		},
		ready: func(_ string, port int) error {
			resp, err := http.Get("http://" + address(port) + "/healthz")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("the gateway behind it answers %s", resp.Status)
			}
			return nil
		},
	}.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	return address(server.port)
}
