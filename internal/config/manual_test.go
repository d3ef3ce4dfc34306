package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
)

var update = flag.Bool("update", false, "write the schema and the reference manual")

// The schema and the reference manual say what the structs of this package
// and their comments say; -update writes them again.
func TestManualFollowsTheStructs(t *testing.T) {
	comments := readComments(t)
	for path, text := range map[string]string{
		"schema.json":                           comments.schema(t),
		"../../docs/reference/configuration.md": comments.manual(t),
	} {
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(string(have), "\n")); diff != "" {
			t.Errorf("%s is not what the structs say; run go test ./internal/config -run Manual -update (-want +got):\n%s", path, diff)
		}
	}
}

// What a running service takes over must say so, and nothing else may.
func TestManualSaysWhatNeedsNoRestart(t *testing.T) {
	t.Parallel()
	const promise = "May change without a restart."
	var live []string
	readComments(t).walk("", reflect.ValueOf(file{}), func(k key) {
		if strings.Contains(strings.Join(strings.Fields(k.doc), " "), promise) {
			live = append(live, k.path)
		}
	})
	slices.Sort(live)
	want := slices.Sorted(slices.Values(reloadable))
	if diff := cmp.Diff(want, live); diff != "" {
		t.Errorf("keys that promise a change without a restart (-reloadable +promising):\n%s", diff)
	}
}

// comments are the manuals of types and of their fields, as Type and
// Type.Field.
type comments map[string]string

func readComments(t *testing.T) comments {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	c := make(comments)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						c[spec.Name.Name+"."+name.Name] = strings.TrimSpace(f.Doc.Text())
					}
				}
			}
			return false
		})
	}
	return c
}

// key is one key of the file.
type key struct {
	path string
	doc  string
	typ  reflect.Type
	// usual is the value that a file without the key has.
	usual reflect.Value
}

// required reports whether a file without the key is wrong.
func (k key) required() bool { return strings.Contains(k.doc, "Required.") }

// fields are the keys of a struct, in the order of the source.
func (c comments) fields(v reflect.Value) []key {
	var keys []key
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			keys = append(keys, c.fields(v.Field(i))...)
		} else if name != "" {
			keys = append(keys, key{name, c[v.Type().Name()+"."+f.Name], f.Type, v.Field(i)})
		}
	}
	return keys
}

// walk visits the keys of a struct and of all within it; those of a list's
// entries are spelled list[].key. Prices are not entered.
func (c comments) walk(path string, v reflect.Value, visit func(key)) {
	for _, k := range c.fields(v) {
		k.path = member(path, k.path)
		visit(k)
		switch inner, suffix := entryOf(k.typ); {
		case k.typ == reflect.TypeFor[ContractFactor]():
		case inner == reflect.TypeFor[media]():
			c.walk(k.path+"[]", reflect.ValueOf(mediaLine{}), visit)
		case inner.Kind() != reflect.Struct || inner == reflect.TypeFor[price]() || isScalar(inner):
		case suffix == "" && k.typ.Kind() == reflect.Struct:
			c.walk(k.path, k.usual, visit)
		default:
			fresh := reflect.New(inner)
			initialise(fresh.Interface())
			c.walk(k.path+suffix, fresh.Elem(), visit)
		}
	}
}

// entryOf is what a list or a pointer holds, and how its keys are spelled.
func entryOf(t reflect.Type) (reflect.Type, string) {
	switch t.Kind() {
	case reflect.Slice:
		return t.Elem(), "[]"
	case reflect.Pointer:
		return t.Elem(), ""
	}
	return t, ""
}

// choices are the spellings of values that have few.
func choices(t reflect.Type, path string) []string {
	switch {
	case t == reflect.TypeFor[Fsync]():
		return []string{string(FsyncAlways), string(FsyncInterval)}
	case t == reflect.TypeFor[ServerHTTP]():
		return []string{string(ServerFast), string(ServerStandard)}
	case t == reflect.TypeFor[Transport]():
		return []string{string(TransportPooled), string(TransportStandard)}
	case t == reflect.TypeFor[Pooler]():
		return []string{string(PoolerNone), string(PoolerTransaction)}
	case t == reflect.TypeFor[Enforce]():
		return []string{string(EnforceEstimate), string(EnforceStrict), string(EnforceOff)}
	case t == reflect.TypeFor[LogFormat]():
		return []string{string(LogAuto), string(LogText), string(LogJSON)}
	case t == reflect.TypeFor[slog.Level]():
		return []string{"debug", "info", "warn", "error"}
	case t == reflect.TypeFor[Disconnect]():
		return []string{string(Drain), string(Cancel)}
	case t == reflect.TypeFor[modelgate.ModelKind]():
		return strings.Split(joined(modelgate.Kinds()), ", ")
	case t == reflect.TypeFor[day]():
		return strings.Split(joined(days()), ", ")
	case path == "format" || path == "providers[].format":
		return formats
	}
	return nil
}

// manual is the reference manual, in Markdown.
func (c comments) manual(t *testing.T) string {
	intro, err := os.ReadFile("testdata/manual.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(intro)
	var f file
	initialise(&f)
	c.walk("", reflect.ValueOf(f), func(k key) { c.describe(t, &b, k) })
	b.WriteString("\n## `price`\n\nWhat a model costs, wherever `price` stands: in a model, in one of its routes, or in the price list.\n" +
		"Amounts are decimal numbers with at most nine decimals, read exactly. `dated`, `tiers`, `windows` and\n" +
		"`variants` take the units of a price beside their own keys; they apply in this order, each over the one\n" +
		"before, then `multipliers` and the provider's `price_factor`.\n")
	c.walk("price", reflect.ValueOf(price{}), func(k key) {
		// The units of tiers, dates, windows and variants are those of the price,
		// and so are the lists of dates.
		_, inner, inside := strings.Cut(k.path, "[].")
		if i := strings.IndexAny(inner, "[."); i >= 0 {
			inner = inner[:i]
		}
		if !inside || !c.isTerm(inner) {
			c.describe(t, &b, k)
		}
	})
	return b.String()
}

// isTerm reports whether a key is a unit or list of a price.
func (c comments) isTerm(name string) bool {
	return slices.ContainsFunc(c.fields(reflect.ValueOf(terms{})), func(k key) bool { return k.path == name })
}

func (c comments) describe(t *testing.T, b *strings.Builder, k key) {
	if k.doc == "" {
		t.Errorf("%s has no manual", k.path)
	}
	level := "###"
	if !strings.Contains(k.path, ".") {
		level = "##"
	}
	fmt.Fprintf(b, "\n%s `%s`\n\n", level, k.path)
	if kind := kindOf(k); kind != "" {
		fmt.Fprintf(b, "%s%s\n\n", kind, k.usually())
	}
	fmt.Fprintln(b, strings.TrimSpace(strings.Replace(k.doc, "Required.", "", 1)))
}

func isScalar(t reflect.Type) bool {
	_, ok := scalarOf(t)
	return ok
}

// kindOf is what a key wants, in words; "" where its manual says it anyway.
func kindOf(k key) string {
	inner, suffix := entryOf(k.typ)
	var word string
	switch {
	case inner == reflect.TypeFor[price]():
		return "A [price](#price)"
	case inner == reflect.TypeFor[Auth]():
		return "One word, or keys and values"
	case inner == reflect.TypeFor[media]():
		return "USD, or a list of `{size: …, quality: …, audio: …, usd: …}`"
	case k.typ == reflect.TypeFor[ContractFactor]():
		return "A factor, or a list of `{from: …, factor: …}`"
	case inner == reflect.TypeFor[Secret]():
		word = "Text, never shown"
	case inner == reflect.TypeFor[modelgate.Nano](), inner.Kind() == reflect.Struct && suffix == "" && !isScalar(inner):
		return ""
	case inner == reflect.TypeFor[clock]():
		word = "Time of the day"
	case inner == reflect.TypeFor[time.Time]():
		word = "Date or time"
	case choices(inner, k.path) != nil:
		word = "One of " + "`" + strings.Join(choices(inner, k.path), "`, `") + "`"
	case inner.Kind() == reflect.Struct:
		word = "Keys and values"
	case inner.Kind() == reflect.Map && inner.Elem() == reflect.TypeFor[modelgate.Nano]():
		word = "Values of the answer and their factors"
	case inner.Kind() == reflect.Map:
		word = "Names and texts"
	default:
		word = map[reflect.Type]string{
			reflect.TypeFor[bool](): "`true` or `false`", reflect.TypeFor[int](): "Whole number", reflect.TypeFor[int64](): "Whole number",
			reflect.TypeFor[time.Duration](): "Duration", reflect.TypeFor[Size](): "Size",
		}[inner]
		if word == "" {
			word = "Text"
		}
	}
	if suffix == "" {
		return word
	}
	return "List: " + strings.ToLower(word[:1]) + word[1:]
}

// usually is the default, unless the manual of the key says it or it has
// none.
func (k key) usually() string {
	if k.required() {
		return ", required."
	}
	if strings.Contains(k.doc, "Default:") {
		return "."
	}
	text := ""
	switch v := k.usual.Interface().(type) {
	case Secret:
		text = v.Reveal()
	case slog.Level:
		text = strings.ToLower(v.String())
	case time.Duration:
		text = shortDuration(v)
	case Size, int, int64, bool:
		text = fmt.Sprint(v)
	default:
		if k.usual.Kind() != reflect.String {
			return "."
		}
		text = k.usual.String()
	}
	if text == "" {
		return "."
	}
	return ", by default `" + text + "`."
}

// shortDuration is 10m where Go says 10m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
