package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"

	"modelgate"
	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

const composeFolder = "../../deploy/compose/"

// documentedVariables are what .env holds once somebody has pasted the block of
// the installation guide.
func documentedVariables(t *testing.T) map[string]string {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/install.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)cat >\.env (<<END\n.*?\nEND\n)`).FindSubmatch(guide)
	if block == nil {
		t.Fatal("the guide writes no .env")
	}
	text, err := exec.Command("sh", "-c", "cat "+string(block[1])).Output()
	if err != nil {
		t.Fatal(err)
	}
	vars := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		vars[name] = strings.ReplaceAll(value, "sk-…", "sk-upstream")
	}
	return vars
}

// composeEnvironment is the environment that the compose file gives to an
// instance, and nothing else.
func composeEnvironment(t *testing.T, vars map[string]string) (env []string) {
	t.Helper()
	text, err := os.ReadFile(composeFolder + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Modelgate struct {
			Environment map[string]string `yaml:"environment"`
		} `yaml:"x-modelgate"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	demanded := regexp.MustCompile(`^\$\{(\w+):\?.+\}$`)
	for name, value := range file.Modelgate.Environment {
		m := demanded.FindStringSubmatch(value)
		if m == nil || vars[m[1]] == "" {
			t.Fatalf("%s: %s is not demanded, or the guide does not set it", name, value)
		}
		env = append(env, name+"="+vars[m[1]])
	}
	return env
}

// composeInstance starts an instance with the configuration of the compose file.
// Only where databases, provider and ports are is another matter here.
func composeInstance(t *testing.T, env []string, places map[string]string) (address, config string) {
	t.Helper()
	text, err := os.ReadFile(composeFolder + "modelgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	places["/data"] = t.TempDir()
	for there, here := range places {
		if !strings.Contains(string(text), there) {
			t.Fatalf("the configuration has no %s", there)
		}
		text = []byte(strings.ReplaceAll(string(text), there, here))
	}
	config = filepath.Join(t.TempDir(), "modelgate.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testkit.Binary(t), "serve", "--config", config)
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	})
	lines, log := bufio.NewScanner(stderr), ""
	for lines.Scan() {
		log += lines.Text() + "\n"
		var line struct{ Msg, Addr string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			go func() {
				for lines.Scan() { // keep the pipe empty
				}
			}()
			if strings.Contains(log, `"WARN"`) || strings.Contains(log, "warning:") {
				t.Errorf("the compose file as documented starts with warnings:\n%s", log)
			}
			return "http://" + line.Addr, config
		}
	}
	t.Fatalf("the gateway ended:\n%s", log)
	return "", ""
}

// TestComposeAsDocumented starts the two instances of the compose file with what
// the installation guide sets, makes a call, signs in at one and is signed in at
// the other, and stores a secret under the master key.
func TestComposeAsDocumented(t *testing.T) {
	t.Parallel()
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream"})
	database, err := url.Parse(testkit.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	env := composeEnvironment(t, documentedVariables(t))
	redis := testkit.Redis(t)
	places := func() map[string]string {
		return map[string]string{
			"0.0.0.0:8080": "127.0.0.1:0", "0.0.0.0:9464": "127.0.0.1:0", "https://api.openai.com": upstream.URL,
			"postgres://modelgate:${MODELGATE_POSTGRES_PASSWORD}@postgres:5432/modelgate?sslmode=disable": database.String(),
			"redis://redis:6379/0": redis,
		}
	}
	first, config := composeInstance(t, env, places())
	second, _ := composeInstance(t, env, places())

	command := func(into any, args ...string) {
		t.Helper()
		stdout, stderr, code := testkit.RunBinary(t, env, append(args, "--config", config, "--json")...)
		if err := json.Unmarshal([]byte(stdout), into); err != nil || code != 0 {
			t.Fatalf("%v: exit %d, %v\n%s%s", args, code, err, stdout, stderr)
		}
	}
	var client modelgate.Client
	command(&client, "client", "create", "--name", "acme")
	var key modelgate.IssuedKey
	command(&key, "key", "issue", "--client", string(client.ID))

	bearer := []string{"Authorization", "Bearer " + key.Key}
	onFirst, onSecond := newBrowser(t, first), newBrowser(t, second)
	onFirst.want(200, "POST /v1/chat/completions", `{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"hello"}]}`, bearer...)
	cookie := []string{"Cookie", cookieOf(t, first, "/dashboard", key.Key)}
	onFirst.want(200, "GET /dashboard/gw/me", "", cookie...)
	onSecond.want(200, "GET /dashboard/gw/me", "", cookie...)
	onFirst.want(204, "PUT /gw/processor/config", `{"enabled":false,"api_key":"sk_test_mine"}`, bearer...)
	if got := onSecond.want(200, "GET /gw/processor/config", "", bearer...); !strings.Contains(string(got), `"configured":true`) {
		t.Errorf("the secret stored at the other instance: %s", got)
	}
}

// TestMissingProviderKeyIsSaidAtStart runs without a provider's key, and names the
// variable before a call fails.
func TestMissingProviderKeyIsSaidAtStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value, want string
		env         []string
	}{
		"empty":   {"${MY_KEY}", "has no credential: the environment variable MY_KEY is empty or not set; calls will fail with 500", []string{"MY_KEY="}},
		"default": {"${MY_KEY:-}", "has no credential: the environment variable MY_KEY is empty or not set; calls will fail with 500", nil},
	} {
		g := testkit.StartGateway(t, testkit.GatewayOptions{
			Env:       tt.env,
			Providers: fmt.Sprintf("\n  - {name: openai, format: openai, base_url: \"http://127.0.0.1:1\", region: us, credential: %q}", tt.value),
			Catalog:   "\n  - {slug: openai/gpt-5-mini, kind: llm, routes: [{provider: openai, model: gpt-5-mini}]}",
		})
		if log := g.Log(); !strings.Contains(log, tt.want) {
			t.Errorf("%s: the log says nothing of MY_KEY:\n%s", name, log)
		}
	}
	file := filepath.Join(t.TempDir(), "modelgate.yaml")
	text := "server: {data_dir: ., listen: \"127.0.0.1:0\"}\nproviders:\n  - {name: openai, format: openai, base_url: \"http://127.0.0.1:1\", region: us, credential: \"${MY_KEY}\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := testkit.RunBinary(t, []string{"PATH=/usr/bin"}, "serve", "--config", file)
	if code != 1 || !strings.Contains(stderr, "environment variable MY_KEY is not set; set it") {
		t.Errorf("unset: exit %d: %s", code, stderr)
	}
}
