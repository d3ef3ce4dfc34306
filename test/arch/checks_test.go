package arch

import (
	"fmt"
	"strings"
	"testing"
)

// pkg makes a package of one file.
func pkg(t *testing.T, name, text string) *source {
	t.Helper()
	s := parseDir(t, "/", name, t.TempDir())
	s.add(t, "x.go", []byte("package x\n"+text))
	return s
}

// The rules themselves can fail: each of these breaks one.
func TestImportRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pkg, path, want string // want "" for no problem
	}{
		{"internal/store", "modelgate", ""},
		{"internal/store", "database/sql", ""},
		{"internal/store", "github.com/jackc/pgx/v5", ""},
		{"internal/store", "modelgate/internal/store/sqlite", ""},
		{"internal/store/sqlite", "database/sql", ""},
		{"internal/store/sqlite", "modelgate/internal/store", "internal/store/sqlite (floor 1) imports internal/store (floor 2)"},
		{"internal/gateway", "modelgate/internal/provider", ""},
		{"internal/cli", "modelgate/internal/config", ""},
		{"internal/server", "modelgate/internal/config", ""},
		{"internal/store", "modelgate/internal/spool", "internal/store (floor 2) imports internal/spool (floor 2)"},
		{"internal/store", "modelgate/internal/gateway", "(floor 4)"},
		{"internal/worker", "modelgate/internal/selfservice", "internal/worker (floor 3) imports internal/selfservice (floor 4)"},
		{"internal/provider", "github.com/aws/aws-sdk-go-v2/aws", "is for internal/cloud"},
		{"internal/gateway", "modelgate/internal/cloud", "is for internal/server"},
		{"internal/gateway", "modelgate/internal/config", "is for internal/cli and internal/server"},
		{"internal/worker", "database/sql", "is for internal/store"},
		{"internal/worker", "modelgate/test/testkit", "outside its tests"},
		{"internal/worker", "modelgate/internal/other", "has no floor"},
		{"internal/other", "fmt", "no floor; give it one"},
		{"", "net/http", "the root imports net/http"},
		{"", "net/http/httptest", "the root imports"},
		{"", "net/url", ""},
		{"", "github.com/google/uuid", "the root imports"},
		{"", "database/sql", "is for internal/store"},
	} {
		problems := strings.Join(checkImports(pkg(t, c.pkg, fmt.Sprintf("import _ %q\n", c.path))), "; ")
		if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
			t.Errorf("%s importing %s: %q, want %q", c.pkg, c.path, problems, c.want)
		}
	}
}

func TestVariableRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`var ErrX = errors.New("x")`:                            "",
		`var ErrX = &Error{1}`:                                  "",
		`var table = map[string]int{"a": 1}`:                    "",
		`var list = []string{"a"}`:                              "",
		`var re = regexp.MustCompile("x")`:                      "",
		"//go:embed dist\nvar files embed.FS":                   "",
		"var (\n//go:embed a.sql\nq string\n)":                  "",
		`var _ io.Reader = (*T)(nil)`:                           "",
		`var n int`:                                             "can change",
		`var n = 3`:                                             "can change",
		`var mu sync.Mutex`:                                     "can change",
		`var mu = &sync.Mutex{}`:                                "can change",
		`var client = http.DefaultClient`:                       "can change",
		`var cache = make(map[string]int)`:                      "can change",
		`var row = &T{a: 1}`:                                    "",
		`var a, b = 1, []int{1}`:                                "can change",
		`var t = &T{}`:                                          "can change",
		"var m = map[string]int{`b`: 1}\nfunc f() { m[`a`]++ }": "writes to package variable m",
		"var m = []int{1}\nfunc f() { m = append(m, 1) }":       "writes to package variable m",
		"var m = []int{1}\nfunc f() { _ = append(m, 1) }":       "writes to package variable m",
		"var m = T{1}\nfunc f() { m.x.y = 1 }":                  "writes to package variable m",
		"var m = T{1}\nfunc f() *T { return &m }":               "writes to package variable m",
		"var m = map[int]int{1: 1}\nfunc f() { delete(m, 1) }":  "writes to package variable m",
		"var m = []T{{1}}\nfunc f() *T { return &m[0] }":        "",
		"var m = []int{1}\nfunc f() { m := 3; m = 4; _ = m }":   "",
		"var m = []int{1}\nfunc f(m T) { m.x = 4 }":             "",
	} {
		problems := strings.Join(checkVariables(pkg(t, "x", text)), "; ")
		if want == "" && problems != "" || !strings.Contains(problems, want) {
			t.Errorf("%s: %q, want %q", text, problems, want)
		}
	}
}

func TestShapeRules(t *testing.T) {
	t.Parallel()
	if got := checkInit(pkg(t, "x", "func init() {}")); len(got) != 1 {
		t.Errorf("init: %q", got)
	}
	if got := checkInit(pkg(t, "x", "type T struct{}\nfunc (T) init() {}")); len(got) != 0 {
		t.Errorf("a method called init: %q", got)
	}
	long := func(lines int) string { return "func f() {\n" + strings.Repeat("\n", lines-2) + "}\n" }
	if got := checkLengths(pkg(t, "x", long(maxFuncLines))); len(got) != 0 {
		t.Errorf("a function at the limit: %q", got)
	}
	if got := checkLengths(pkg(t, "x", long(maxFuncLines+1))); got["x.f"] == "" || len(got) != 1 {
		t.Errorf("a long function: %q", got)
	}
	if got := checkLengths(pkg(t, "x", strings.Repeat("\n", maxFileLines))); got["x.go"] == "" || len(got) != 1 {
		t.Errorf("a long file: %q", got)
	}
}
