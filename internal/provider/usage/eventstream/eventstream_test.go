package eventstream_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"modelgate/internal/provider/usage/eventstream"
	"modelgate/test/testkit/cloud"
)

// split is what comes of a stream that is pushed in pieces of a size.
func split(stream []byte, piece int) (found []string, flawed bool) {
	var s eventstream.Splitter
	for part := range slices.Chunk(stream, piece) {
		s.Push(part, func(f eventstream.Frame) {
			found = append(found, fmt.Sprintf("%s %s %s", f.Kind, f.Name, f.Payload))
		})
	}
	return found, s.Flawed()
}

// A stream splits alike wherever it is cut.
func TestCuts(t *testing.T) {
	t.Parallel()
	types := []byte("\x01a\x00\x01b\x01\x01c\x02x\x01d\x03xx\x01e\x04xxxx\x01f\x05xxxxxxxx\x01g\x06\x00\x02xx\x01h\x08xxxxxxxx\x01i\x09xxxxxxxxxxxxxxxx")
	stream := slices.Concat(
		cloud.Frame(`{"role":"assistant"}`, ":event-type", "messageStart", ":content-type", "application/json", ":message-type", "event"),
		cloud.Frame(`{}`, ":exception-type", "throttlingException", ":message-type", "exception"),
		cloud.RawFrame(types, "x"), cloud.Frame(""))
	want := []string{`event messageStart {"role":"assistant"}`, "exception throttlingException {}", "  x", "  "}
	for piece := 1; piece <= len(stream); piece++ {
		if got, flawed := split(stream, piece); flawed || !slices.Equal(got, want) {
			t.Fatalf("in pieces of %d: %q, flawed %v, want %q", piece, got, flawed, want)
		}
	}
	for cut := range stream {
		got, flawed := split(stream[:cut], 7)
		if flawed || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("cut at %d: %q, flawed %v", cut, got, flawed)
		}
	}
}

func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	good := cloud.Frame("x", ":message-type", "event")
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	huge := binary.BigEndian.AppendUint32(nil, 4<<30-1)
	huge = binary.BigEndian.AppendUint32(huge, 0)
	huge = binary.BigEndian.AppendUint32(huge, crc32.ChecksumIEEE(huge))
	long := cloud.Frame(strings.Repeat("y", 9<<20))
	for name, c := range map[string]struct {
		stream []byte
		want   int // messages
	}{
		"checksum of the prelude":        {slices.Concat(change(9, 1), good), 0},
		"checksum of the message":        {slices.Concat(change(len(good)-1, 1), good), 1},
		"changed payload":                {slices.Concat(change(len(good)-5, 'z'), good), 1},
		"4 GiB":                          {slices.Concat(huge, good), 0},
		"too long":                       {slices.Concat(good, long, good), 2},
		"header beyond the headers":      {slices.Concat(cloud.RawFrame([]byte{200, 'x'}, "x"), good), 1},
		"value beyond the headers":       {slices.Concat(cloud.RawFrame([]byte("\x01a\x07\x00\x09x"), "x"), good), 1},
		"header of an unknown type":      {slices.Concat(cloud.RawFrame([]byte("\x01a\x0ax"), "x"), good), 1},
		"length of a value missing":      {slices.Concat(cloud.RawFrame([]byte("\x01a\x07\x00"), "x"), good), 1},
		"nothing but zeros":              {make([]byte, 64), 0},
		"headers longer than the stream": {slices.Concat(change(7, 250), good), 0},
	} {
		for _, piece := range []int{3, 12, 1 << 20, len(c.stream)} {
			if got, flawed := split(c.stream, piece); !flawed || len(got) != c.want {
				t.Errorf("%s, in pieces of %d: %d messages, flawed %v, want %d", name, piece, len(got), flawed, c.want)
			}
		}
	}
}

// FuzzSplitter holds the result against that of another cut.
func FuzzSplitter(f *testing.F) {
	f.Add(cloud.Frame("x", ":message-type", "event", ":event-type", "chunk"), uint8(5))
	f.Add(slices.Concat(cloud.Frame("a"), cloud.Frame("b")), uint8(1))
	f.Add([]byte("\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00"), uint8(13))
	f.Fuzz(func(t *testing.T, stream []byte, piece uint8) {
		if len(stream) == 0 {
			return
		}
		whole, flawed := split(stream, len(stream))
		cut, flawedToo := split(stream, int(piece)+1)
		if !slices.Equal(whole, cut) || flawed != flawedToo {
			t.Errorf("%q, %v in one piece and %q, %v in pieces of %d", whole, flawed, cut, flawedToo, int(piece)+1)
		}
	})
}
