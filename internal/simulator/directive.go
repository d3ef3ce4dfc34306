package simulator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// directive is one word with which a prompt steers the answer.
type directive struct {
	name  string // what stands before the equals sign
	value string // the form of its value, "" when it takes none
	to    any    // a pointer to where the value goes
}

// list is what a prompt may contain, as [[name]] or [[name=value]], any number
// of them, anywhere in the text. Where a request has turns, only the last turn
// of the user is looked at, so that an old directive does not repeat itself;
// where it has none, all its text. A name may carry the name of a simulator,
// [[status@eu=503]]: the others ignore it. The last of several equal names
// counts. Unknown names are answered with 400.
func (d *directives) list() []directive {
	return []directive{
		{"after", "duration", &d.after},                     // a job is done this long after its creation, in place of after some polls
		{"arguments", "JSON object", &d.arguments},          // members of the arguments of a tool call; a list in it is not possible
		{"cache_write", "tokens", &d.cacheWrite},            // tokens written to the cache (five minutes where there are two kinds)
		{"cache_write_1h", "tokens", &d.cacheWrite1h},       // tokens written to the one-hour cache; a format with one kind of cache adds them to that
		{"cached", "tokens", &d.cached},                     // tokens read from the cache
		{"chunks", "count", &d.chunks},                      // pieces of text in a stream; by default one a word
		{"cut", "chunks", &d.cut},                           // close the connection after so many chunks of a stream; after half of any other body; 0: before the status line
		{"delay", "duration", &d.delay},                     // wait before the first byte
		{"error_in_stream", "chunks, optional", &d.errorAt}, // an error in place of the rest of the stream, by default after half of it
		{"gap", "duration", &d.gap},                         // wait between the chunks of a stream
		{"gzip", "", &d.gzip},                               // a compressed reply, whatever the request accepts
		{"hang", "chunks, optional", &d.hang},               // stop answering, by default before the status line, until the client goes
		{"input", "tokens", &d.input},                       // state so many input tokens in place of the words
		{"job", "failed, cancelled or expired", &d.job},     // how a job ends
		{"mark", "text", &d.mark},                           // no effect; the ledger keeps it
		{"no_usage", "", &d.noUsage},                        // leave usage out
		{"output", "tokens", &d.output},                     // state so many output tokens in place of the words
		{"polls", "count", &d.polls},                        // a job is done at this poll, by default the second
		{"reasoning", "tokens", &d.reasoning},               // tokens of reasoning, part of the output
		{"redirect", "URL", &d.redirect},                    // answer 302 with this location
		{"retry_after", "seconds", &d.retryAfter},           // a Retry-After header
		{"seconds", "number", &d.seconds},                   // the length of a transcribed file
		{"status", "400..599", &d.status},                   // the provider's own error with this status
		{"tier", "text", &d.tier},                           // the service tier the reply states
		{"tool", "name", &d.tool},                           // call this tool where the request offers it; see callTool
		{"usage_null", "", &d.usageNull},                    // usage is null
		{"words", "count", &d.words},                        // the length of the answer
	}
}

// directives holds the values of one request.
type directives struct {
	after, delay, gap                time.Duration
	cacheWrite, cacheWrite1h, cached int64
	input, output, reasoning         int64
	chunks, cut, errorAt, hang       int
	polls, retryAfter, status, words int
	seconds                          float64
	job, mark, redirect, tier, tool  string
	arguments                        object // of a tool call
	gzip, noUsage, usageNull         bool
}

// unset is a count that no directive gives; atHalf is that of an error after
// half of a stream.
const (
	unset  = -1
	atHalf = -2
)

func newDirectives() directives {
	return directives{
		input: unset, output: unset, chunks: unset, cut: unset, errorAt: unset, hang: unset,
		polls: unset, retryAfter: unset, words: unset, seconds: unset,
	}
}

var directivePattern = regexp.MustCompile(`\[\[([a-z][a-z0-9_]*)(?:@([A-Za-z0-9_.-]+))?(?:=([^\[\]]*))?\]\]`)

// withoutDirectives is the text that counts as input.
func withoutDirectives(text string) string {
	if !strings.Contains(text, "[[") {
		return text
	}
	return directivePattern.ReplaceAllString(text, " ")
}

// parseDirectives reads the directives in text that are meant for the
// simulator called name.
func parseDirectives(text, name string) (directives, error) {
	d := newDirectives()
	if !strings.Contains(text, "[[") {
		return d, nil
	}
	for _, m := range directivePattern.FindAllStringSubmatch(text, -1) {
		if m[2] != "" && m[2] != name {
			continue
		}
		if err := d.set(m[1], m[3]); err != nil {
			return d, err
		}
	}
	return d, nil
}

// maxCount keeps sums of several counts far from overflow; maxWords bounds the
// memory that one answer takes, all choices together.
const (
	maxCount = 1 << 40
	maxWords = 1_000_000
)

func (d *directives) set(name, value string) error {
	known := d.list()
	i := slices.IndexFunc(known, func(k directive) bool { return k.name == name })
	if i < 0 {
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = k.name
		}
		return fmt.Errorf("unknown directive %q; known: %s", name, strings.Join(names, ", "))
	}
	switch {
	case name == "hang" && value == "":
		d.hang = 0
	case name == "error_in_stream" && value == "":
		d.errorAt = atHalf
	case !assign(known[i].to, value) || !d.accepts(name):
		return fmt.Errorf("directive %s wants %s, got %q", name, known[i].value, value)
	}
	return nil
}

// assign reads a value of the type that to points to.
func assign(to any, value string) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	counts := err == nil && n >= 0 && n <= maxCount
	switch to := to.(type) {
	case *int:
		*to = int(n)
		return counts
	case *int64:
		*to = n
		return counts
	case *float64:
		*to, err = strconv.ParseFloat(value, 64)
		return err == nil && *to >= 0 && *to <= maxCount
	case *time.Duration:
		*to, err = time.ParseDuration(value)
		return err == nil && *to >= 0
	case *string:
		*to = value
		return value != ""
	case *bool:
		*to = true
		return value == ""
	case *object:
		return json.Unmarshal([]byte(value), to) == nil && *to != nil
	}
	return false
}

// accepts reports whether the value that was read is within the bounds of its
// directive.
func (d *directives) accepts(name string) bool {
	switch name {
	case "job":
		return d.job == jobFailed || d.job == jobCancelled || d.job == jobExpired
	case "status":
		return d.status >= 400 && d.status <= 599
	case "words":
		return d.words <= maxWords
	}
	return true
}
