package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines = 450
	maxFuncLines = 80
)

// longer lists the files and functions (package.name) that may be longer,
// each with its reason.
var longer = map[string]string{}

// frozen names the functions whose result never changes once made, which
// package variables may therefore hold.
var frozen = []string{
	"errors.New", "fmt.Errorf", "Errorf", "modelgate.Errorf", // error values
	"regexp.MustCompile", "strings.NewReplacer", "crc32.MakeTable", "netip.MustParsePrefix", "netip.MustParseAddr",
	"template.Must",
}

func TestHabits(t *testing.T) {
	t.Parallel()
	_, packages := load(t)
	needed := make(map[string]bool)
	for _, p := range packages {
		if floor[p.name] == testOnly {
			continue
		}
		report(t, checkVariables(p))
		report(t, checkInit(p))
		for name, problem := range checkLengths(p) {
			needed[name] = true
			if longer[name] == "" {
				t.Error(problem)
			}
		}
	}
	for name := range longer {
		if !needed[name] {
			t.Errorf("%s is listed as long and is not", name)
		}
	}
}

func checkInit(p *source) (problems []string) {
	for f, fn := range functions(p) {
		if fn.Recv == nil && fn.Name.Name == "init" {
			problems = append(problems, fmt.Sprintf("%s: init function", f.path))
		}
	}
	return problems
}

// checkLengths names the files and functions that are too long.
func checkLengths(p *source) map[string]string {
	problems := make(map[string]string)
	for _, f := range p.files {
		if !f.test && f.lines > maxFileLines {
			problems[f.path] = fmt.Sprintf("%s has %d lines, more than %d", f.path, f.lines, maxFileLines)
		}
	}
	for f, fn := range functions(p) {
		n := p.length(fn)
		if name := p.name + "." + fn.Name.Name; n > maxFuncLines {
			problems[name] = fmt.Sprintf("%s: %s has %d lines, more than %d", f.path, fn.Name.Name, n, maxFuncLines)
		}
	}
	return problems
}

// length is how many lines a function has.
func (s *source) length(fn *ast.FuncDecl) int {
	return s.fset.Position(fn.End()).Line - s.fset.Position(fn.Pos()).Line + 1
}

// functions are those of a package, its tests aside.
func functions(p *source) func(yield func(file, *ast.FuncDecl) bool) {
	return func(yield func(file, *ast.FuncDecl) bool) {
		for _, f := range p.files {
			for _, d := range f.syn.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && !f.test && !yield(f, fn) {
					return
				}
			}
		}
	}
}

// checkVariables refuses package variables that can change: each must be made
// of a literal or a frozen value, and nothing may write to it or take its
// address.
func checkVariables(p *source) (problems []string) {
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	scope := resolve(p, info)
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, d := range f.syn.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.VAR {
				problems = append(problems, checkDeclaration(f, decl)...)
			}
		}
		ast.Inspect(f.syn, func(n ast.Node) bool {
			for _, target := range written(n) {
				id := base(target)
				if id == nil {
					continue
				}
				if v, ok := info.Uses[id].(*types.Var); ok && v.Parent() == scope {
					problems = append(problems, fmt.Sprintf("%s: writes to package variable %s", p.fset.Position(id.Pos()), id.Name))
				}
			}
			return true
		})
	}
	return problems
}

// resolve finds out what each identifier stands for. Imports stay unresolved,
// which the packages' own names do not need.
func resolve(p *source, info *types.Info) *types.Scope {
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.syn)
		}
	}
	conf := types.Config{Error: func(error) {}, Importer: nobody{}, FakeImportC: true}
	pkg, _ := conf.Check(p.name, p.fset, files, info) // its errors are all about imports
	return pkg.Scope()
}

type nobody struct{}

func (nobody) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not looked into", path)
}

func checkDeclaration(f file, decl *ast.GenDecl) (problems []string) {
	for _, s := range decl.Specs {
		spec := s.(*ast.ValueSpec)
		if spec.Names[0].Name == "_" || embedded(decl.Doc) || embedded(spec.Doc) {
			continue
		}
		changes := func(e ast.Expr) bool { return !constant(e) }
		if len(spec.Values) != len(spec.Names) || slices.ContainsFunc(spec.Values, changes) {
			problems = append(problems, fmt.Sprintf("%s: package variable %s can change; pass it in", f.path, spec.Names[0].Name))
		}
	}
	return problems
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constant reports whether an expression makes a value that stays as it is
// as long as nobody writes to it: a frozen one or a literal. A literal that
// holds nothing only waits to be filled.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return len(e.Elts) > 0
	case *ast.UnaryExpr:
		return e.Op == token.AND && constant(e.X)
	case *ast.CallExpr:
		return slices.Contains(frozen, name(e.Fun))
	}
	return false
}

// name is an identifier or a selector in words, "" for anything else.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return name(e.X) + "." + e.Sel.Name
	}
	return ""
}

// written are the expressions that a node changes or hands out for change.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		return []ast.Expr{n.Key, n.Value}
	case *ast.UnaryExpr:
		// A pointer to one row of a table is how rows are handed round.
		if _, row := n.X.(*ast.IndexExpr); n.Op == token.AND && !row {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if f := name(n.Fun); slices.Contains([]string{"append", "delete", "clear", "copy"}, f) && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// base is the identifier that an expression reads its way from, such as x in
// x.f[i].g; nil when it starts elsewhere.
func base(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return base(e.X)
	case *ast.IndexExpr:
		return base(e.X)
	case *ast.SliceExpr:
		return base(e.X)
	case *ast.StarExpr:
		return base(e.X)
	case *ast.ParenExpr:
		return base(e.X)
	}
	return nil
}
