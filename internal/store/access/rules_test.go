package access

import (
	"encoding/json"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"modelgate"
)

func TestRulesAreShared(t *testing.T) {
	t.Parallel()
	written := func(providers ...string) string {
		var set modelgate.Entitlements
		for _, p := range providers {
			set = append(set, modelgate.Entitlement{Axis: modelgate.AxisProvider, Provider: p, ModelPattern: "gpt-*", Effect: modelgate.Allow})
		}
		b, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var r rules
	read := func(b string) modelgate.Entitlements {
		set, err := r.read([]byte(b))
		var want modelgate.Entitlements
		if wrong := json.Unmarshal([]byte(b), &want); wrong != nil || err != nil || !reflect.DeepEqual(set, want) {
			t.Fatalf("%s was read as %v (%v), want %v (%v)", b, set, err, want, wrong)
		}
		return set
	}
	first, again, other := read(written("openai", "anthropic", "openai")), read(written("openai", "anthropic", "openai")), read(written("openai"))
	if &first[0] != &again[0] || &first[0] == &other[0] {
		t.Error("the same rules are not shared, or others are")
	}
	if len(first) != cap(first) {
		t.Errorf("%d rules take the room of %d", len(first), cap(first))
	}
	behind := func(a, b string) bool {
		return unsafe.Pointer(unsafe.StringData(b)) == unsafe.Add(unsafe.Pointer(unsafe.StringData(a)), len(a))
	}
	if !behind(first[0].Provider, first[0].ModelPattern) || !behind(first[0].ModelPattern, first[1].Provider) {
		t.Error("the texts of a set are objects of their own")
	}
	runtime.KeepAlive(first)
	for _, b := range []string{"null", "[]"} {
		if set := read(b); len(set) != 0 {
			t.Errorf("%s was read as %v", b, set)
		}
	}
	if _, err := r.read([]byte("[{")); err == nil {
		t.Error("half a text was read")
	}
	if err := (ruleColumn{&r, &first}).Scan(int64(1)); err == nil {
		t.Error("a number was read")
	}
}

// What nobody holds any more goes, although it is known, and is read again.
func TestRulesGo(t *testing.T) {
	t.Parallel()
	const text = `[{"axis":"provider","provider":"openai","model_pattern":"*","effect":"allow"}]`
	var r rules
	gone := make(chan struct{})
	func() {
		set, err := r.read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(&set[0], func(done chan struct{}) { close(done) }, gone)
	}()
	for there := true; there; {
		runtime.GC()
		select {
		case <-gone:
			there = false
		default:
		}
	}
	set, err := r.read([]byte(text))
	if err != nil || len(set) != 1 || set[0].Provider != "openai" {
		t.Errorf("read again as %v, %v", set, err)
	}
}
