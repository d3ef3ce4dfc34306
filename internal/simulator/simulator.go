package simulator

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Options says what kind of provider to be. The zero value is a provider that
// accepts any credential and keeps no ledger.
type Options struct {
	// Name is what directives of the form [[name@here=…]] are compared with.
	Name string
	// Now is the clock of timestamps and of [[after=…]]; nil means time.Now.
	// Waiting is done in real time.
	Now func() time.Time
	// Ledger is told of every request; nil keeps none.
	Ledger Ledger
	// Credential is the only API key accepted, wherever the provider's format
	// carries it; "" accepts every request.
	Credential string
	// KeepRequests adds the header and body of the request to its record.
	KeepRequests bool
}

// Provider is an http.Handler that answers as model providers do. It is safe
// for concurrent use.
type Provider struct {
	opts Options
	seq  atomic.Int64
	jobs jobs
}

// New makes a provider.
func New(opts Options) *Provider {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Provider{opts: opts}
}

// call is one request on its way through the simulator.
type call struct {
	p      *Provider
	r      *http.Request
	format format
	arg    string // the id, model or file name in the path
	body   []byte
	fields fields
	files  []int64 // sizes of the files of a form
	prompt prompt
	d      directives
	served Served
}

// maxBody is the largest request read; the largest uploads of the real
// providers are of this order.
const maxBody = 64 << 20

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{p: p, r: r, d: newDirectives()}
	c.served = Served{Seq: p.seq.Add(1), Method: r.Method, Path: r.URL.Path}
	c.send(w, c.answer())
}

// answer decides the reply; directives about the sending come later.
func (c *call) answer() answer {
	e, known := c.find()
	if err := c.read(); err != nil {
		return c.invalid(err.Error())
	}
	if !known {
		return c.fail(http.StatusNotFound, fmt.Sprintf("Unknown request URL: %s %s", c.r.Method, c.r.URL.Path))
	}
	err := c.understand(e)
	if !e.open() && !c.p.authorized(c.r) {
		c.d = newDirectives()
		return c.fail(http.StatusUnauthorized, "Incorrect API key provided to the simulator.")
	}
	switch {
	case err != nil:
		return c.invalid(err.Error())
	case c.d.redirect != "":
		return answer{status: http.StatusFound, header: http.Header{"Location": {c.d.redirect}}}
	case c.d.status > 0:
		return c.fail(c.d.status, "This failure was asked for by a directive.")
	}
	for name := range strings.FieldsSeq(e.needs) {
		if c.fields.empty(name) {
			return c.invalid(fmt.Sprintf("Missing required parameter: '%s'.", name))
		}
	}
	return e.serve(c)
}

// understand reads the fields, the prompt and the directives of the request.
// It runs before the credential is looked at, so that refusals are marked too.
func (c *call) understand(e endpoint) error {
	if err := c.decode(); err != nil {
		return err
	}
	c.served.Model = c.fields.text("model")
	if e.read != nil {
		c.prompt = e.read(c.fields)
	}
	d, err := parseDirectives(c.prompt.steer, c.p.opts.Name)
	c.served.Marker = d.mark
	if err != nil {
		return err
	}
	c.d = d
	return nil
}

func (c *call) read() error {
	body, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	if err != nil {
		return fmt.Errorf("the request body could not be read: %w", err)
	}
	if len(body) > maxBody {
		return fmt.Errorf("the request body is larger than %d bytes", maxBody)
	}
	c.body = body
	if c.p.opts.KeepRequests {
		c.served.Header, c.served.Body = c.r.Header.Clone(), body
	}
	return nil
}

// authorized looks for the credential in each place where a provider takes it.
func (p *Provider) authorized(r *http.Request) bool {
	if p.opts.Credential == "" {
		return true
	}
	given := []string{
		r.Header.Get("x-api-key"), r.Header.Get("api-key"), r.Header.Get("x-goog-api-key"), r.URL.Query().Get("key"),
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = append(given, token)
	}
	for _, g := range given {
		if subtle.ConstantTimeCompare([]byte(g), []byte(p.opts.Credential)) == 1 {
			return true
		}
	}
	return false
}

// id is the name of what the call makes. Equal requests make things of equal
// names, jobs excepted.
func (c *call) id(prefix string) string {
	h := sha256.New()
	io.WriteString(h, c.r.Method+" "+c.r.URL.Path+"\n")
	h.Write(c.body)
	return prefix + hex.EncodeToString(h.Sum(nil))[:24]
}

// now is the simulator's time.
func (c *call) now() time.Time { return c.p.opts.Now() }

func (c *call) record() {
	if c.p.opts.Ledger != nil {
		c.p.opts.Ledger.Record(c.served)
	}
}
