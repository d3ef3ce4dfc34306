package modelgate_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"modelgate"
)

func TestIDsIncreaseWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Int64Range(-5000, 5000), 1, 50).Draw(t, "steps")
		now := time.Date(2026, 5, 4, 0, 0, 0, 123_456_789, time.UTC)
		ids := modelgate.NewIDs(func() time.Time { return now })
		last, latest := "", time.Time{}
		for _, ms := range steps {
			now = now.Add(time.Duration(ms) * time.Millisecond)
			id := ids.New()
			if text := id.String(); text <= last {
				t.Fatalf("%s follows %s", text, last)
			}
			last = id.String()
			if now.Truncate(time.Millisecond).After(latest) {
				latest = now.Truncate(time.Millisecond)
			}
			if !id.Time().Equal(latest) {
				t.Fatalf("id holds %s, want %s", id.Time(), latest)
			}
		}
	})
}

// More ids than a millisecond's counter can hold move on to the next one.
func TestIDsOfAStoppedClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)
	ids := modelgate.NewIDs(func() time.Time { return now })
	first := ids.New()
	last := first
	for range 5000 {
		next := ids.New()
		if next.String() <= last.String() {
			t.Fatalf("%s follows %s", next, last)
		}
		last = next
	}
	if got := last.Time().Sub(first.Time()); got != time.Millisecond {
		t.Errorf("5000 ids took %s of id time, want 1ms", got)
	}
}

func TestIDsAreUUIDv7(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 987_654_321, time.FixedZone("", 3600))
	id := modelgate.NewIDs(func() time.Time { return now }).New()
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id.String()) {
		t.Errorf("%s has not the version and variant of a UUIDv7", id)
	}
	if got, want := id.Time(), now.Truncate(time.Millisecond); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("time %s, want %s in UTC", got, want)
	}
}

func TestIDsAreUniqueAcrossGoroutines(t *testing.T) {
	t.Parallel()
	ids := modelgate.NewIDs(time.Now)
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		all []string
	)
	for range 8 {
		wg.Go(func() {
			own := make([]string, 0, 500)
			for range 500 {
				own = append(own, ids.New().String())
			}
			if !slices.IsSorted(own) {
				t.Error("the ids of one goroutine are out of order")
			}
			mu.Lock()
			all = append(all, own...)
			mu.Unlock()
		})
	}
	wg.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != 4000 {
		t.Errorf("%d different ids, want 4000", n)
	}
}

func TestParseUUID(t *testing.T) {
	t.Parallel()
	const text = "0196a7e1-7c00-7abc-8def-0123456789ab"
	for _, s := range []string{text, strings.ToUpper(text)} {
		if u, ok := modelgate.ParseUUID(s); !ok || u.String() != text {
			t.Errorf("ParseUUID(%s) = %s, %v", s, u, ok)
		}
	}
	for _, s := range []string{
		"", text[:35], text + "0", "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", ""), text[:35] + "g", " " + text[1:],
		strings.Replace(text, "-", "_", 1), "0196a7e17-c00-7abc-8def-0123456789ab", strings.Repeat("é", 18),
	} {
		if u, ok := modelgate.ParseUUID(s); ok || u != (modelgate.UUID{}) {
			t.Errorf("ParseUUID(%q) = %s, %v, want nothing", s, u, ok)
		}
	}
}

func FuzzParseUUID(f *testing.F) {
	f.Add("0196a7e1-7c00-7abc-8def-0123456789ab")
	f.Add("0196A7E1-7C00-7ABC-8DEF-0123456789AB")
	f.Add("00000000-0000-0000-0000-00000000000g")
	shape := regexp.MustCompile(`\A[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z`)
	f.Fuzz(func(t *testing.T, s string) {
		u, ok := modelgate.ParseUUID(s)
		if ok != shape.MatchString(s) {
			t.Fatalf("ParseUUID(%q) = %v", s, ok)
		}
		if ok && u.String() != strings.ToLower(s) {
			t.Fatalf("%q came back as %s", s, u)
		}
	})
}
