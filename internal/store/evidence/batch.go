package evidence

import (
	"bytes"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelgate"
)

// Batch are records of one client, one after the other: not more than
// maxRecords, or the memory of a batch of rows would be that of all their
// records.
type Batch struct {
	Client      modelgate.ClientID
	Records     int
	First, Last time.Time // the least and the greatest instant of the records
	Packed      []byte
}

const maxRecords = 1000

// recordRoom is about what the record of a row takes, in bytes.
const recordRoom = 768

// Collector collects records, each with the newline that ends it, and packs
// them into batches.
type Collector struct {
	pack  *Packer
	lines []byte
	now   Batch // of what is in lines
	done  []Batch
}

// NewCollector has no records, and memory for so many.
func NewCollector(pack *Packer, records int) *Collector {
	return &Collector{pack: pack, lines: make([]byte, 0, min(records, maxRecords)*recordRoom)}
}

// Add appends a record of a client that write makes.
func (c *Collector) Add(client modelgate.ClientID, at time.Time, write func([]byte) ([]byte, error)) error {
	if c.now.Client != client || c.now.Records == maxRecords {
		c.turn()
		c.now.Client = client
	}
	lines, err := write(c.lines)
	if err != nil {
		return err
	}
	c.lines = append(lines, '\n')
	b := &c.now
	if b.Records == 0 || at.Before(b.First) {
		b.First = at
	}
	if b.Records == 0 || at.After(b.Last) {
		b.Last = at
	}
	b.Records++
	return nil
}

// turn packs what was collected.
func (c *Collector) turn() {
	if c.now.Records > 0 {
		c.now.Packed = c.pack.Pack(c.lines)
		c.done = append(c.done, c.now)
	}
	c.now, c.lines = Batch{}, c.lines[:0]
}

// Batches are all records so far, packed.
func (c *Collector) Batches() []Batch {
	c.turn()
	return c.done
}

// Packer compresses batches of records, of which most bytes are alike. Safe
// for concurrent use.
type Packer struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

// packWindow and packMost bound the memory of one batch, packed and unpacked.
const (
	packWindow = 1 << 20
	packMost   = 256 << 20
)

// NewPacker packs and unpacks one batch at a time.
func NewPacker() (*Packer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(packWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(packMost))
	return &Packer{enc, dec}, err
}

// Pack compresses lines.
func (p *Packer) Pack(lines []byte) []byte { return p.enc.EncodeAll(lines, nil) }

// Unpack returns the lines in a buffer that may be handed in again.
func (p *Packer) Unpack(buf, packed []byte) ([]byte, error) {
	lines, err := p.dec.DecodeAll(packed, buf[:0])
	if err != nil {
		return lines, fmt.Errorf("evidence batch: %w", err)
	}
	return lines, nil
}

// NextRecord cuts the first record off lines.
func NextRecord(lines []byte) (record, rest []byte, ok bool) {
	return bytes.Cut(lines, []byte{'\n'})
}
