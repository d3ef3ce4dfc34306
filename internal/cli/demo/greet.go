package demo

import (
	"fmt"
	"io"
)

// keyVariable holds the key in everything that dev prints and in the guides.
const keyVariable = "MODELGATE_KEY"

// Greeting is what dev tells a newcomer.
type Greeting struct {
	URL       string `json:"url"`
	Dashboard string `json:"dashboard"`
	// Console is a link to the operator's console that is good once, "" without one.
	Console string `json:"console,omitempty"`
	Models  int    `json:"models"`
	Data    string `json:"data"`
	// Config is a configuration file for the operator's commands.
	Config string `json:"config"`
	Client string `json:"client"`
	// Key is the key of the organization, "" where it was shown at an earlier start.
	Key string `json:"key,omitempty"`
}

// Text is the greeting in words. Its commands work as they are pasted: program and
// config are spelled for a shell.
func (g *Greeting) Text(w io.Writer, program, config string) {
	fmt.Fprintf(w, "\nModelgate is listening on %s with %d models.\nKeys and books are in %s. Ctrl-C stops it.\n", g.URL, g.Models, g.Data)
	if g.Console != "" {
		fmt.Fprintf(w, "\nThe operator's console, by a link that is good once, within 5 minutes:\n\n  %s\n", g.Console)
	}
	later := fmt.Sprintf(`  %[1]s key list --config %[2]s --client %[3]s     # the keys there are, without their secrets
  %[1]s operator link --config %[2]s               # another link to the console
  %[1]s key issue --config %[2]s --client %[3]s    # another one
`, program, config, g.Client)
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
