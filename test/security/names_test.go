package security

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestMetadataBehindAName lets the name of a provider lead elsewhere while
// the gateway runs: to a cloud's metadata service, which would answer with the
// machine's own credentials. The address that is connected to decides, not the
// name. Names are those of a hosts file that the gateway alone sees.
func TestMetadataBehindAName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosts, script := filepath.Join(dir, "hosts"), filepath.Join(dir, "own-hosts")
	private := ""
	for _, flags := range []string{"-m", "-rm"} {
		if exec.Command("unshare", flags, "mount", "--bind", "/dev/null", "/etc/hosts").Run() == nil {
			private = flags
			break
		}
	}
	if private == "" {
		t.Skip("no hosts file of its own for a process: unshare and mount --bind are not permitted here")
	}
	name := func(address string) {
		if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+address+" moving.test\n169.254.169.254 aws.test\nfd00:ec2::254 six.test\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	name("127.0.0.1")
	run := fmt.Sprintf("#!/bin/sh\nexec unshare %s sh -c 'mount --bind %s /etc/hosts && exec %s \"$@\"' sh \"$@\"\n", private, hosts, testkit.Binary(t))
	if err := os.WriteFile(script, []byte(run), 0o700); err != nil {
		t.Fatal(err)
	}
	h := &hostile{corners: map[string]*corner{}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	port := server.URL[strings.LastIndexByte(server.URL, ':'):]
	g := testkit.StartGateway(t, testkit.GatewayOptions{Binary: script, Upstream: server.URL, Catalog: " []", Providers: `
  - {name: moving, format: openai, base_url: "http://moving.test` + port + `/moving", region: us, credential: sk-upstream}
  - {name: aws, format: openai, base_url: "http://aws.test", region: us, credential: sk-upstream}
  - {name: six, format: openai, base_url: "http://six.test", region: us, credential: sk-upstream, http2: true}`})
	key, _ := g.NewKey(g.NewClient("names"))
	call := func(provider string) answer {
		return ask(t, g.URL, key, "POST", "/"+provider+"/v1/chat/completions", chat("m"))
	}
	refused := func() int { return strings.Count(g.Log(), "address of a cloud metadata service") }
	for i, provider := range []string{"aws", "six"} {
		if a := call(provider); a.StatusCode != 502 {
			t.Errorf("%s: %s", provider, a)
		}
		eventually(t, provider+" is refused by its address", patience, func() bool { return refused() == i+1 })
	}
	if a := call("moving"); a.StatusCode != 200 || a.body != plainReply {
		t.Fatalf("while the name is the provider's: %s", a)
	}
	name("169.254.169.254")
	h.corner("moving").take()
	// Connections that are kept lead where the name led; names are read again
	// after five seconds.
	eventually(t, "the name is read again", patience, func() bool {
		server.CloseClientConnections()
		time.Sleep(200 * time.Millisecond)
		a := call("moving")
		return a.StatusCode == 502 && refused() >= 3
	})
}
