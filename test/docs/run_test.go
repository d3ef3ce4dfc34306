package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"modelgate/internal/simulator"
	"modelgate/test/testkit"
)

// TestPages runs and checks every block of every page, and lists what became of
// each.
func TestPages(t *testing.T) {
	t.Parallel()
	pages := readPages(t)
	reports := make([][]string, len(pages))
	upstream := testkit.Upstream(t, simulator.Options{Name: "upstream", Credential: "sk-upstream"})
	t.Run("pages", func(t *testing.T) { // ends when all pages have
		for i, p := range pages {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				checkBlocks(t, p)
				reports[i] = p.report()
				if slices.ContainsFunc(p.blocks, (*block).runs) {
					newWorld(t, p, upstream.URL).run(t)
				}
			})
		}
	})
	t.Log("every block:\n" + strings.Join(slices.Concat(reports...), "\n"))
}

// report says of each block what is done with it, and why it is not run.
func (p *page) report() (lines []string) {
	for _, b := range p.blocks {
		var fate string
		switch {
		case b.notRun != "":
			fate = "not run: " + b.notRun
		case b.agent != "" && !*agents:
			fate = "not run: it starts " + b.agent + "; make test-agents runs it"
		case b.file != "":
			fate = "written to " + b.file
		case b.output:
			fate = "compared with the output of the block before"
		case b.runs():
			fate = "run"
		default:
			fate = "not run: " + readOnly[b.language]
		}
		lines = append(lines, fmt.Sprintf("%s:%d: %s: %s", p.name, b.line, b.language, fate))
	}
	return lines
}

// run runs the blocks of a page in one shell, and compares what they print with
// what the page shows.
func (w *world) run(t *testing.T) {
	t.Helper()
	script := filepath.Join(w.logs, "script")
	if err := os.WriteFile(script, []byte(w.script(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-eu", script)
	cmd.Env, cmd.Dir = w.env, w.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a page starts ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	_ = cmd.Cancel() // nothing is left, unless a page forgot it
	if err != nil {
		t.Errorf("%v, in the last of these blocks\n%s", err, w.tail())
		return
	}
	for i, b := range w.page.blocks {
		if !b.output && b.language != "console" {
			continue
		}
		shown, ran := b.text, i
		if b.output {
			ran = i - 1
		} else {
			_, shown = console(b.text)
		}
		if before := w.page.blocks[ran]; before.agent != "" && !*agents {
			continue
		}
		printed, err := os.ReadFile(w.log(ran))
		if err != nil {
			t.Errorf("line %d: no block before it ran: %v", b.line, err)
		} else if !matches(shown, w.disguise(string(printed))) {
			t.Errorf("line %d: the page shows\n%s\nand the command printed\n%s", b.line, shown, printed)
		}
	}
}

// script is the page as one shell script.
func (w *world) script(t *testing.T) string {
	var s strings.Builder
	s.WriteString("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	if w.needsGateway() {
		s.WriteString(w.inNewTerminal("modelgate dev", w.log(-1)))
	}
	for i, b := range w.page.blocks {
		text := w.localize(b.text)
		switch {
		case b.file != "":
			fmt.Fprintf(&s, "mkdir -p $(dirname %[1]s)\ncat >%[1]s <<'END-OF-FILE'\n%[2]sEND-OF-FILE\n", b.file, text)
			continue
		case !b.runs():
			continue
		case b.newTerminal:
			s.WriteString(w.inNewTerminal(text, w.log(i)))
			continue
		}
		fmt.Fprintf(&s, "exec >%s 2>&1\n", w.log(i))
		switch b.language {
		case "js":
			fmt.Fprintf(&s, "(cd '%s' && node --input-type=module <<'END-OF-SNIPPET'\n%sEND-OF-SNIPPET\n)\n", absolute(t, "test/sdk"), text)
		case "go":
			fmt.Fprintf(&s, "cat >snippet.go <<'END-OF-SNIPPET'\n%sEND-OF-SNIPPET\n(place=$PWD && cd '%s' && go run \"$place/snippet.go\")\n", text, absolute(t, "."))
		case "console":
			commands, _ := console(text)
			s.WriteString(commands)
		default:
			s.WriteString(text)
		}
	}
	if w.needsGateway() {
		s.WriteString(countsAll)
	}
	return s.String()
}

// countsAll fails a page on which the gateway did not find the usage of a call.
const countsAll = `exec >&2
curl --fail "$MODELGATE_URL/gw/usage?limit=100" -H "Authorization: Bearer $MODELGATE_KEY" >usage.json
! grep -F '"parse_status":"unknown"' usage.json || exit 1
`

// inNewTerminal starts a gateway beside the commands that follow, waits until
// it is ready, and exports its address and the key that it prints.
func (w *world) inNewTerminal(command, log string) string {
	return fmt.Sprintf(`(%s) >%s 2>&1 &
gateway=$!
until curl -fs -o /dev/null http://%s/readyz && MODELGATE_KEY=$(grep -om1 'gw_live_[A-Za-z0-9_-]*' %[2]s); do kill -0 $gateway; sleep 0.05; done
export MODELGATE_URL=http://%[3]s MODELGATE_KEY
`, strings.TrimSpace(w.localize(command)), log, w.address)
}

// console divides a block with a prompt into the commands and what they print.
func console(text string) (commands, output string) {
	continued := false
	for line := range strings.Lines(text) {
		command, prompt := strings.CutPrefix(line, "$ ")
		switch {
		case prompt:
			commands += command
		case continued:
			commands += line
		default:
			output += line
			continue
		}
		continued = strings.HasSuffix(line, "\\\n")
	}
	return commands, output
}

var space = regexp.MustCompile(`\s+`)

// matches says whether a command printed what the page shows. White space is
// not compared, and … on the page stands for anything.
func matches(shown, printed string) bool {
	parts := strings.Split(space.ReplaceAllString(shown, ""), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	pattern := regexp.MustCompile("^(?s:" + strings.Join(parts, ".*") + ")$")
	return pattern.MatchString(space.ReplaceAllString(printed, ""))
}

// tail is the end of what the last blocks printed.
func (w *world) tail() string {
	var text strings.Builder
	for i := range w.page.blocks {
		printed, err := os.ReadFile(w.log(i))
		if err != nil {
			continue // not reached, or not run
		}
		fmt.Fprintf(&text, "line %d:\n%s\n", w.page.blocks[i].line, printed)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

func TestConsole(t *testing.T) {
	t.Parallel()
	commands, output := console("$ echo \\\n  a\na\n$ echo b\nb\n")
	if commands != "echo \\\n  a\necho b\n" || output != "a\nb\n" {
		t.Errorf("commands %q, output %q", commands, output)
	}
	for shown, want := range map[string]bool{"{\"id\": …, \"n\": 1}": true, "{\"id\": \"x\"": false, "…": true, "": false} {
		if matches(shown, "{\"id\":\"y\",\n\"n\":1}\n") != want {
			t.Errorf("%q: matches is %v", shown, !want)
		}
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
