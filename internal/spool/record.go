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
const recordVersion = 3

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
		dst = appendText(dst, s)
	}
	via := byte(0)
	if b.ViaSDK {
		via = 1
	}
	dst = binary.AppendUvarint(append(dst, via), uint64(b.Holds))
	dst = binary.AppendVarint(dst, b.Sent.Input)
	dst = binary.AppendVarint(dst, int64(b.Sent.Cost))
	dst = appendText(dst, b.Sent.PriceLabel)
	dst = binary.AppendUvarint(dst, uint64(len(b.Attribution)))
	for k, v := range b.Attribution {
		dst = appendText(appendText(dst, k), v)
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
	b.Sent.Input, b.Sent.Cost = r.varint(), modelgate.Nano(r.varint())
	b.Sent.PriceLabel = r.text()
	b.Attribution = r.attribution(&b)
	return b, r.done("begin")
}

// AppendEnd appends the payload of an END or MARK entry to dst.
func AppendEnd(dst []byte, e *modelgate.CallEnd) []byte {
	dst = append(dst, recordVersion)
	for _, n := range endNumbers(e) {
		dst = binary.AppendVarint(dst, *n)
	}
	dst = binary.AppendVarint(dst, int64(e.StatusCode))
	dst = binary.AppendVarint(dst, int64(e.Cost))
	dst = appendText(dst, string(e.ParseStatus))
	for _, s := range endTexts(e) {
		dst = appendText(dst, (*s)[:min(len(*s), maxEndText)])
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
	for _, s := range [...]string{string(j.TaskID), string(j.Kind), j.Way, j.Credential} {
		dst = appendText(dst, s[:min(len(s), modelgate.MaxTaskID)])
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
	j.Way, j.Credential, j.Price = r.text(), r.text(), r.text()
	return j
}

// End reads the payload of an END or MARK entry.
func (d *Decoder) End(payload []byte) (modelgate.CallEnd, error) {
	r := record{decoder: d, rest: payload}
	r.version()
	var e modelgate.CallEnd
	for _, n := range endNumbers(&e) {
		*n = r.varint()
	}
	e.StatusCode = int(r.varint())
	e.Cost = modelgate.Nano(r.varint())
	e.ParseStatus = modelgate.ParseStatus(r.text())
	for _, s := range endTexts(&e) {
		*s = r.text()
	}
	e.Job = r.job()
	return e, r.done("end")
}

// endNumbers fixes the order of the counts on disk.
func endNumbers(e *modelgate.CallEnd) [24]*int64 {
	u := &e.Usage
	return [...]*int64{
		&u.Input, &u.CachedInput, &u.CacheWrite, &u.CacheWrite1h, &u.Output, &u.AudioInput, &u.AudioOutput,
		&u.Images, &u.Seconds, &u.Characters, &u.Searches, &u.Megapixels, &e.LatencyMS, &e.FirstByteMS,
		&u.Reasoning, &u.FileSearches, &u.CodeSessions, &u.GroundedRequests, &u.Videos,
		&u.AdvisorInput, &u.AdvisorCachedInput, &u.AdvisorCacheWrite, &u.AdvisorCacheWrite1h, &u.AdvisorOutput,
	}
}

// endTexts fixes the order of the texts on disk.
func endTexts(e *modelgate.CallEnd) [10]*string {
	u := &e.Usage
	return [...]*string{
		&u.Size, &u.Quality, &u.ServiceTier, &u.Speed, &u.InferenceGeo, &e.PriceLabel, &e.Provider, &e.Model, &e.Region,
		&u.AdvisorModel,
	}
}

// Every text of a record is bounded, so that a record always fits into a
// frame, and an END into the room set aside for it, whatever a provider
// sends.
const (
	maxText    = 512
	maxEndText = 384
	// maxJob is the most that the job of an END takes.
	maxJob = 1 + 2*10 + 4*(2+modelgate.MaxTaskID) + 2 + pricing.MaxSnapshot
	// maxEnd is the longest payload of an END: version, numbers, status, cost,
	// texts with their lengths, and a job.
	maxEnd = 1 + 26*10 + 11*(2+maxEndText) + maxJob
)

func appendText(dst []byte, s string) []byte {
	if len(s) > maxText {
		s = s[:maxText]
	}
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
