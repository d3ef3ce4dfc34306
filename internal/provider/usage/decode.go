package usage

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"modelgate"
)

const (
	// maxDecoded bounds the decoded bytes that are metered of one reply.
	maxDecoded = 64 << 20
	// maxRatio bounds how many bytes one compressed byte may become, past the
	// first ratioSlack bytes.
	maxRatio   = 200
	ratioSlack = 1 << 20
)

var errTooLarge = errors.New("decoded reply too large")

// decoder meters a compressed reply: it decodes a copy for another meter.
// The decoders at hand pull their input, while replies are pushed; so the
// decoder runs as a coroutine that stops where it wants more. After each Feed
// all that can be decoded has been, and nothing runs in between.
type decoder struct {
	meter    Meter
	input    []byte // not yet taken by the coroutine
	consumed int64
	decoded  int64
	terminal bool
	ended    bool // the coroutine is done
	lost     bool // some of the reply could not be decoded
	resume   func() (struct{}, bool)
	stop     func()
}

func newDecoder(encoding string, m Meter) Meter {
	open := opener(strings.ToLower(strings.TrimSpace(encoding)))
	if open == nil {
		return &opaque{text: true} // all of its bytes count as text
	}
	d := &decoder{meter: m}
	d.resume, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.lost = d.run(open, func() bool { return yield(struct{}{}) }) != nil
	})
	d.step()
	return d
}

// opener is how to decode a content encoding; nil where it is not known.
func opener(encoding string) func(io.Reader) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return openGzip
	case "br":
		return func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil }
	case "zstd":
		return openZstd
	case "deflate":
		return openDeflate
	}
	return nil
}

// gzipFiles reads gzip files one after another, as one stream may hold. Left to
// itself the standard reader looks for the next file before it hands out the
// end of the last.
type gzipFiles struct {
	in   *bufio.Reader
	file *gzip.Reader
	over bool // the file under way has been read
}

func openGzip(r io.Reader) (io.Reader, error) {
	g := &gzipFiles{in: bufio.NewReader(r)}
	var err error
	if g.file, err = gzip.NewReader(g.in); err != nil {
		return nil, err
	}
	g.file.Multistream(false)
	return g, nil
}

func (g *gzipFiles) Read(b []byte) (int, error) {
	if g.over {
		if err := g.file.Reset(g.in); err != nil {
			return 0, err
		}
		g.file.Multistream(false)
		g.over = false
	}
	n, err := g.file.Read(b)
	if errors.Is(err, io.EOF) {
		g.over, err = true, nil
	}
	return n, err
}

// openZstd decodes within the calling goroutine, which the coroutine needs.
func openZstd(r io.Reader) (io.Reader, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxDecoded))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// openDeflate takes the zlib format that the encoding means, and the bare
// format that some servers send for it.
func openDeflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// run is the coroutine.
func (d *decoder) run(open func(io.Reader) (io.Reader, error), more func() bool) error {
	r, err := open(&puller{d, more})
	if err != nil {
		return err
	}
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		d.decoded += int64(n)
		if d.decoded > maxDecoded || d.decoded > ratioSlack+maxRatio*d.consumed {
			return errTooLarge
		}
		if n > 0 && d.meter.Feed(buf[:n]) {
			d.terminal = true
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// puller hands the decoder what was fed and waits for more.
type puller struct {
	d    *decoder
	more func() bool
}

func (p *puller) Read(b []byte) (int, error) {
	for len(p.d.input) == 0 {
		if !p.more() {
			return 0, io.ErrUnexpectedEOF
		}
	}
	n := copy(b, p.d.input)
	p.d.input = p.d.input[n:]
	p.d.consumed += int64(n)
	return n, nil
}

func (d *decoder) step() {
	if _, ok := d.resume(); !ok {
		d.ended = true
	}
}

func (d *decoder) Feed(chunk []byte) bool {
	if d.ended {
		return false
	}
	d.input = chunk
	d.terminal = false
	d.step()
	d.input = nil
	return d.terminal
}

func (d *decoder) Result() (modelgate.Usage, Seen) {
	u, seen := d.meter.Result()
	if d.lost {
		seen = min(seen, Some)
	}
	return u, seen
}

func (d *decoder) Output() int64   { return d.meter.Output() }
func (d *decoder) Unstated() int64 { return d.meter.Unstated() }

// StatedCost is that of the decoded reply.
func (d *decoder) StatedCost() StatedCost { return d.meter.StatedCost() }

// Delivered is that of the decoded reply.
func (d *decoder) Delivered() int64 { return d.meter.Delivered() }

func (d *decoder) Close() {
	if !d.ended {
		d.ended = true
		lost := d.lost
		d.stop()
		d.lost = lost
	}
	d.meter.Close()
}

// Decoded turns a reply in a content coding back into what it says. The zero
// value is not usable.
type Decoded struct {
	decoder *decoder
	plain   collected
}

// collected collects what a decoder reads.
type collected struct {
	opaque
	text []byte
}

func (p *collected) Feed(chunk []byte) bool { p.text = append(p.text, chunk...); return false }

// NewDecoded decodes one reply; nil for a coding that nobody knows.
func NewDecoded(encoding string) *Decoded {
	d := new(Decoded)
	var ok bool
	if d.decoder, ok = newDecoder(encoding, &d.plain).(*decoder); !ok {
		return nil
	}
	return d
}

// Decode returns what the next bytes say, good until the next call. It reports
// false for a reply that is broken, or says more than anyone has to believe.
func (d *Decoded) Decode(chunk []byte) ([]byte, bool) {
	d.plain.text = d.plain.text[:0]
	d.decoder.Feed(chunk)
	return d.plain.text, !d.decoder.lost
}

// Close releases the decoder.
func (d *Decoded) Close() { d.decoder.Close() }
