package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"modelgate/test/testkit"
)

// startDev runs `modelgate dev` until the test ends or stop is called, and
// returns what it printed up to the line that it listens.
func startDev(t *testing.T, data string, env ...string) (printed string, stop func()) {
	t.Helper()
	return startDevWithConsole(t, data, "127.0.0.1:0", env...)
}

// startDevWithConsole is startDev with the operator's console at an address.
func startDevWithConsole(t *testing.T, data, console string, env ...string) (printed string, stop func()) {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), "dev", "--data", data, "--listen", "127.0.0.1:0", "--operator-listen", console)
	cmd.Env = append(os.Environ(), env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Errorf("dev ended with %v", err)
			}
		}
	}
	t.Cleanup(stop)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); { // keep the pipe empty
		}
	}()
	var b strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		b.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), " key issue --config ") {
			break
		}
	}
	return b.String(), stop
}

// TestNewcomer starts dev, pastes its curl calls into a shell, starts it
// again and finds key and books kept.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	first, stop := startDev(t, data)
	key := regexp.MustCompile(`gw_live_[0-9a-f]{48}`).FindString(first)
	if key == "" || !strings.Contains(first, data) {
		t.Fatalf("the first start printed\n%s", first)
	}
	calls := regexp.MustCompile(`(?m)^  (curl (?:.*\\\n)*.*)$`).FindAllStringSubmatch(first, -1)
	if len(calls) != 2 {
		t.Fatalf("%d curl calls in\n%s", len(calls), first)
	}
	export := regexp.MustCompile(`(?m)^  (export MODELGATE_KEY=gw_live_[0-9a-f]{48})$`).FindStringSubmatch(first)
	if export == nil {
		t.Fatalf("nothing exports the key in\n%s", first)
	}
	for i, want := range []string{"Hello, gateway", `"model_slug":"simulated/chat"`} {
		out, err := exec.Command("sh", "-c", export[1]+"\n"+strings.Replace(calls[i][1], "curl ", "curl -sS ", 1)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("%s\n%v: %s", calls[i][1], err, out)
		}
	}
	processor := func(printed, method, body string) string {
		base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(printed)
		out, err := exec.Command("curl", "-sS", "-X", method, base+"/gw/processor/config", "-H", "Authorization: Bearer "+key, "-d", body).CombinedOutput()
		if err != nil {
			t.Errorf("%v", err)
		}
		return string(out)
	}
	if got := processor(first, "PUT", `{"enabled":false,"api_key":"sk_test_mine"}`); got != "" {
		t.Errorf("leaving a processor's key: %s", got)
	}
	master, err := os.ReadFile(filepath.Join(data, "master.key"))
	if err != nil {
		t.Error(err)
	}
	link := regexp.MustCompile(`(?m)^  (http://\S+)/operator/link#(gw_op_\S+)$`).FindStringSubmatch(first)
	if link == nil {
		t.Fatalf("no link to the console in\n%s", first)
	}
	for _, want := range []string{`"role":"admin"`, "was used or has expired"} {
		out, err := exec.Command("curl", "-sS", link[1]+"/operator/session", "-d", `{"token":"`+link[2]+`"}`).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("opening the console: %v %s, want %s", err, out, want)
		}
	}
	stop()

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	second, _ := startDevWithConsole(t, data, taken.Addr().String())
	if strings.Contains(second, "/operator/link") || strings.Contains(second, "gw_live_") || !strings.Contains(second, " key issue --config") {
		t.Errorf("the second start printed\n%s", second)
	}
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(second)
	out, err := exec.Command("curl", "-sS", base+"/gw/usage", "-H", "Authorization: Bearer "+key).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"model_slug":"simulated/chat"`) {
		t.Errorf("the books after a restart: %v %s", err, out)
	}
	kept, err := os.ReadFile(filepath.Join(data, "master.key"))
	if got := processor(second, "GET", ""); err != nil || string(kept) != string(master) || !strings.Contains(got, `"configured":true`) {
		t.Errorf("the processor's key after a restart: %v %s", err, got)
	}
}

// TestRealProvidersJoin lists the starter catalog of the providers whose keys
// are in the environment.
func TestRealProvidersJoin(t *testing.T) {
	t.Parallel()
	printed, _ := startDev(t, filepath.Join(t.TempDir(), "data"), "OPENAI_API_KEY=sk-none", "ANTHROPIC_API_KEY=", "GEMINI_API_KEY=",
		"AWS_BEARER_TOKEN_BEDROCK=none", "AWS_REGION=eu-central-1")
	key := regexp.MustCompile(`gw_live_[0-9a-f]{48}`).FindString(printed)
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(printed)
	out, err := exec.Command("curl", "-sS", base+"/v1/models", "-H", "Authorization: Bearer "+key).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"openai/`) || strings.Contains(string(out), `"anthropic/`) || !strings.Contains(string(out), `"simulated/chat"`) || !strings.Contains(string(out), `"amazon/`) {
		t.Errorf("%v %s", err, out)
	}
	// A key without a region names no host, and an identity is never used.
	printed, _ = startDev(t, filepath.Join(t.TempDir(), "data"), "AWS_BEARER_TOKEN_BEDROCK=none", "AWS_REGION=", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret")
	key = regexp.MustCompile(`gw_live_[0-9a-f]{48}`).FindString(printed)
	base = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(printed)
	out, err = exec.Command("curl", "-sS", base+"/v1/models", "-H", "Authorization: Bearer "+key).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"simulated/bedrock"`) || strings.Contains(string(out), `"amazon/`) {
		t.Errorf("%v %s", err, out)
	}
}
