package simulator

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Options says what kind of provider to be. The zero value is a provider that
// accepts any credential, keeps no ledger and logs nothing.
type Options struct {
	// Name is what directives of the form [[name@here=…]] are compared with.
	Name string
	// Seed goes into every id, so that two simulators can be told apart.
	Seed uint64
	// Now is the clock of timestamps and of [[after=…]]; nil means time.Now.
	// Waiting is done in real time.
	Now func() time.Time
	// Ledger is told of every request; nil keeps none.
	Ledger Ledger
	// Log gets one line a request at debug level; nil discards.
	Log *slog.Logger
	// Credential is the only API key accepted, wherever the provider's format
	// carries it; "" accepts every request.
	Credential string
	// Models is what the model lists show; nil shows a few. Any model is served.
	Models []string
	// Fixed answers chat completions with constants and reads nothing of the
	// request but whether it is to be streamed and how it is marked: for load.
	Fixed bool
	// KeepRequests adds the header and body of the request to its record.
	KeepRequests bool
}

// Provider is an http.Handler that answers as model providers do. It is safe
// for concurrent use.
type Provider struct {
	opts  Options
	seq   atomic.Int64
	jobs  jobs
	fixed fixedAnswers
}

// New makes a provider.
func New(opts Options) *Provider {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Models == nil {
		opts.Models = []string{"gpt-5-mini", "gpt-image-1", "text-embedding-3-small", "claude-sonnet-4-5", "gemini-2.5-flash", "rerank-v3.5"}
	}
	return &Provider{opts: opts, fixed: newFixedAnswers()}
}

// call is one request on its way through the simulator.
type call struct {
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
	if p.opts.Fixed && isFixed(r) {
		p.serveFixed(w, r)
		return
	}
	c := &call{r: r, d: newDirectives()}
	c.served = Served{Seq: p.seq.Add(1), Method: r.Method, Path: r.URL.Path}
	a := p.answer(c)
	p.send(w, c, a)
}

// answer finds what to reply, directives about the sending left aside.
func (p *Provider) answer(c *call) answer {
	e, ok := find(c)
	if err := p.read(c); err != nil {
		return c.fail(http.StatusBadRequest, err.Error())
	}
	if !ok {
		return c.fail(http.StatusNotFound, fmt.Sprintf("Unknown request URL: %s %s", c.r.Method, c.r.URL.Path))
	}
	err := p.understand(c, e)
	if e.open == "" && !p.authorized(c.r) {
		c.d = newDirectives()
		return c.fail(http.StatusUnauthorized, "Incorrect API key provided to the simulator.")
	}
	if err != nil {
		return c.fail(http.StatusBadRequest, err.Error())
	}
	if c.d.redirect != "" {
		return answer{status: http.StatusFound, header: http.Header{"Location": {c.d.redirect}}}
	}
	if c.d.status > 0 {
		return c.fail(c.d.status, "This failure was asked for by a directive.")
	}
	return e.serve(p, c)
}

// understand reads the fields, the prompt and the directives of the request.
// It runs before the credential is looked at, so that refusals are marked too.
func (p *Provider) understand(c *call, e endpoint) error {
	if err := c.decode(); err != nil {
		return err
	}
	c.served.Model = c.fields.text("model")
	if e.read != nil {
		c.prompt = e.read(c.fields)
	}
	d, err := parseDirectives(c.prompt.steer, p.opts.Name)
	c.served.Marker = d.mark
	if err != nil {
		return err
	}
	c.d = d
	return nil
}

func (p *Provider) read(c *call) error {
	body, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody+1))
	if err != nil {
		return fmt.Errorf("the request body could not be read: %w", err)
	}
	if len(body) > maxBody {
		return fmt.Errorf("the request body is larger than %d bytes", maxBody)
	}
	c.body = body
	if p.opts.KeepRequests {
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

// hash names the request: equal requests to simulators of equal seed have
// equal hashes.
func (p *Provider) hash(c *call) string {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, p.opts.Seed))
	io.WriteString(h, c.r.Method+" "+c.r.URL.Path+"\n")
	h.Write(c.body)
	return hex.EncodeToString(h.Sum(nil))
}

func (p *Provider) id(c *call, prefix string) string {
	return prefix + p.hash(c)[:24]
}

func (p *Provider) record(c *call) {
	if p.opts.Ledger != nil {
		p.opts.Ledger.Record(c.served)
	}
	p.opts.Log.Debug("simulated", "method", c.served.Method, "path", c.served.Path, "model", c.served.Model,
		"status", c.served.Status, "input", c.served.InputTokens, "output", c.served.OutputTokens, "complete", c.served.Complete)
}
