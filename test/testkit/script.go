package testkit

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Script runs a file of requests and expectations against a server. It reads
// like a description of the API:
//
//	# a comment, shown when a step fails
//	POST /gw/keys as manager       the Authorization of a named key, "as nobody" for none
//	> Content-Type: text/plain     a request header; JSON bodies get theirs by themselves
//	{"scopes":["inference:use"]}   the body: every line up to the first expectation, joined by newlines, in forms by CRLF
//	= 200                          the status
//	= header X-Next-Cursor         a header is there; with text after the name, it has that value
//	= no header X-Next-Cursor
//	= body {"a":1}                 the whole body, to the byte (a final newline aside)
//	= json error.type forbidden    a value found by a gjson path: its text, or JSON for objects
//	= json key ~ ^gw_live_         … matches a regular expression
//	= no json key                  … is absent
//	= set child key                keeps a value under a name
//	= wait                         the request is made again until all of this holds, for ten seconds
//
// ${name} anywhere is replaced by what was kept or by vars. Keys named in
// "as" are vars as well.
type Script struct {
	URL    string // of the server
	Client *http.Client
	Vars   map[string]string
	// Contract, unless nil, is what every exchange is held against.
	Contract *Contract
}

// step is one request with what is expected of its answer.
type step struct {
	comment string
	line    int
	method  string
	target  string
	as      string
	header  http.Header
	body    []string
	expect  []expectation
}

type expectation struct {
	line int
	text string
}

// RunFiles runs every file that matches the glob as a subtest; no match
// fails. Each file gets the variables that setup returns for it.
func RunFiles(t *testing.T, glob string, setup func(t *testing.T) *Script) {
	files, err := filepath.Glob(glob)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts at %s: %v", glob, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			setup(t).run(t, filepath.Base(file), string(text))
		})
	}
}

func (s *Script) run(t *testing.T, file, text string) {
	if s.Client == nil {
		s.Client = &http.Client{
			Timeout:       30 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	steps, err := parseScript(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, st := range steps {
		if err := s.play(st); err != nil {
			t.Fatalf("%s:%d: %s %s (%s)\n%v", file, st.line, st.method, s.fill(st.target), st.comment, err)
		}
	}
}

var requestLine = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (\S+)(?: as (\S+))?$`)

func parseScript(text string) ([]step, error) {
	var steps []step
	comment := ""
	for i, line := range strings.Split(text, "\n") {
		var last *step
		if len(steps) > 0 {
			last = &steps[len(steps)-1]
		}
		request := requestLine.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "#"):
			comment = strings.TrimSpace(line[1:])
		case request != nil:
			steps = append(steps, step{comment: comment, line: i + 1, method: request[1], target: request[2], as: request[3], header: http.Header{}})
			comment = ""
		case last == nil:
			if strings.TrimSpace(line) != "" {
				return nil, fmt.Errorf("line %d: expected a request", i+1)
			}
		case strings.HasPrefix(line, "> "):
			name, value, found := strings.Cut(line[2:], ":")
			if !found {
				return nil, fmt.Errorf("line %d: a header needs a colon", i+1)
			}
			last.header.Add(name, strings.TrimSpace(value))
		case strings.HasPrefix(line, "= "):
			last.expect = append(last.expect, expectation{i + 1, line[2:]})
		case len(last.expect) > 0 && strings.TrimSpace(line) == "":
		case len(last.expect) > 0:
			return nil, fmt.Errorf("line %d: a body cannot follow an expectation", i+1)
		default:
			last.body = append(last.body, line)
		}
	}
	for _, st := range steps {
		if len(st.expect) == 0 {
			return nil, fmt.Errorf("line %d: nothing is expected of this request", st.line)
		}
	}
	return steps, nil
}

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

func (s *Script) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string {
		if value, ok := s.Vars[v[2:len(v)-1]]; ok {
			return value
		}
		return v
	})
}

// play makes a request, and a waiting one until it is answered as expected.
func (s *Script) play(st step) error {
	err := s.attempt(st)
	if err == nil || !slices.ContainsFunc(st.expect, func(e expectation) bool { return e.text == "wait" }) {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 200 { // ten seconds
		<-tick.C
		if err = s.attempt(st); err == nil {
			break
		}
	}
	return err
}

func (s *Script) attempt(st step) error {
	body := s.fill(strings.TrimSuffix(strings.Join(st.body, "\n"), "\n"))
	if strings.HasPrefix(st.header.Get("Content-Type"), "multipart/") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	req, err := http.NewRequest(st.method, s.URL+s.fill(st.target), strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range st.header {
		for _, v := range values {
			req.Header.Add(name, s.fill(v))
		}
	}
	if st.as != "" && st.as != "nobody" {
		key, ok := s.Vars[st.as]
		if !ok {
			return fmt.Errorf("no key named %s", st.as)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.Header.Get("X-Gateway-Request-Id") == "" {
		return fmt.Errorf("%d without X-Gateway-Request-Id", resp.StatusCode)
	}
	if s.Contract != nil {
		if err := s.Contract.Check(req, []byte(body), resp, answer); err != nil {
			return err
		}
	}
	for _, e := range st.expect {
		if err := s.check(s.fill(e.text), resp, answer); err != nil {
			return fmt.Errorf("line %d: %w\nanswer: %d %v\n%s", e.line, err, resp.StatusCode, resp.Header, answer)
		}
	}
	return nil
}

func (s *Script) check(want string, resp *http.Response, answer []byte) error {
	verb, rest, _ := strings.Cut(want, " ")
	switch verb {
	case "wait":
	case "body":
		if got := strings.TrimSuffix(string(answer), "\n"); got != rest {
			return fmt.Errorf("body is not %q", rest)
		}
	case "header":
		name, value, exact := strings.Cut(rest, " ")
		if got := resp.Header.Get(name); got == "" || exact && got != value {
			return fmt.Errorf("header %s is %q", name, got)
		}
	case "json":
		return checkJSON(rest, answer)
	case "set":
		name, path, _ := strings.Cut(rest, " ")
		value := find(answer, path)
		if header, ok := strings.CutPrefix(path, "header "); ok {
			value = gjson.Result{Type: gjson.String, Str: resp.Header.Get(header)}
		}
		if value.String() == "" {
			return fmt.Errorf("nothing at %s to keep", path)
		}
		s.Vars[name] = value.String()
	case "no":
		kind, name, _ := strings.Cut(rest, " ")
		if kind == "header" && resp.Header.Get(name) != "" || kind == "json" && find(answer, name).Exists() {
			return fmt.Errorf("%s %s is there", kind, name)
		}
	default:
		if want != fmt.Sprint(resp.StatusCode) {
			return fmt.Errorf("status is not %s", want)
		}
	}
	return nil
}

func find(answer []byte, path string) gjson.Result {
	return gjson.GetBytes(bytes.TrimSpace(answer), path)
}

// jsonLines reports whether every line is JSON; a path to one begins with two
// dots and its number.
func jsonLines(answer []byte) bool {
	for line := range bytes.Lines(answer) {
		if !gjson.ValidBytes(line) {
			return false
		}
	}
	return len(answer) > 0
}

func checkJSON(want string, answer []byte) error {
	if !gjson.ValidBytes(answer) && !jsonLines(answer) {
		return fmt.Errorf("body is no JSON")
	}
	path, value, _ := strings.Cut(want, " ")
	got := find(answer, path)
	if !got.Exists() {
		return fmt.Errorf("nothing at %s", path)
	}
	if pattern, ok := strings.CutPrefix(value, "~ "); ok {
		matched, err := regexp.MatchString(pattern, got.String())
		if err != nil || !matched {
			return fmt.Errorf("%s is %s, which does not match %s (%v)", path, got.Raw, pattern, err)
		}
		return nil
	}
	if got.String() != value && got.Raw != value {
		return fmt.Errorf("%s is %s", path, got.Raw)
	}
	return nil
}
