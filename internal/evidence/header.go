package evidence

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"

	"modelgate"
)

var (
	orgShape  = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	timeShape = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`)
	// memberNames are those of a header and of the anchor in it.
	memberNames = [...]string{"anchor", "exported_at", "format", "from_seq", "key", "latest_seq", "org", "rotations", "to_seq"}
	anchorNames = [...]string{"hash", "note", "seq"}
)

// readHeader checks the first line and starts the chain.
func (v *verifier) readHeader(text []byte) error {
	h := &v.header
	members, ok := scanObject(text, nil)
	if !ok || !named(members, memberNames[:]) {
		return bad(Tampered, "the line is not the header of an evidence file")
	}
	anchored, ok := scanObject(members[0].value, nil)
	if !ok || !named(anchored, anchorNames[:]) || !noNulls(members) || json.Unmarshal(text, h) != nil || slices.Contains(nullable(members[7].value), nil) {
		return bad(Tampered, "the header has members of the wrong type")
	}
	if h.Format != Format {
		return bad(Tampered, "the format is not %s", Format)
	}
	if !orgShape.MatchString(h.Org) || !timeShape.MatchString(h.ExportedAt) || !isHash([]byte(h.Anchor.Hash)) {
		return bad(Tampered, "the header has a malformed value")
	}
	v.sum = headerSum(text)
	v.report.Org, v.report.From, v.report.To, v.report.Latest = modelgate.ClientID(h.Org), h.From, h.To, h.Latest
	v.report.ExportedAt = h.ExportedAt
	if h.From < 1 || h.To < h.From-1 || h.Latest < h.To || h.Anchor.Seq != h.From-1 {
		return bad(Tampered, "the numbers of the header contradict each other")
	}
	v.chain.ClientID, v.chain.Seq = modelgate.ClientID(h.Org), h.Anchor.Seq
	copy(v.chain.Hash[:], unhex(h.Anchor.Hash))
	if h.From == 1 && (v.chain.Hash != Hash{} || h.Anchor.Note != nil) {
		return bad(Tampered, "there is something before the first record")
	}
	return v.checkKeys()
}

// named reports whether members are exactly those.
func named(members []member, names []string) bool {
	return slices.EqualFunc(members, names, func(m member, name string) bool { return string(m.name) == name })
}

// noNulls reports whether no member is null, which json.Unmarshal would take
// for any type.
func noNulls(members []member) bool {
	return !slices.ContainsFunc(members, func(m member) bool { return string(m.value) == "null" })
}

func nullable(array []byte) []any {
	var all []any
	_ = json.Unmarshal(array, &all) // what is no array fails to unmarshal as the header too
	return all
}

// checkKeys follows the keys from the first that the file names to the one
// that signed it, and looks for a trusted one among them.
func (v *verifier) checkKeys() error {
	h := &v.header
	if _, err := CheckVKey(h.Key); err != nil {
		return bad(Tampered, "the key of the header is malformed")
	}
	keys := make([]string, 0, len(h.Rotations)+1)
	for _, msg := range h.Rotations {
		n, err := parseNote(msg)
		if err != nil {
			return bad(Tampered, "a rotation is not a signed note")
		}
		l, ok := n.lines(rotateTitle, 3)
		if !ok || !timeShape.MatchString(l[2]) {
			return bad(Tampered, "a rotation does not say which key follows which")
		}
		if _, err := CheckVKey(l[0]); err != nil || len(keys) > 0 && keys[len(keys)-1] != l[0] {
			return bad(Tampered, "the rotations do not follow each other")
		}
		if err := checkSignature(&n, l[0]); err != nil {
			return err
		}
		if len(keys) == 0 {
			keys = append(keys, l[0])
		}
		keys = append(keys, l[1])
	}
	if len(keys) == 0 {
		keys = append(keys, h.Key)
	}
	if keys[len(keys)-1] != h.Key {
		return bad(Tampered, "the rotations do not lead to the key of the header")
	}
	if err := v.checkAnchor(keys); err != nil {
		return err
	}
	return v.trust(keys)
}

// checkAnchor compares the note on the pruned records with the header.
func (v *verifier) checkAnchor(keys []string) error {
	h := &v.header
	if h.Anchor.Note == nil {
		return nil
	}
	n, err := parseNote(*h.Anchor.Note)
	if err != nil {
		return bad(Tampered, "the anchor is not a signed note")
	}
	l, ok := n.lines(anchorTitle, 4)
	if !ok || l[0] != h.Org || l[1] != strconv.FormatInt(h.Anchor.Seq, 10) || l[2] != h.Anchor.Hash || !timeShape.MatchString(l[3]) {
		return bad(Tampered, "the signed anchor is another than the header's")
	}
	for _, key := range keys {
		if err = checkSignature(&n, key); err == nil || err.(*problem).class == BadSignature {
			return err
		}
	}
	return err
}

func (v *verifier) trust(keys []string) error {
	known := func(key string) bool { return slices.Contains(keys, key) }
	if len(v.options.VKeys) > 0 && !slices.ContainsFunc(v.options.VKeys, known) {
		return bad(UnknownKey, "the file is signed with %s, which no trusted key handed over to", v.header.Key)
	}
	if s := v.options.State; s != nil && !known(s.Key) {
		return bad(UnknownKey, "the file is signed with %s, which the key of the saved state did not hand over to", v.header.Key)
	}
	v.report.Trusted = len(v.options.VKeys) > 0 || v.options.State != nil
	return nil
}

// checkSignature checks that a key signed the note.
func checkSignature(n *signedNote, vkey string) error {
	key, err := CheckVKey(vkey)
	if err != nil {
		return bad(Tampered, "a key is malformed")
	}
	if !n.of(key) {
		return bad(UnknownKey, "a note is signed with %s+%08x and not with %s", n.name, n.hash, vkey)
	}
	if !key.Verify(n.text, n.sig) {
		return bad(BadSignature, "the signature of %s is wrong", vkey)
	}
	return nil
}

// compareState compares the header with the end of the chain in an earlier file.
func (v *verifier) compareState() error {
	s, h := v.options.State, &v.header
	switch {
	case s == nil:
	case string(s.Org) != h.Org:
		return bad(Tampered, "the saved state is of another organization, %s", s.Org)
	case h.Anchor.Seq > s.Seq:
		return bad(Gap, "records %d to %d lie between the saved state and this file", s.Seq+1, h.Anchor.Seq)
	case h.Latest < s.Latest:
		return bad(Stale, "the chain had %d records and has %d: its end was cut, or the file is older than the saved state", s.Latest, h.Latest)
	case h.To < s.Seq:
		return bad(Stale, "the file ends at record %d, before record %d of the saved state", h.To, s.Seq)
	case h.Anchor.Seq == s.Seq && h.Anchor.Hash != s.Hash:
		return bad(Tampered, "record %d is not the one of the saved state: history was rewritten", s.Seq)
	}
	return nil
}
