package arch

import (
	"fmt"
	"path"
	"testing"
)

// maxPackageLines is how many lines a package may have, its tests aside: one
// person should be able to hold it in mind.
const maxPackageLines = 3500

// larger lists packages that are still to be split, with what they may have at
// most. Lower the figure with every part that moves out.
var larger = map[string]int{
	"internal/provider": 4600,
	"internal/store":    9500,
}

// retired are package names that said nothing to a reader from the field, and
// what they are called now.
var retired = map[string]string{
	"relay": "gateway", "manage": "selfservice", "pages": "dashboard", "web": "httpx", "work": "worker", "keyring": "auth", "throttle": "ratelimit",
	"purse": "budget", "seal": "secrets", "contract": "openapi", "simulate": "simulator", "prove": "test/e2e", "attack": "test/security",
	"floors": "test/arch", "gatetest": "test/testkit", "lane": "http1server", "wire": "http1", "trace": "tracing", "giveway": "yield", "life": "cancelctx",
}

func TestRooms(t *testing.T) {
	t.Parallel()
	_, packages := load(t)
	for _, p := range packages {
		if floor[p.name] == testOnly {
			continue
		}
		report(t, checkRoom(p))
	}
}

// checkRoom judges the size and the name of a package.
func checkRoom(p *source) (problems []string) {
	lines := 0
	for _, f := range p.files {
		if !f.test {
			lines += f.lines
		}
	}
	bound, listed := larger[p.name]
	switch {
	case !listed && lines > maxPackageLines:
		problems = append(problems, fmt.Sprintf("%s has %d lines, more than %d: split it", p.name, lines, maxPackageLines))
	case listed && lines > bound:
		problems = append(problems, fmt.Sprintf("%s has %d lines, more than the %d that it may have until it is split", p.name, lines, bound))
	case listed && lines <= maxPackageLines:
		problems = append(problems, fmt.Sprintf("%s is listed as large and has %d lines: take it off the list", p.name, lines))
	}
	if name, ok := retired[path.Base(p.name)]; ok {
		problems = append(problems, fmt.Sprintf("%s: a package of this name is %s", p.name, name))
	}
	return problems
}

// The rules themselves can fail.
func TestRoomRules(t *testing.T) {
	t.Parallel()
	sized := func(name string, lines int) *source { return &source{name: name, files: []file{{lines: lines}}} }
	for _, c := range []struct {
		p    *source
		want int
	}{
		{sized("internal/x", maxPackageLines), 0},
		{sized("internal/x", maxPackageLines+1), 1},
		{sized("internal/store", larger["internal/store"]+1), 1},
		{sized("internal/store", 10), 1},
		{sized("internal/purse", 10), 1},
	} {
		if got := checkRoom(c.p); len(got) != c.want {
			t.Errorf("%s: %q, want %d problems", c.p.name, got, c.want)
		}
	}
}
