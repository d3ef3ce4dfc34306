package cli

import (
	"fmt"
	"io"
	"net"
	"path/filepath"

	"modelgate/internal/server"
)

// keyVariable holds the key in everything that dev prints and in the guides.
const keyVariable = "MODELGATE_KEY"

// greeting is what dev tells a newcomer.
type greeting struct {
	URL       string `json:"url"`
	Dashboard string `json:"dashboard"`
	Models    int    `json:"models"`
	Data      string `json:"data"`
	// Config is a configuration file for the operator's commands.
	Config string `json:"config"`
	Client string `json:"client"`
	// Key is the key of the organization, "" where it was shown at an earlier start.
	Key string `json:"key,omitempty"`
}

// greet tells a newcomer what there is and what to try.
func (d *dev) greet(addr net.Addr, key string, models int) error {
	if !server.Loopback(addr.String()) {
		fmt.Fprintf(d.app.Stderr, "\nWARNING: dev listens on %s, which other machines can reach. It is made for trying things out:\nits key is printed below and its providers are simulated. Use `modelgate serve` for anything else.\n", addr)
	}
	base, data := "http://"+addr.String(), d.data
	if absolute, err := filepath.Abs(d.data); err == nil {
		data = absolute
	}
	g := greeting{base, base + "/dashboard", models, data, d.configPath(), demoName, key}
	return (&output{app: d.app}).value(g, func(w io.Writer) { g.text(w, d.app.program()) })
}

// text is the greeting in words. Its commands work as they are pasted.
func (g *greeting) text(w io.Writer, program string) {
	fmt.Fprintf(w, "\nModelgate is listening on %s with %d models.\nKeys and books are in %s. Ctrl-C stops it.\n", g.URL, g.Models, g.Data)
	later := fmt.Sprintf(`  %[1]s key list --config %[2]s --client %[3]s     # the keys there are, without their secrets
  %[1]s key issue --config %[2]s --client %[3]s    # another one
`, program, quoted(g.Config), g.Client)
	if g.Key == "" {
		fmt.Fprintf(w, "\nThe key of organization %s was shown at the first start. In another terminal:\n\n%s\n", g.Client, later)
		return
	}
	fmt.Fprintf(w, `
The key of organization %s, shown only now. In another terminal:

  export %s=%s

Try it:

  curl %s/v1/chat/completions \
    -H "Authorization: Bearer $%s" \
    -H "Content-Type: application/json" \
    -d '{"model":"simulated/chat","messages":[{"role":"user","content":"Hello, gateway"}]}'

  curl %s/gw/usage -H "Authorization: Bearer $%s"

The dashboard, which you sign in to with the key:

  %s

OpenAI SDK (Python):

  import os
  from openai import OpenAI
  client = OpenAI(base_url="%s/v1", api_key=os.environ["%s"])
  client.chat.completions.create(model="simulated/chat", messages=[{"role": "user", "content": "Hello, gateway"}])

Anthropic SDK (Python):

  import os
  from anthropic import Anthropic
  client = Anthropic(base_url="%s", api_key=os.environ["%s"])
  client.messages.create(model="simulated/claude", max_tokens=100, messages=[{"role": "user", "content": "Hello, gateway"}])

Keys, later:

%s
`, g.Client, keyVariable, g.Key, g.URL, keyVariable, g.URL, keyVariable, g.Dashboard, g.URL, keyVariable, g.URL, keyVariable, later)
}
