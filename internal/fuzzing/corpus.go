package fuzzing

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// corpusHeader is the first line of an input's file, as Go's engine writes it.
const corpusHeader = "go test fuzz v1"

// markText is what isMark knows the mark by.
const markText = "the mark of package fuzzing"

// value is one argument: text for strings and bytes, bits for all else.
type value struct {
	text []byte
	bits uint64
}

// input is the arguments of one execution.
type input []value

func (in input) size() int {
	n := 0
	for _, v := range in {
		n += len(v.text)
	}
	return n
}

// shape is the types of a target's arguments, *testing.T left out.
type shape []reflect.Type

// shapeOf panics on a target that f.Fuzz would refuse, and on one with
// arguments that no target of the module has.
func shapeOf(target reflect.Type) shape {
	var s shape
	for i := 1; i < target.NumIn(); i++ {
		in := target.In(i)
		switch in.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		case reflect.Slice:
			if in.Elem().Kind() != reflect.Uint8 {
				panic("an argument of type " + in.String())
			}
		default:
			panic("an argument of type " + in.String())
		}
		s = append(s, in)
	}
	return s
}

func isText(t reflect.Type) bool { return t.Kind() == reflect.String || t.Kind() == reflect.Slice }

// mark is arguments that no seed has.
func (s shape) mark() []any {
	list := make([]any, len(s))
	for i, t := range s {
		v := reflect.New(t).Elem()
		set(v, value{text: []byte(markText)})
		list[i] = v.Interface()
	}
	return list
}

func (s shape) isMark(in input) bool {
	for i, t := range s {
		if isText(t) && string(in[i].text) != markText {
			return false
		}
	}
	return true
}

func (s shape) fromValues(args []reflect.Value) input {
	in := make(input, len(s))
	for i, arg := range args {
		switch {
		case arg.Kind() == reflect.String:
			in[i].text = []byte(arg.String())
		case arg.Kind() == reflect.Slice:
			in[i].text = append([]byte(nil), arg.Bytes()...)
		case arg.Kind() == reflect.Bool:
			if arg.Bool() {
				in[i].bits = 1
			}
		case arg.CanInt():
			in[i].bits = uint64(arg.Int())
		default:
			in[i].bits = arg.Uint()
		}
	}
	return in
}

// set gives an argument its value; numbers are cut to the argument's size.
func set(arg reflect.Value, v value) {
	switch {
	case arg.Kind() == reflect.String:
		arg.SetString(string(v.text))
	case arg.Kind() == reflect.Slice:
		arg.SetBytes(v.text)
	case arg.Kind() == reflect.Bool:
		arg.SetBool(v.bits&1 != 0)
	case arg.CanInt():
		size := 64 - arg.Type().Bits()
		arg.SetInt(int64(v.bits) << size >> size)
	default:
		size := 64 - arg.Type().Bits()
		arg.SetUint(v.bits << size >> size)
	}
}

// caller calls the target. The two commonest shapes go without reflection.
func (s shape) caller(fn reflect.Value, t *testing.T) func(input) {
	switch target := fn.Interface().(type) {
	case func(*testing.T, []byte):
		return func(in input) { target(t, in[0].text) }
	case func(*testing.T, string):
		return func(in input) { target(t, string(in[0].text)) }
	}
	args := []reflect.Value{reflect.ValueOf(t)}
	for _, in := range s {
		args = append(args, reflect.New(in).Elem())
	}
	return func(in input) {
		for i, v := range in {
			set(args[i+1], v)
		}
		fn.Call(args)
	}
}

// readCorpus reads the inputs in a folder, of which there may be none. Files
// of another shape belong to an earlier form of the target.
func readCorpus(folder string, s shape) ([]input, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []input
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		if in, ok := parseInput(string(text), s); ok {
			list = append(list, in)
		}
	}
	return list, nil
}

// parseInput reads a file of the corpus: a header, then a conversion of a
// literal for each argument.
func parseInput(text string, s shape) (input, bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) != len(s)+1 || strings.TrimSpace(lines[0]) != corpusHeader {
		return nil, false
	}
	in := make(input, len(s))
	for i, t := range s {
		e, err := parser.ParseExpr(lines[i+1])
		call, ok := e.(*ast.CallExpr)
		if err != nil || !ok || len(call.Args) != 1 {
			return nil, false
		}
		literal := lines[i+1][call.Args[0].Pos()-1 : call.Args[0].End()-1]
		if in[i], ok = parseLiteral(literal, t); !ok {
			return nil, false
		}
	}
	return in, true
}

func parseLiteral(literal string, t reflect.Type) (value, bool) {
	if isText(t) {
		text, err := strconv.Unquote(literal)
		return value{text: []byte(text)}, err == nil
	}
	if t.Kind() == reflect.Bool {
		var v value
		if literal == "true" {
			v.bits = 1
		}
		return v, true
	}
	if c, _, tail, err := strconv.UnquoteChar(strings.Trim(literal, "'"), '\''); literal[0] == '\'' {
		return value{bits: uint64(c)}, err == nil && tail == ""
	}
	if n, err := strconv.ParseInt(literal, 0, 64); err == nil {
		return value{bits: uint64(n)}, true
	}
	n, err := strconv.ParseUint(literal, 0, 64)
	return value{bits: n}, err == nil
}

// formatInput is the file of an input.
func formatInput(in input, s shape) string {
	var out strings.Builder
	out.WriteString(corpusHeader + "\n")
	for i, t := range s {
		arg := reflect.New(t).Elem()
		set(arg, in[i])
		switch {
		case t.Kind() == reflect.Slice:
			fmt.Fprintf(&out, "[]byte(%q)\n", arg.Bytes())
		case t.Kind() == reflect.String:
			fmt.Fprintf(&out, "string(%q)\n", arg.String())
		default:
			fmt.Fprintf(&out, "%s(%v)\n", t.Kind(), arg.Interface())
		}
	}
	return out.String()
}

// writeFailing keeps an input where the tests read it, and returns its file.
func writeFailing(folder string, in input, s shape) (string, error) {
	text := formatInput(in, s)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(folder, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16])
	return file, os.WriteFile(file, []byte(text), 0o644)
}
