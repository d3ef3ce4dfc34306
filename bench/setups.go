package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// peerDir is a new folder for a product's files, and where it is to listen.
func (f *fleet) peerDir(name string) (dir, addr, port string, err error) {
	dir = filepath.Join(f.dir, strings.ReplaceAll(name, " ", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", "", err
	}
	addr, err = freeAddress()
	_, port, _ = strings.Cut(addr, ":")
	return dir, addr, port, err
}

// base is the base URL of the provider over a link.
func (f *fleet) base(l link) string {
	if l == overPlain {
		return "http://" + f.providers[l].address
	}
	return "https://" + f.providers[l].address
}

const haproxyConfig = `global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend front
  bind %s
  use_backend secure if { path_beg /tls/ }
  default_backend plain
backend plain
  server provider %s
backend secure
  http-request replace-path /tls(/.*) \1
  server provider %s ssl verify none
`

func startHAProxy(f *fleet, p program) (*target, error) {
	dir, addr, _, err := f.peerDir("haproxy")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, addr, f.providers[overPlain].address, f.providers[overTLS].address), 0o600); err != nil {
		return nil, err
	}
	return startPeer(&target{forwards: true, address: addr, process: p.command([]string{"-db", "-f", file})}, dir, "/")
}

const envoyConfig = `static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: bench
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {match: {prefix: "/tls/"}, route: {cluster: secure, prefix_rewrite: "/", timeout: 0s}}
              - {match: {prefix: "/"}, route: {cluster: plain, timeout: 0s}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: plain
    load_assignment: {cluster_name: plain, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}
  - name: secure
    load_assignment: {cluster_name: secure, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}
    transport_socket:
      name: envoy.transport_sockets.tls
      typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}
`

func startEnvoy(f *fleet, p program) (*target, error) {
	dir, addr, port, err := f.peerDir("envoy")
	if err != nil {
		return nil, err
	}
	_, plain, _ := strings.Cut(f.providers[overPlain].address, ":")
	_, secure, _ := strings.Cut(f.providers[overTLS].address, ":")
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, envoyConfig, port, plain, secure), 0o600); err != nil {
		return nil, err
	}
	cmd := p.command([]string{"-c", file, "--concurrency", "1", "--log-level", "error"})
	return startPeer(&target{forwards: true, address: addr, process: cmd}, dir, "/")
}

// startPortkey: a call's header says where it goes.
func startPortkey(f *fleet, p program) (*target, error) {
	dir, addr, port, err := f.peerDir("portkey")
	if err != nil {
		return nil, err
	}
	cmd := p.command([]string{"--port=" + port, "--headless"}, "NODE_ENV=production", "NODE_EXTRA_CA_CERTS="+filepath.Join(f.dir, certificateFile))
	header := func(sc *scenario) string {
		provider := "openai"
		if sc.API == apiMessages {
			provider = "anthropic"
		}
		return fmt.Sprintf("x-portkey-provider: %s\r\nx-portkey-custom-host: %s/v1\r\n", provider, f.base(sc.Link))
	}
	return startPeer(&target{address: addr, header: header, process: cmd}, dir, "/")
}

// prefixed are models with the name of a provider in front: openai, and tls for
// the one over TLS.
func prefixed(l link, model string) string {
	if l == overTLS {
		return "tls/" + model
	}
	return "openai/" + model
}

// usual is where most products have a scenario's API, and a prefixed model.
func usual(sc *scenario) (path, model string) {
	return apiPaths[sc.API], prefixed(sc.Link, sc.Model)
}

// bifrosts is the same with the path of its own that Bifrost has for one API.
func bifrosts(sc *scenario) (path, model string) {
	path, model = usual(sc)
	if sc.API == apiMessages {
		path = "/anthropic" + path
	}
	return path, model
}

// startBifrost configures it by a file. With its keys and logs on, both have
// SQLite databases, as they have by default.
func startBifrost(on bool) func(*fleet, program) (*target, error) {
	return func(f *fleet, p program) (*target, error) {
		dir, addr, port, err := f.peerDir(fmt.Sprintf("bifrost-%t", on))
		if err != nil {
			return nil, err
		}
		type object = map[string]any
		key := []object{{"name": "bench", "value": "sk-bench", "models": []string{"*"}, "weight": 1}}
		network := func(l link) object { return object{"base_url": f.base(l), "allow_private_network": true} }
		config := object{
			"client": object{"enable_logging": on, "enforce_auth_on_inference": on, "drop_excess_requests": false, "initial_pool_size": 300},
			"providers": object{
				"openai": object{"keys": key, "network_config": network(overPlain)},
				"tls":    object{"keys": key, "network_config": network(overTLS), "custom_provider_config": object{"base_provider_type": "openai"}},
			},
			"config_store": object{"enabled": on, "type": "sqlite", "config": object{"path": filepath.Join(dir, "config.db")}},
			"logs_store":   object{"enabled": on, "type": "sqlite", "config": object{"path": filepath.Join(dir, "logs.db")}},
		}
		const secret = "sk-bf-bench"
		if on {
			allowed := func(provider string) object {
				return object{"provider": provider, "allowed_models": []string{"*"}, "key_ids": []string{"*"}, "weight": 1}
			}
			config["governance"] = object{
				"budgets":     []object{{"id": "budget", "max_limit": 1e9, "reset_duration": "1M", "virtual_key_id": "bench"}},
				"rate_limits": []object{{"id": "limit", "request_max_limit": 1_000_000_000, "request_reset_duration": "1h"}},
				"virtual_keys": []object{{"id": "bench", "name": "bench", "value": secret, "is_active": true, "rate_limit_id": "limit",
					"provider_configs": []object{allowed("openai"), allowed("tls")}}},
			}
		}
		text, err := json.Marshal(config)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600); err != nil {
			return nil, err
		}
		cmd := p.command([]string{"-host", "127.0.0.1", "-port", port, "-app-dir", dir, "-log-level", "error"})
		return startPeer(&target{address: addr, model: bifrosts, keys: []string{secret}, process: cmd}, dir, "/health")
	}
}

const gomodelConfig = `server: {port: "%s", master_key: "%s"}
models: {configured_provider_models_mode: allowlist}
storage: {type: sqlite, sqlite: {path: %s}}
logging: {enabled: %[4]t}
usage: {enabled: %[4]t}
resilience: {retry: {max_retries: 0}, circuit_breaker: {enabled: false}}
version_check: {enabled: false}
cache: {model: {model_list: {url: ""}}}
providers:
  openai: {type: openai, api_key: sk-bench, base_url: "%[5]s/v1", models: [%[7]s]}
  tls: {type: openai, api_key: sk-bench, base_url: "%[6]s/v1", models: [%[7]s]}
`

// startGoModel configures it by a file. Retries and the circuit breaker are off,
// as in its makers' own benchmark.
func startGoModel(on bool) func(*fleet, program) (*target, error) {
	return func(f *fleet, p program) (*target, error) {
		dir, addr, port, err := f.peerDir(fmt.Sprintf("gomodel-%t", on))
		if err != nil {
			return nil, err
		}
		master := ""
		if on {
			master = "sk-bench"
		}
		if err := os.Mkdir(filepath.Join(dir, "config"), 0o755); err != nil {
			return nil, err
		}
		text := fmt.Sprintf(gomodelConfig, port, master, filepath.Join(dir, "gomodel.db"), on, f.base(overPlain), f.base(overTLS), strings.Join(models[:], ", "))
		if err := os.WriteFile(filepath.Join(dir, "config", "config.yaml"), []byte(text), 0o600); err != nil {
			return nil, err
		}
		return startPeer(&target{address: addr, model: usual, process: p.command(nil)}, dir, "/health")
	}
}

func startLiteLLM(f *fleet, p program) (*target, error) {
	dir, addr, port, err := f.peerDir("litellm")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("general_settings: {master_key: sk-bench}\nmodel_list:\n")
	for _, l := range []link{overPlain, overTLS} {
		for _, m := range models {
			fmt.Fprintf(&b, "  - {model_name: %s, litellm_params: {model: openai/%s, api_base: %q, api_key: sk-bench}}\n", prefixed(l, m), m, f.base(l)+"/v1")
		}
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	cmd := p.command([]string{"--config", file, "--host", "127.0.0.1", "--port", port, "--num_workers", "1"})
	return startPeer(&target{address: addr, model: usual, process: cmd}, dir, "/health/liveliness")
}
