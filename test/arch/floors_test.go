package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testOnly is the floor of what tests and measures the program: nothing else
// may import it.
const testOnly = -2

// floor says where each package stands. A package imports lower floors only,
// never its own. One that is not listed fails the test, so that adding one is
// a decision.
var floor = map[string]int{
	"":                    -1, // the glossary
	"internal/atomicfile": -1,
	"internal/httpfield":  -1,
	"internal/cloudhost":  -1,
	"internal/null":       -1,

	// What the nouns of the glossary come to.
	"internal/evidence": 0,
	"internal/pricing":  0,

	"internal/csvfile":    0,
	"internal/report":     0,
	"internal/callview":   0,
	"internal/modelview":  0,
	"internal/cancelctx":  0,
	"internal/yield":      0,
	"internal/budgetview": 0,
	"internal/keyview":    0,

	"internal/store/sqldb": 0,

	// Its lexer reads replies too.
	"internal/provider/reqscan": 0,

	"internal/provider/usage/eventstream": 0,

	// Parts of the packages above them.
	"internal/provider/http1":      1,
	"internal/provider/usage":      1,
	"internal/provider/costbound":  1,
	"internal/provider/credential": 1,
	"internal/provider/target":     1,

	"internal/pricing/pricefile": 1,
	"internal/focus":             1,
	"internal/invoice":           1,

	"internal/store/access":   1,
	"internal/store/billing":  1,
	"internal/store/bills":    1,
	"internal/store/evidence": 1,
	"internal/store/spend":    1,
	"internal/store/sqlite":   1,
	"internal/store/stats":    1,
	"internal/store/wallet":   1,

	"internal/config":      2,
	"internal/store":       2,
	"internal/spool":       2,
	"internal/budget":      2,
	"internal/auth":        2,
	"internal/ratelimit":   2,
	"internal/quota":       2,
	"internal/provider":    2,
	"internal/processor":   2,
	"internal/secrets":     2,
	"internal/httpx":       2,
	"internal/openapi":     2,
	"internal/tracing":     2,
	"internal/http1server": 2,
	"internal/terminal":    2,

	"internal/jobs":         3,
	"internal/focus/source": 3,
	"internal/worker":       3,
	"internal/simulator":    3,
	"internal/topup":        3,
	"internal/bill":         3,

	"internal/signing": 3,
	"internal/people":  3,

	"internal/callquery": 3,

	// The vendors' libraries are here, and nowhere on the way of a call.
	"internal/cloud": 3,

	"internal/dashboard":   4,
	"internal/gateway":     4,
	"internal/selfservice": 4,
	"internal/operator":    4,

	"internal/server": 5,

	"internal/cli":       6,
	"internal/cli/bill":  4,
	"internal/cli/demo":  5,
	"internal/cli/fetch": 4,
	"internal/cli/man":   7,
	"cmd/modelgate":      7,

	"internal/provider/http1/http1test": testOnly,

	"bench":         testOnly,
	"test/security": testOnly,
	"test/testkit":  testOnly,

	"test/testkit/cloud":  testOnly,
	"test/testkit/openid": testOnly,

	"test/arch": testOnly,
	"test/e2e":  testOnly,
	"test/docs": testOnly,
}

// reserved names who alone may import a package: these, the packages below them,
// and tests.
var reserved = map[string][]string{
	"database/sql":              {"internal/store"},
	"database/sql/driver":       {"internal/store"},
	module + "/internal/config": {"internal/cli", "internal/server"},
	module + "/internal/cloud":  {"internal/server"},
}

// vendors are the modules of the clouds' vendors, which only one package may
// import: their libraries bring much along, and none of it belongs on the way of a
// call. The one for people who sign in with OAuth is as far from it.
var vendors = []string{"github.com/aws/", "github.com/Azure/", "golang.org/x/oauth2", "cloud.google.com/"}

func TestFloors(t *testing.T) {
	t.Parallel()
	_, packages := load(t)
	for _, p := range packages {
		report(t, checkImports(p))
	}
}

// checkImports holds the imports of a package against the floors.
func checkImports(p *source) (problems []string) {
	at, listed := floor[p.name]
	if !listed {
		return []string{fmt.Sprintf("%s: no floor; give it one in test/arch", p.name)}
	}
	if at == testOnly {
		return nil
	}
	for _, path := range p.imports(false) {
		owns := func(owner string) bool { return p.name == owner || strings.HasPrefix(p.name, owner+"/") }
		if owners, ok := reserved[path]; ok && !slices.ContainsFunc(owners, owns) {
			problems = append(problems, fmt.Sprintf("%s imports %s, which is for %s", p.name, path, strings.Join(owners, " and ")))
		}
		if p.name != "internal/cloud" && !(p.name == "internal/people" && path == "golang.org/x/oauth2") && slices.ContainsFunc(vendors, func(v string) bool { return strings.HasPrefix(path, v) }) {
			problems = append(problems, fmt.Sprintf("%s imports %s, which is for internal/cloud", p.name, path))
		}
		if p.name == "" && (thirdParty(path) || path == "net/http" || strings.HasPrefix(path, "net/http/")) {
			problems = append(problems, fmt.Sprintf("the root imports %s; it is for the standard library without net/http", path))
		}
		dep, ok := own(path)
		if !ok {
			continue
		}
		switch below, listed := floor[dep]; {
		case !listed:
			problems = append(problems, fmt.Sprintf("%s imports %s, which has no floor", p.name, dep))
		case below == testOnly:
			problems = append(problems, fmt.Sprintf("%s imports %s outside its tests", p.name, dep))
		case below >= at:
			problems = append(problems, fmt.Sprintf("%s (floor %d) imports %s (floor %d)", p.name, at, dep, below))
		}
	}
	return problems
}

// Every module that the program or its tests import is named in the decision record about dependencies,
// where its reason stands.
func TestDependenciesAreExplained(t *testing.T) {
	t.Parallel()
	root, packages := load(t)
	design, err := os.ReadFile(filepath.Join(root, "docs", "adr", "0021-dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	modules := requirements(t, root)
	var used []string
	for _, p := range packages {
		for _, path := range slices.Concat(p.imports(false), p.imports(true)) {
			if !thirdParty(path) {
				continue
			}
			if m := moduleOf(path, modules); m == "" {
				t.Errorf("%s imports %s, which no module of go.mod provides", p.name, path)
			} else if !slices.Contains(used, m) {
				used = append(used, m)
			}
		}
	}
	slices.Sort(used)
	for _, m := range used {
		if !strings.Contains(string(design), "`"+m+"`") {
			t.Errorf("docs/adr/0021-dependencies.md does not say what %s is for", m)
		}
	}
}

// moduleOf is the longest module path that path lies in.
func moduleOf(path string, modules []string) string {
	best := ""
	for _, m := range modules {
		if (path == m || strings.HasPrefix(path, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}
