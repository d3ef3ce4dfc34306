package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"modelgate/internal/pricing"

	"modelgate"
)

// recordVersion begins every payload, and a payload of another version is refused.
// From the first release on, a change of the layout must raise it and keep reading
// the versions before, because a segment may outlive an upgrade.
const recordVersion = 6

// errRecord says that a payload with a good checksum cannot be understood:
// it was written by a newer version or by a faulty one.
var errRecord = errors.New("spool: malformed record")

// AppendBegin appends the payload of a BEGIN entry to dst. The id is not part
// of it: the frame carries the id.
func AppendBegin(dst []byte, b *modelgate.CallBegin) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendVarint(dst, b.At.UnixMicro())
	for _, s := range [...]string{
		string(b.ClientID), string(b.KeyID), string(b.SubAccountID), b.Provider, b.Model, b.Slug,
		b.Author, string(b.Kind), b.Region, b.Door,
	} {
		dst = appendText(dst, s, maxText)
	}
	via := byte(0)
	if b.ViaSDK {
		via = 1
	}
	dst = binary.AppendUvarint(append(dst, via), uint64(b.Holds))
	dst = binary.AppendUvarint(dst, uint64(len(b.Rules)))
	for _, number := range b.Rules {
		dst = binary.AppendVarint(dst, number)
	}
	wallet := uint64(0) // none
	if b.WalletMarkup != nil {
		wallet = uint64(*b.WalletMarkup) + 1
	}
	dst = binary.AppendUvarint(dst, wallet)
	dst = binary.AppendVarint(dst, b.Sent.Input)
	dst = binary.AppendVarint(dst, int64(b.Sent.Cost))
	dst = appendText(dst, b.Sent.PriceLabel, maxLabel)
	dst = binary.AppendUvarint(dst, uint64(len(b.Attribution)))
	for k, v := range b.Attribution {
		dst = appendText(appendText(dst, k, maxText), v, maxText)
	}
	return dst
}

// Begin reads the payload of a BEGIN entry. Its attribution has the gateway's
// own pairs, like that of the row.
func (d *Decoder) Begin(id [16]byte, payload []byte) (modelgate.CallBegin, error) {
	r := record{decoder: d, rest: payload}
	r.version()
	b := modelgate.CallBegin{ID: id, At: time.UnixMicro(r.varint()).UTC()}
	b.ClientID = modelgate.ClientID(r.text())
	b.KeyID = modelgate.KeyID(r.text())
	b.SubAccountID = modelgate.SubAccountID(r.text())
	b.Provider, b.Model, b.Slug, b.Author = r.text(), r.text(), r.text(), r.text()
	b.Kind = modelgate.ModelKind(r.text())
	b.Region, b.Door = r.text(), r.text()
	b.ViaSDK = r.byte() == 1
	b.Holds = modelgate.Holds(r.uvarint())
	for n := r.uvarint(); n > 0 && !r.failed; n-- {
		b.Rules = append(b.Rules, r.varint())
	}
	if wallet := r.uvarint(); wallet > 0 {
		markup := modelgate.Markup(wallet - 1)
		b.WalletMarkup = &markup
	}
	b.Sent.Input, b.Sent.Cost = r.varint(), modelgate.Nano(r.varint())
	b.Sent.PriceLabel = r.text()
	b.Attribution = r.attribution(&b)
	return b, r.done("begin")
}

// unpricedPlace is the place of the first count without a unit. Those before it
// are for units, which are added at the end of their list.
const unpricedPlace = 128

// statedPlace is the place of the cost that the provider states.
const statedPlace = 255

// placeOf is the number under which the i-th count of a usage stands in an entry.
// It never changes, because a segment may outlive an upgrade; 0 ends the counts.
func placeOf(i int) byte {
	if i < int(modelgate.UnitCount) {
		return byte(i + 1)
	}
	return byte(unpricedPlace + i - int(modelgate.UnitCount))
}

// countAt is the count at a place, nil where there is none.
func countAt(counts *[modelgate.CounterCount]*int64, place byte) *int64 {
	i := int(place) - 1
	if place >= unpricedPlace {
		i = int(modelgate.UnitCount) + int(place) - unpricedPlace
	} else if i >= int(modelgate.UnitCount) {
		return nil
	}
	if i >= len(counts) {
		return nil
	}
	return counts[i]
}

// AppendEnd appends the payload of an END or MARK entry to dst. Of the counts of
// the usage it has those that are not 0, each with its place.
func AppendEnd(dst []byte, e *modelgate.CallEnd) []byte {
	dst = append(dst, recordVersion)
	for i, n := range e.Usage.Counters() {
		if n != nil && *n != 0 {
			dst = binary.AppendVarint(append(dst, placeOf(i)), *n)
		}
	}
	if e.StatedCost != nil {
		dst = binary.AppendVarint(append(dst, statedPlace), int64(*e.StatedCost))
	}
	dst = append(dst, 0)
	for _, n := range [...]int64{e.LatencyMS, e.FirstByteMS, int64(e.StatusCode), int64(e.Cost)} {
		dst = binary.AppendVarint(dst, n)
	}
	dst = appendText(dst, string(e.ParseStatus), maxWord)
	dst = appendText(dst, e.PriceLabel, maxLabel)
	for _, s := range [...]string{e.Provider, e.Model, e.Region} {
		dst = appendText(dst, s, maxEndText)
	}
	for _, word := range e.Usage.Words() {
		dst = appendText(dst, *word, maxWord)
	}
	return appendJob(dst, e.Job)
}

// appendJob appends the job of an END, or that there is none. What does not
// fit is left out: the price, whose job then costs what its provider charges,
// or the whole job, whose row then stays as it is.
func appendJob(dst []byte, j *modelgate.NewJob) []byte {
	if j == nil || len(j.TaskID) > modelgate.MaxTaskID {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	dst = binary.AppendVarint(dst, j.Deadline.UnixMicro())
	dst = binary.AppendVarint(dst, int64(j.Reserve))
	for _, s := range [...]string{string(j.TaskID), string(j.Kind), j.Protocol, j.Credential} {
		dst = appendText(dst, s, modelgate.MaxTaskID)
	}
	price := j.Price
	if len(price) > pricing.MaxSnapshot {
		price = ""
	}
	return append(binary.AppendUvarint(dst, uint64(len(price))), price...)
}

func (r *record) job() *modelgate.NewJob {
	if r.byte() == 0 {
		return nil
	}
	j := &modelgate.NewJob{Deadline: time.UnixMicro(r.varint()).UTC(), Reserve: modelgate.Nano(r.varint())}
	j.TaskID, j.Kind = modelgate.TaskID(r.text()), modelgate.ModelKind(r.text())
	j.Protocol, j.Credential, j.Price = r.text(), r.text(), r.text()
	return j
}

// End reads the payload of an END or MARK entry.
func (d *Decoder) End(payload []byte) (modelgate.CallEnd, error) {
	r := record{decoder: d, rest: payload}
	r.version()
	var e modelgate.CallEnd
	counters := e.Usage.Counters()
	for place := r.byte(); place != 0; place = r.byte() {
		if place == statedPlace {
			stated := modelgate.Nano(r.varint())
			e.StatedCost = &stated
			continue
		}
		count := countAt(&counters, place)
		if count == nil {
			r.failed = true
			break
		}
		*count = r.varint()
	}
	e.LatencyMS, e.FirstByteMS = r.varint(), r.varint()
	e.StatusCode, e.Cost = int(r.varint()), modelgate.Nano(r.varint())
	e.ParseStatus = modelgate.ParseStatus(r.text())
	e.PriceLabel = r.text()
	e.Provider, e.Model, e.Region = r.text(), r.text(), r.text()
	for _, word := range e.Usage.Words() {
		*word = r.text()
	}
	e.Job = r.job()
	return e, r.done("end")
}

// Every text of a record is bounded, so that a record always fits into a
// frame, and an END into the room set aside for it, whatever a provider
// sends.
const (
	maxText    = 512
	maxEndText = 384
	maxWord    = 128
	// maxLabel is what the label of a price with every unit needs.
	maxLabel = 1024
	// maxJob is the most that the job of an END takes.
	maxJob = 1 + 2*10 + 4*(2+modelgate.MaxTaskID) + 2 + pricing.MaxSnapshot
	// maxEnd is the longest payload of an END: version, counts with their
	// places, numbers, texts with their lengths, and a job.
	maxEnd = 1 + (modelgate.CounterCount+1)*11 + 1 + 4*10 + 3*(2+maxEndText) +
		(modelgate.WordCount+1)*(2+maxWord) + 2 + maxLabel + maxJob
)

// appendText appends a text with its length, cut to most bytes.
func appendText(dst []byte, s string, most int) []byte {
	s = s[:min(len(s), most)]
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// record is a payload that is being read; after the first fault everything
// reads as zero.
type record struct {
	decoder *Decoder
	rest    []byte
	failed  bool
}

// version reads the version, which must be known.
func (r *record) version() {
	if r.byte() != recordVersion {
		r.failed = true
	}
}

func (r *record) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *record) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *record) uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // nearly all are
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *record) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return ""
	}
	s := r.decoder.share(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *record) done(what string) error {
	if r.failed || len(r.rest) > 0 {
		return fmt.Errorf("%w: %s", errRecord, what)
	}
	return nil
}
