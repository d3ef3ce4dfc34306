package spool

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"modelgate"
	"modelgate/internal/fuzzing"
)

func TestRecordsRoundTrip(t *testing.T) {
	t.Parallel()
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
		}
		if m := rapid.MapOfN(text, text, 0, 18).Draw(t, "attribution"); len(m) > 0 {
			begin.Attribution = m
		}
		got, err := DecodeBegin(begin.ID, AppendBegin(nil, &begin))
		if diff := cmp.Diff(begin, got); err != nil || diff != "" {
			t.Fatalf("begin came back changed (%v):\n%s", err, diff)
		}

		end := modelgate.CallEnd{
			StatusCode: rapid.IntRange(0, 999).Draw(t, "status"), Cost: modelgate.Nano(rapid.Int64().Draw(t, "cost")),
			ParseStatus: modelgate.ParsePartial,
		}
		for _, n := range endNumbers(&end) {
			*n = rapid.Int64().Draw(t, "number")
		}
		for _, s := range endTexts(&end) {
			*s = text.Draw(t, "text")
		}
		if rapid.Bool().Draw(t, "job") {
			end.Job = &modelgate.NewJob{
				TaskID: modelgate.TaskID(text.Draw(t, "task")), Kind: modelgate.ModelKind(text.Draw(t, "kind")), Way: text.Draw(t, "way"),
				Credential: text.Draw(t, "credential"), Deadline: time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "deadline")).UTC(),
				Reserve: modelgate.Nano(rapid.Int64().Draw(t, "reserve")), Price: rapid.StringN(0, 200, modelgate.MaxFrozen).Draw(t, "price"),
			}
		}
		gotEnd, err := DecodeEnd(AppendEnd(nil, &end))
		if diff := cmp.Diff(end, gotEnd); err != nil || diff != "" {
			t.Fatalf("end came back changed (%v):\n%s", err, diff)
		}
	})
}

// A BEGIN of the first version, which had no Holds, is still read.
func TestOlderBegin(t *testing.T) {
	t.Parallel()
	begin := modelgate.CallBegin{ClientID: "c", KeyID: "k", At: time.UnixMicro(7).UTC(), ViaSDK: true, Holds: 3}
	now := AppendBegin(nil, &begin)
	tail := len(now) - 2 // Holds, and the number of attribution pairs
	older := append(append([]byte{1}, now[1:tail]...), now[tail+1:]...)
	got, err := DecodeBegin([16]byte{}, older)
	begin.Holds = 0
	if diff := cmp.Diff(begin, got); err != nil || diff != "" {
		t.Errorf("begin came back changed (%v):\n%s", err, diff)
	}
	if _, err := DecodeBegin([16]byte{}, append([]byte{3}, now[1:]...)); err == nil {
		t.Error("a version that is not known was read")
	}
}

// An END of the first version, which had no Job, is still read.
func TestOlderEnd(t *testing.T) {
	t.Parallel()
	end := modelgate.CallEnd{StatusCode: 200, Cost: 7, ParseStatus: modelgate.ParseOK, Usage: modelgate.Usage{Input: 3, Size: "s"}}
	now := AppendEnd(nil, &end)
	older := append([]byte{1}, now[1:len(now)-1]...)
	got, err := DecodeEnd(older)
	if diff := cmp.Diff(end, got); err != nil || diff != "" {
		t.Errorf("end came back changed (%v):\n%s", err, diff)
	}
}

// The longest END, its job included, fits into the room set aside for it.
func TestLongestEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4096)
	end := modelgate.CallEnd{StatusCode: math.MinInt, Cost: math.MinInt64, ParseStatus: modelgate.ParseProvisional, Job: &modelgate.NewJob{
		TaskID: modelgate.TaskID(long[:modelgate.MaxTaskID]), Kind: modelgate.ModelKind(long), Way: long, Credential: long, Price: long[:modelgate.MaxFrozen],
		Deadline: time.UnixMicro(math.MinInt64), Reserve: math.MinInt64,
	}}
	for _, n := range endNumbers(&end) {
		*n = math.MinInt64
	}
	for _, s := range endTexts(&end) {
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
		if _, err := DecodeBegin([16]byte{}, begin[:n]); err == nil {
			t.Errorf("DecodeBegin of %d of %d bytes succeeded", n, len(begin))
		}
	}
	for n := range end {
		if _, err := DecodeEnd(end[:n]); err == nil {
			t.Errorf("DecodeEnd of %d of %d bytes succeeded", n, len(end))
		}
	}
	if _, err := DecodeEnd(append(bytes.Clone(end), 0)); err == nil {
		t.Error("DecodeEnd took a byte too many")
	}
	end[0]++
	if _, err := DecodeEnd(end); err == nil {
		t.Error("DecodeEnd took an unknown version")
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(AppendBegin(nil, &modelgate.CallBegin{ClientID: "c", Attribution: map[string]string{"k": "v"}}))
	f.Add(AppendEnd(nil, &modelgate.CallEnd{StatusCode: 200, ParseStatus: modelgate.ParseOK}))
	fuzzing.Fuzz(f, func(t *testing.T, payload []byte) {
		if b, err := DecodeBegin([16]byte{}, payload); err == nil && len(b.Attribution) > len(payload) {
			t.Fatal("more attribution than bytes")
		}
		if e, err := DecodeEnd(payload); err == nil {
			again, err := DecodeEnd(AppendEnd(nil, &e))
			if err != nil || !cmp.Equal(again, e) {
				t.Fatalf("end is not stable: %+v, %v", again, err)
			}
		}
	})
}
