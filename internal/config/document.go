package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Fault is something wrong in a configuration file, in words for the
// operator. Line and Column count from 1; 0 means the file as a whole. The
// message never holds the value of an environment variable or of a secret.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// String is the fault as compilers print theirs: file:line:column: message.
func (f Fault) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Faults is all that is wrong with a configuration.
type Faults []Fault

// Error lists the faults, one a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// maxFile bounds a configuration file, in bytes, and maxDepth its nesting,
// which the parser follows by recursion.
const (
	maxFile  = 16 << 20
	maxDepth = 100
)

// document is one parsed file with the places of its keys. Keys are spelled
// as paths, such as providers[0].name; the root is "".
type document struct {
	loader *loader
	file   string
	body   ast.Node // nil: the file is empty
	places map[string]place
	nulls  map[string]bool // keys whose value is null
	faulty map[string]bool
	// emptied are the keys whose value a variable made empty, and its name.
	emptied map[string]string
}

// place is where a key is written.
type place struct{ line, column int }

// open reads and parses a file; nil when that failed, which is then a fault.
func (l *loader) open(path string) *document {
	text, err := readFile(path)
	if err != nil {
		l.faults = append(l.faults, Fault{File: path, Message: err.Error()})
		return nil
	}
	return l.parse(path, text)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.New("cannot be opened: permission denied; give the user that runs modelgate the right to read it")
	}
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("cannot be opened: %w", cause.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, errors.New("cannot be read; is it a file?")
	case len(text) > maxFile:
		return nil, fmt.Errorf("is larger than %d bytes", maxFile)
	}
	return text, nil
}

// parse makes a document of a text; nil when it is no YAML.
func (l *loader) parse(file string, text []byte) *document {
	d := &document{
		loader: l, file: file, places: make(map[string]place), nulls: make(map[string]bool), faulty: make(map[string]bool),
		emptied: make(map[string]string),
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file with a byte order mark
	if line := tooDeep(text); line > 0 {
		l.faults = append(l.faults, Fault{file, line, 1, fmt.Sprintf("is nested more than %d levels deep", maxDepth)})
		return nil
	}
	parsed, err := parseYAML(text)
	if err != nil {
		l.faults = append(l.faults, syntaxFault(file, text, err))
		return nil
	}
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if d.body != nil {
			d.faultAt(placeOf(doc.Body), "is a second document; keep everything in one, without --- between")
			return nil
		}
		d.body = doc.Body
	}
	return d
}

// parseYAML turns a panic of the parser, which has been seen to fail that way
// on malformed texts, into an error.
func parseYAML(text []byte) (f *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("is not valid YAML")
		}
	}()
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
}

// tooDeep is the line on which brackets or indentation nest deeper than the
// parser should follow, 0 if none does.
func tooDeep(text []byte) int {
	line, open := 1, 0
	for s := range strings.SplitSeq(string(text), "\n") {
		open += strings.Count(s, "[") + strings.Count(s, "{") - strings.Count(s, "]") - strings.Count(s, "}")
		for _, deep := range []string{strings.Repeat("- ", maxDepth), strings.Repeat("? ", maxDepth), strings.Repeat(" ", 10*maxDepth)} {
			if open > maxDepth || strings.Contains(s, deep) {
				return line
			}
		}
		line++
	}
	return 0
}

// syntaxFault says what the parser stumbled over.
func syntaxFault(file string, text []byte, err error) Fault {
	var syntax yaml.Error
	if !errors.As(err, &syntax) || syntax.GetToken() == nil || syntax.GetToken().Position == nil {
		return Fault{File: file, Message: "is not valid YAML"}
	}
	at := syntax.GetToken().Position
	fault := Fault{file, at.Line, at.Column, "is not valid YAML: " + syntax.GetMessage()}
	lines := strings.Split(string(text), "\n")
	if at.Line < 1 || at.Line > len(lines) {
		return fault
	}
	line := lines[at.Line-1]
	if indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; strings.Contains(indent, "\t") {
		fault.Message = "is indented with a tab; YAML wants spaces"
	} else if strings.Contains(line, "${") {
		fault.Message += `; between { } or [ ], put quotes around "${NAME}"`
	}
	return fault
}

// placeOf is where a node begins.
func placeOf(n ast.Node) place {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return placeOf(m.Values[0])
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return placeOf(m.Key)
	}
	token := n.GetToken()
	if token == nil || token.Position == nil {
		return place{line: 1, column: 1}
	}
	return place{line: token.Position.Line, column: max(token.Position.Column, 1)}
}

// fault reports what is wrong with a key. Only the first fault of a key
// counts: what follows from it would say nothing new.
func (d *document) fault(key, format string, args ...any) {
	if d.faulty[key] {
		return
	}
	d.faulty[key] = true
	d.loader.faults = append(d.loader.faults, d.at(key, format, args))
}

// faultIf reports what is wrong with a key where the condition holds.
func (d *document) faultIf(wrong bool, key, format string, args ...any) {
	if wrong {
		d.fault(key, format, args...)
	}
}

// faultAt reports what is wrong at a place that has no key.
func (d *document) faultAt(at place, format string, args ...any) {
	d.loader.faults = append(d.loader.faults, Fault{d.file, at.line, at.column, fmt.Sprintf(format, args...)})
}

// warn reports what is probably not meant.
func (d *document) warn(key, format string, args ...any) {
	d.loader.warnings = append(d.loader.warnings, d.at(key, format, args))
}

// at makes a fault at the place of a key, or of what the missing key would be
// part of.
func (d *document) at(key, format string, args []any) Fault {
	message := fmt.Sprintf(format, args...)
	if key != "" {
		message = key + ": " + message
	}
	for ; key != ""; key = parent(key) {
		if p, ok := d.places[key]; ok {
			return Fault{d.file, p.line, p.column, message}
		}
	}
	return Fault{d.file, 1, 1, message}
}

// has reports whether a key is there and has a value.
func (d *document) has(key string) bool { _, ok := d.places[key]; return ok }

// null reports whether a key is there and null.
func (d *document) null(key string) bool { return d.nulls[key] }

// bad reports whether a key has a fault already.
func (d *document) bad(key string) bool { return d.faulty[key] }

// member, element and parent make paths.
func member(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }
