package simulator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Directive is one word with which a prompt steers the answer.
type Directive struct {
	Name  string // what stands before the equals sign
	Value string // the form of its value, "" when it takes none
	Does  string // what the simulator then does
}

// Directives is the list of what a prompt may contain, as [[name]] or
// [[name=value]], any number of them, anywhere in the text. Where a request has
// turns, only the last turn of the user is looked at, so that an old directive
// does not repeat itself; where it has none, all its text. A name may carry
// the name of a simulator, [[status@eu=503]]: the others ignore it. The last
// of several equal names counts. Unknown names are answered with 400.
func Directives() []Directive {
	return []Directive{
		{"after", "duration", "a job is done this long after its creation, in place of after some polls"},
		{"cache_write", "tokens", "tokens written to the cache (five minutes where there are two kinds)"},
		{"cache_write_1h", "tokens", "tokens written to the one-hour cache; a format with one kind of cache adds them to that"},
		{"cached", "tokens", "tokens read from the cache"},
		{"chunks", "count", "pieces of text in a stream; by default one a word"},
		{"cut", "chunks", "close the connection after so many chunks of a stream; after half of any other body; 0: before the status line"},
		{"delay", "duration", "wait before the first byte"},
		{"error_in_stream", "chunks, optional", "an error in place of the rest of the stream, by default after half of it"},
		{"gap", "duration", "wait between the chunks of a stream"},
		{"gzip", "", "a compressed reply, whatever the request accepts"},
		{"hang", "chunks, optional", "stop answering, by default before the status line, until the client goes"},
		{"input", "tokens", "state so many input tokens in place of the words"},
		{"job", "failed, cancelled or expired", "how a job ends"},
		{"mark", "text", "no effect; the ledger keeps it"},
		{"no_usage", "", "leave usage out"},
		{"output", "tokens", "state so many output tokens in place of the words"},
		{"polls", "count", "a job is done at this poll, by default the second"},
		{"reasoning", "tokens", "tokens of reasoning, part of the output"},
		{"redirect", "URL", "answer 302 with this location"},
		{"retry_after", "seconds", "a Retry-After header"},
		{"seconds", "number", "the length of a transcribed file"},
		{"status", "400..599", "the provider's own error with this status"},
		{"tier", "text", "the service tier the reply states"},
		{"usage_null", "", "usage is null"},
		{"words", "count", "the length of the answer"},
	}
}

// directives holds the values of one request; unset counts are -1.
type directives struct {
	after, delay, gap                       time.Duration
	cacheWrite, cacheWrite1h, cached        int64
	input, output, reasoning                int64
	chunks, cut, errorAt, hang              int
	polls, retryAfter, status, words        int
	seconds                                 float64
	job, mark, redirect, tier               string
	errorInStream, gzip, noUsage, usageNull bool
}

func newDirectives() directives {
	return directives{input: -1, output: -1, chunks: -1, cut: -1, errorAt: -1, hang: -1, polls: -1, retryAfter: -1, words: -1, seconds: -1}
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

func (d *directives) set(name, value string) error {
	known := Directives()
	i := slices.IndexFunc(known, func(k Directive) bool { return k.Name == name })
	if i < 0 {
		names := make([]string, len(known))
		for i, k := range known {
			names[i] = k.Name
		}
		return fmt.Errorf("unknown directive %q; known: %s", name, strings.Join(names, ", "))
	}
	if err := d.assign(name, value); err != nil {
		return fmt.Errorf("directive %s wants %s, got %q", name, known[i].Value, value)
	}
	return nil
}

func (d *directives) assign(name, value string) error {
	switch name {
	case "after":
		return setDuration(&d.after, value)
	case "delay":
		return setDuration(&d.delay, value)
	case "gap":
		return setDuration(&d.gap, value)
	case "error_in_stream", "gzip", "no_usage", "usage_null":
		return d.assignFlag(name, value)
	case "job", "mark", "redirect", "tier":
		return d.assignText(name, value)
	case "seconds":
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0 && v <= maxCount) {
			return errValue
		}
		d.seconds = v
		return nil
	case "hang":
		d.hang = 0
		if value == "" {
			return nil
		}
	}
	return d.assignCount(name, value)
}

func (d *directives) assignFlag(name, value string) error {
	if name == "error_in_stream" {
		d.errorInStream = true
		if value == "" {
			return nil
		}
		return setCount(&d.errorAt, value)
	}
	if value != "" {
		return errValue
	}
	switch name {
	case "gzip":
		d.gzip = true
	case "no_usage":
		d.noUsage = true
	case "usage_null":
		d.usageNull = true
	}
	return nil
}

func (d *directives) assignText(name, value string) error {
	switch name {
	case "job":
		if value != jobFailed && value != jobCancelled && value != jobExpired {
			return errValue
		}
		d.job = value
	case "mark":
		d.mark = value
	case "redirect":
		d.redirect = value
	case "tier":
		d.tier = value
	}
	if value == "" {
		return errValue
	}
	return nil
}

func (d *directives) assignCount(name, value string) error {
	switch name {
	case "cache_write":
		return setCount(&d.cacheWrite, value)
	case "cache_write_1h":
		return setCount(&d.cacheWrite1h, value)
	case "cached":
		return setCount(&d.cached, value)
	case "input":
		return setCount(&d.input, value)
	case "output":
		return setCount(&d.output, value)
	case "reasoning":
		return setCount(&d.reasoning, value)
	case "chunks":
		return setCount(&d.chunks, value)
	case "cut":
		return setCount(&d.cut, value)
	case "hang":
		return setCount(&d.hang, value)
	case "polls":
		return setCount(&d.polls, value)
	case "retry_after":
		return setCount(&d.retryAfter, value)
	case "words":
		if err := setCount(&d.words, value); err != nil || d.words > maxWords {
			return errValue
		}
		return nil
	}
	if err := setCount(&d.status, value); err != nil || d.status < 400 || d.status > 599 {
		return errValue
	}
	return nil
}

// maxCount keeps sums of several counts far from overflow; maxWords bounds the
// memory that one answer takes, all choices together.
const (
	maxCount = 1 << 40
	maxWords = 1_000_000
)

var errValue = errors.New("value not accepted")

func setDuration(to *time.Duration, value string) error {
	v, err := time.ParseDuration(value)
	if err != nil || v < 0 {
		return errValue
	}
	*to = v
	return nil
}

func setCount[N int | int64](to *N, value string) error {
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil || v < 0 || v > maxCount {
		return errValue
	}
	*to = N(v)
	return nil
}
