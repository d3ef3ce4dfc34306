package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"modelgate/internal/pricing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
)

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
	known := NewDecoder() // as a shipper has it: what it remembers must not show
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 40, 160)
		begin := modelgate.CallBegin{
			ID:           modelgate.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
			At:           time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "at")).UTC(),
			ClientID:     modelgate.ClientID(text.Draw(t, "client")),
			KeyID:        modelgate.KeyID(text.Draw(t, "key")),
			SubAccountID: modelgate.SubAccountID(text.Draw(t, "sub")),
			Provider:     text.Draw(t, "provider"), Model: text.Draw(t, "model"), Slug: text.Draw(t, "slug"),
			Author: text.Draw(t, "author"), Kind: modelgate.ModelKind(text.Draw(t, "kind")),
			Region: text.Draw(t, "region"), Door: text.Draw(t, "door"), ViaSDK: rapid.Bool().Draw(t, "sdk"),
			Holds: modelgate.Holds(rapid.Byte().Draw(t, "holds")),
			Sent:  modelgate.SentEstimate{Input: rapid.Int64().Draw(t, "input"), Cost: modelgate.Nano(rapid.Int64().Draw(t, "cost")), PriceLabel: text.Draw(t, "label")},
		}
		if n := rapid.SliceOfN(rapid.Int64(), 0, 24).Draw(t, "rules"); len(n) > 0 {
			begin.Rules = n
		}
		if m := rapid.MapOfN(text, text, 0, 18).Draw(t, "attribution"); len(m) > 0 {
			begin.Attribution = m
		}
		got, err := known.Begin(begin.ID, AppendBegin(nil, &begin))
		begin.Attribution = modelgate.Row(begin, modelgate.CallEnd{}).Attribution
		if diff := cmp.Diff(begin, got); err != nil || diff != "" {
			t.Fatalf("begin came back changed (%v):\n%s", err, diff)
		}

		end := modelgate.CallEnd{
			StatusCode: rapid.IntRange(0, 999).Draw(t, "status"), Cost: modelgate.Nano(rapid.Int64().Draw(t, "cost")),
			ParseStatus: modelgate.ParsePartial,
		}
		for _, n := range numbersOf(&end) {
			*n = rapid.Int64().Draw(t, "number")
		}
		for _, s := range textsOf(&end) {
			*s = text.Draw(t, "text")
		}
		if rapid.Bool().Draw(t, "stated") {
			stated := modelgate.Nano(rapid.Int64().Draw(t, "stated cost"))
			end.StatedCost = &stated
		}
		if rapid.Bool().Draw(t, "job") {
			end.Job = &modelgate.NewJob{
				TaskID: modelgate.TaskID(text.Draw(t, "task")), Kind: modelgate.ModelKind(text.Draw(t, "kind")), Protocol: text.Draw(t, "protocol"),
				Credential: text.Draw(t, "credential"), Deadline: time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "deadline")).UTC(),
				Reserve: modelgate.Nano(rapid.Int64().Draw(t, "reserve")), Price: rapid.StringN(0, 200, pricing.MaxSnapshot).Draw(t, "price"),
			}
		}
		gotEnd, err := known.End(AppendEnd(nil, &end))
		if diff := cmp.Diff(end, gotEnd); err != nil || diff != "" {
			t.Fatalf("end came back changed (%v):\n%s", err, diff)
		}
	})
}

// A payload of another version is refused.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	begin := AppendBegin(nil, &modelgate.CallBegin{ClientID: "c"})
	begin[0]++
	if _, err := NewDecoder().Begin([16]byte{}, begin); !errors.Is(err, errRecord) {
		t.Errorf("BEGIN: %v", err)
	}
}

// numbersOf are all numbers of an END that it may leave out.
func numbersOf(end *modelgate.CallEnd) []*int64 {
	all := []*int64{&end.LatencyMS, &end.FirstByteMS}
	for _, n := range end.Usage.Counters() {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

// textsOf are all texts of an END but its parse status.
func textsOf(end *modelgate.CallEnd) []*string {
	words := end.Usage.Words()
	return append(words[:], &end.Provider, &end.Model, &end.Region, &end.PriceLabel)
}

// The longest END, its job included, fits into the room set aside for it.
func TestLongestEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4096)
	end := modelgate.CallEnd{StatusCode: math.MinInt, Cost: math.MinInt64, ParseStatus: modelgate.ParseProvisional, Job: &modelgate.NewJob{
		TaskID: modelgate.TaskID(long[:modelgate.MaxTaskID]), Kind: modelgate.ModelKind(long), Protocol: long, Credential: long, Price: long[:pricing.MaxSnapshot],
		Deadline: time.UnixMicro(math.MinInt64), Reserve: math.MinInt64,
	}}
	least := modelgate.Nano(math.MinInt64)
	end.StatedCost = &least
	for _, n := range numbersOf(&end) {
		*n = math.MinInt64
	}
	for _, s := range textsOf(&end) {
		*s = long
	}
	if n := len(AppendEnd(nil, &end)); n > maxEnd {
		t.Errorf("an END of %d bytes, room for %d", n, maxEnd)
	}
}

func TestRecordsRefuseDamage(t *testing.T) {
	t.Parallel()
	begin := AppendBegin(nil, &modelgate.CallBegin{ClientID: "c", Attribution: map[string]string{"k": "v"}})
	end := AppendEnd(nil, &modelgate.CallEnd{StatusCode: 200})
	for n := range begin {
		if _, err := NewDecoder().Begin([16]byte{}, begin[:n]); err == nil {
			t.Errorf("DecodeBegin of %d of %d bytes succeeded", n, len(begin))
		}
	}
	for n := range end {
		if _, err := NewDecoder().End(end[:n]); err == nil {
			t.Errorf("DecodeEnd of %d of %d bytes succeeded", n, len(end))
		}
	}
	if _, err := NewDecoder().End(append(bytes.Clone(end), 0)); err == nil {
		t.Error("DecodeEnd took a byte too many")
	}
	end[0]++
	if _, err := NewDecoder().End(end); err == nil {
		t.Error("DecodeEnd took an unknown version")
	}
}

// Records that share texts and attributions are those that were written,
// whatever was read before them.
func TestSharedRecords(t *testing.T) {
	t.Parallel()
	d := NewDecoder()
	for n := range 20_000 { // more keys than a decoder remembers texts, and each with two attributions
		begin := modelgate.CallBegin{
			At: time.UnixMicro(int64(n)).UTC(), ClientID: "c", KeyID: modelgate.KeyID(fmt.Sprint("key-", n%7919)), Model: fmt.Sprint("m", n%3),
			Attribution: map[string]string{"user": fmt.Sprint("u", n%2)},
		}
		if n%5 == 0 {
			begin.SubAccountID = "s"
		}
		got, err := d.Begin([16]byte{}, AppendBegin(nil, &begin))
		want := modelgate.Row(begin, modelgate.CallEnd{}).CallBegin
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("begin %d came back changed (%v):\n%s", n, err, diff)
		}
	}
}

// A record whose texts are known takes no room of its own.
func TestKnownRecordsAllocateNothing(t *testing.T) {
	d := NewDecoder()
	begin := AppendBegin(nil, &modelgate.CallBegin{ClientID: "c", KeyID: "k", Model: "m", Attribution: map[string]string{"team": "x"}})
	end := AppendEnd(nil, &modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK, PriceLabel: "p"})
	n := testing.AllocsPerRun(100, func() {
		if _, err := d.Begin([16]byte{}, begin); err != nil {
			t.Fatal(err)
		}
		if _, err := d.End(end); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(AppendBegin(nil, &modelgate.CallBegin{ClientID: "c", Attribution: map[string]string{"k": "v"}}))
	f.Add(AppendEnd(nil, &modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK}))
	known, fresh := NewDecoder(), NewDecoder()
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := known.Begin([16]byte{}, payload)
		if err == nil && len(b.Attribution) > len(payload)+2 {
			t.Fatal("more attribution than bytes")
		}
		*fresh = Decoder{seed: fresh.seed}
		if want, wantErr := fresh.Begin([16]byte{}, payload); (err == nil) != (wantErr == nil) || err == nil && !cmp.Equal(want, b) {
			t.Fatalf("what was read before shows: %+v (%v), want %+v (%v)", b, err, want, wantErr)
		}
		if e, err := known.End(payload); err == nil {
			again, err := known.End(AppendEnd(nil, &e))
			if err != nil || !cmp.Equal(again, e) {
				t.Fatalf("end is not stable: %+v, %v", again, err)
			}
		}
	})
}

// A segment may be read by the next version, so the bytes of an entry must not
// change with a unit that is added: each count is found by a number that stays
// its own. Add a line for a new one; never change a line.
func TestCountersKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	want := map[string]byte{
		"input": 1, "cached_input": 2, "cache_write": 3, "cache_write_1h": 4, "output": 5, "reasoning": 6, "audio_input": 7, "audio_output": 8,
		"image_input": 9, "image_output": 10, "cached_audio_input": 11, "cached_image_input": 12, "video_input": 13, "images": 14, "megapixels": 15,
		"seconds": 16, "characters": 18, "pages": 19, "searches": 20, "file_searches": 21, "code_sessions": 22, "grounded_requests": 23,
		"videos": 128, "advisor_input": 129, "advisor_cached_input": 130, "advisor_cache_write": 131, "advisor_cache_write_1h": 132, "advisor_output": 133,
	}
	for i := range modelgate.CounterCount {
		var end modelgate.CallEnd
		n := end.Usage.Counters()[i]
		if n == nil {
			continue
		}
		*n = 1
		name := modelgate.CounterName(i)
		if entry := AppendEnd(nil, &end); entry[1] != want[name] || entry[2] != 2 || entry[3] != 0 {
			t.Errorf("%s: the counts of an entry are % x, want its place %d, 1 as a varint, and the end", name, entry[1:4], want[name])
		}
		delete(want, name)
	}
	stated := modelgate.Nano(1)
	if entry := AppendEnd(nil, &modelgate.CallEnd{StatedCost: &stated}); entry[1] != 255 || entry[2] != 2 || entry[3] != 0 {
		t.Errorf("the stated cost: % x, want its place 255", entry[1:4])
	}
	for name := range want {
		t.Errorf("%s is written no more; entries that have it cannot be read", name)
	}
}
