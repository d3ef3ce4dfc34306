package usage_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/provider"
	"modelgate/internal/provider/usage"
	"modelgate/test/testkit/cloud"
)

// fixture is one recorded shape of a reply. A file of testdata holds several,
// each begun by a line "=== name". Header lines follow, then "body:" on a
// line of its own and the body up to the next fixture. Headers:
//
//	shape   where the shape comes from, in words
//	call    format and door path, or format and "METHOD /path" of the proxy
//	status  HTTP status, 200 if absent
//	type    Content-Type; in a body of application/vnd.amazon.eventstream each
//	        line is a message: NAME and the payload, "chunk" with what it has in
//	        base64, and ! before the name of an exception
//	header  of the reply: Name=value
//	asked   what the request said: characters=, size=, quality=, count=, and
//	        seconds= in millionths
//	usage   the expected usage: unit=count, and modifiers
//	seen    nothing, some or all, at full length
//	price   rates as in the configuration, USD per the unit's usual measure
//	mult    multipliers, field:value=millionths
//	cost    nano-USD, then the arithmetic that gives it: 95600 = 56*250 + …
//	cuts    the most that any cut within the last kilobyte may show; whatever
//	        it shows, its cost is never above the full one
type fixture struct {
	name string
	head map[string]string
	body []byte
}

func loadFixtures(t testing.TB) []fixture {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var all []fixture
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq("\n"+string(content), "\n=== ") {
			if strings.TrimSpace(part) == "" || strings.HasPrefix(part, "\n#") {
				continue
			}
			all = append(all, parseFixture(t, file, strings.TrimPrefix(part, "\n=== ")))
		}
	}
	return all
}

func parseFixture(t testing.TB, file, text string) fixture {
	t.Helper()
	head, body, ok := strings.Cut(text, "\nbody:\n")
	if !ok {
		t.Fatalf("%s: fixture without body: %.60q", file, text)
	}
	f := fixture{head: map[string]string{"status": "200"}, body: []byte(body + "\n")} // the separator took one
	for i, line := range strings.Split(head, "\n") {
		if i == 0 {
			f.name = filepath.Base(file) + ": " + line
			continue
		}
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("%s: bad line %q", f.name, line)
		}
		f.head[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	if strings.Contains(f.head["type"], "amazon.eventstream") {
		f.body = messages(body)
	}
	if strings.Contains(f.head["type"], "json") && !strings.Contains(f.head["type"], "ndjson") {
		f.body = []byte(strings.TrimRight(body, "\n"))
	}
	return f
}

// messages writes the lines as messages of AWS's streams.
func messages(lines string) (stream []byte) {
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		name, payload, _ := strings.Cut(strings.TrimSpace(line), " ")
		if exception, ok := strings.CutPrefix(name, "!"); ok {
			stream = append(stream, cloud.Exception(exception, payload)...)
			continue
		}
		if name == "chunk" {
			payload = fmt.Sprintf(`{"bytes":%q,"p":"abcdefgh"}`, base64.StdEncoding.EncodeToString([]byte(payload)))
		}
		stream = append(stream, cloud.Event(name, payload)...)
	}
	return stream
}

// reader finds the usage reader as the relay does: through a provider of the
// fixture's format.
func (f fixture) reader(t testing.TB) *usage.Reader {
	t.Helper()
	words := strings.Fields(f.head["call"])
	p, err := provider.New(provider.Config{Name: "p", Format: words[0], BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(words) == 2 {
		d := p.Door(words[1])
		if d == nil {
			t.Fatalf("%s: format %s has no door %s", f.name, words[0], words[1])
		}
		return d.Reader
	}
	r, _ := p.Route(words[1], words[2])
	if r == nil {
		t.Fatalf("%s: format %s does not allow %s %s", f.name, words[0], words[1], words[2])
	}
	return r.Reader
}

func (f fixture) meter(t testing.TB, r *usage.Reader) usage.Meter {
	t.Helper()
	status, err := strconv.Atoi(f.head["status"])
	if err != nil {
		t.Fatal(err)
	}
	reply := usage.Reply{Status: status, ContentType: f.head["type"], Header: make(http.Header)}
	for name, value := range pairs(t, f.head["header"]) {
		reply.Header.Set(name, value)
	}
	for name, value := range pairs(t, f.head["asked"]) {
		switch name {
		case "characters":
			reply.Requested.Characters = number(t, value)
		case "size":
			reply.Requested.Size = value
		case "quality":
			reply.Requested.Quality = value
		case "seconds":
			reply.Requested.Seconds = number(t, value)
		case "count":
			reply.Requested.Count = number(t, value)
		case "search":
			reply.Requested.Search = true
		default:
			t.Fatalf("%s: asked %s", f.name, name)
		}
	}
	return r.Meter(reply)
}

func pairs(t testing.TB, text string) map[string]string {
	t.Helper()
	m := make(map[string]string)
	for _, word := range strings.Fields(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			t.Fatalf("want name=value, have %q", word)
		}
		m[name] = value
	}
	return m
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (f fixture) usage(t testing.TB) modelgate.Usage {
	t.Helper()
	var u modelgate.Usage
	counts, words := make(map[string]*int64), make(map[string]*string)
	for i, n := range u.Counters() {
		if n != nil {
			counts[modelgate.CounterName(i)] = n
		}
	}
	for i, word := range u.Words() {
		words[modelgate.WordName(i)] = word
	}
	for name, value := range pairs(t, f.head["usage"]) {
		switch {
		case counts[name] != nil:
			*counts[name] = number(t, value)
		case words[name] != nil:
			*words[name] = value
		default:
			t.Fatalf("%s: usage %s", f.name, name)
		}
	}
	return u
}

func (f fixture) price(t testing.TB) *modelgate.Price {
	t.Helper()
	p := &modelgate.Price{}
	for name, value := range pairs(t, f.head["price"]) {
		unit, ok := modelgate.UnitByName(name)
		usd, err := modelgate.ParseUSD(value)
		if !ok || err != nil {
			t.Fatalf("%s: price %s=%s: %v", f.name, name, value, err)
		}
		if err := p.Base.Set(unit, usd); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range pairs(t, f.head["mult"]) {
		field, is, _ := strings.Cut(name, ":")
		p.Multipliers = append(p.Multipliers, modelgate.Multiplier{Field: field, Value: is, Millionths: number(t, value)})
	}
	return p
}

// cost is the stated cost; its arithmetic is checked.
func (f fixture) cost(t testing.TB) modelgate.Nano {
	t.Helper()
	left, right, ok := strings.Cut(f.head["cost"], "=")
	if !ok {
		t.Fatalf("%s: cost without arithmetic", f.name)
	}
	want, sum := number(t, strings.TrimSpace(left)), int64(0)
	for term := range strings.SplitSeq(right, "+") {
		product := int64(1)
		for factor := range strings.SplitSeq(term, "*") {
			factor, divisor, divided := strings.Cut(strings.TrimSpace(factor), "/")
			product *= number(t, factor)
			if divided {
				product /= number(t, divisor)
			}
		}
		sum += product
	}
	if sum != want {
		t.Fatalf("%s: cost %d, its arithmetic gives %d", f.name, want, sum)
	}
	return modelgate.Nano(want)
}

var seenNames = map[usage.Seen]string{usage.Nothing: "nothing", usage.Some: "some", usage.All: "all"}

func TestFixtures(t *testing.T) {
	t.Parallel()
	fixtures := loadFixtures(t)
	if len(fixtures) < 40 {
		t.Errorf("%d fixtures, want 40 at least", len(fixtures))
	}
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			reader := f.reader(t)
			for way, next := range map[string]func(int) int{"whole": usage.Whole, "bytes": usage.OneByte, "random": usage.Random} {
				u, seen, terminal := usage.Feed(f.meter(t, reader), f.body, next)
				if diff := cmp.Diff(f.usage(t), u); diff != "" {
					t.Errorf("%s: usage (-want +got)\n%s", way, diff)
				}
				if seenNames[seen] != f.head["seen"] {
					t.Errorf("%s: seen %s, want %s", way, seenNames[seen], f.head["seen"])
				}
				if want := f.ends(); terminal != want {
					t.Errorf("%s: end announced %d times, want %d", way, terminal, want)
				}
			}
			usage := f.usage(t)
			full, _, _ := pricing.Cost(f.price(t), &usage, time.Unix(0, 0))
			if full != f.cost(t) {
				t.Errorf("cost %d, want %d", full, f.cost(t))
			}
			f.cuts(t, reader, full)
			if strings.Contains(f.head["type"], "amazon.eventstream") {
				f.exceptions(t, reader, full)
			}
		})
	}
}

// ends is how often a complete body announces its end.
func (f fixture) ends() int {
	if f.head["end"] == "silent" {
		return 0
	}
	return 1
}

// cuts feeds every beginning of the body that ends within its last kilobyte.
func (f fixture) cuts(t *testing.T, reader *usage.Reader, full modelgate.Nano) {
	t.Helper()
	if dearer := f.head["cut cost"]; dearer != "" { // what makes it cheaper stands after the usage
		_, _ = fmt.Sscan(dearer, &full)
	}
	most := usage.Nothing
	for n := max(0, len(f.body)-1024); n < len(f.body); n++ {
		u, seen, _ := usage.Feed(f.meter(t, reader), f.body[:n], usage.Whole)
		cost, _, _ := pricing.Cost(f.price(t), &u, time.Unix(0, 0))
		if cost > full {
			t.Errorf("cut at %d costs %d, more than the full %d", n, cost, full)
		}
		most = max(most, seen)
	}
	if seenNames[most] != f.head["cuts"] {
		t.Errorf("cuts show %s, want %s", seenNames[most], f.head["cuts"])
	}
}

// exceptions ends a stream of binary messages with an exception before each of them
// and after the last.
func (f fixture) exceptions(t *testing.T, reader *usage.Reader, full modelgate.Nano) {
	t.Helper()
	for at := 0; at <= len(f.body); {
		stream := slices.Concat(f.body[:at], cloud.Exception("modelStreamErrorException", `{"message":"x"}`))
		u, seen, terminal := usage.Feed(f.meter(t, reader), stream, usage.Whole)
		cost, _, _ := pricing.Cost(f.price(t), &u, time.Unix(0, 0))
		if seen == usage.All || cost > full || terminal != 1 {
			t.Errorf("an exception at %d: seen %s, cost %d of %d, end announced %d times", at, seenNames[seen], cost, full, terminal)
		}
		if at == len(f.body) {
			break
		}
		at += int(binary.BigEndian.Uint32(f.body[at:]))
	}
}

// Every reader that a row uses has a fixture of a whole reply, and one of a
// stream where its replies can be streamed.
func TestEveryReaderHasFixtures(t *testing.T) {
	t.Parallel()
	whole, streamed := make(map[*usage.Reader]bool), make(map[*usage.Reader]bool)
	for _, f := range loadFixtures(t) {
		switch media := f.head["type"]; {
		case strings.Contains(media, "event-stream"), strings.Contains(media, "eventstream"), strings.Contains(media, "ndjson"):
			streamed[f.reader(t)] = true
		default:
			whole[f.reader(t)] = true
		}
		if f.head["shape"] == "" {
			t.Errorf("%s does not say where its shape is from", f.name)
		}
	}
	neverStreamed := map[*usage.Reader]bool{usage.Predictions: true, usage.VertexPredictions: true, usage.Prediction: true, usage.Video: true, usage.Recording: true}
	check := func(format, path string, reader *usage.Reader) {
		if reader != nil && (!whole[reader] || !streamed[reader] && !neverStreamed[reader]) {
			t.Errorf("%s %s is read by %s: whole %v, streamed %v", format, path, reader, whole[reader], streamed[reader])
		}
	}
	for _, f := range provider.Formats() {
		for _, d := range f.Doors {
			check(f.Name, d.Path, d.Reader)
		}
		for _, r := range f.Allow {
			check(f.Name, r.Pattern, r.Reader)
		}
	}
}
