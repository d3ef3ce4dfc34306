package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"modelgate"
	"modelgate/internal/provider/http1"
)

// Probe is what one free request to a provider has shown: a connection, and the
// list of models where the format has one.
type Probe struct {
	// Reachable says that a connection was made, over TLS where the base URL is https.
	Reachable bool `json:"reachable"`
	// ConnectMS and TLSMS are null where a proxy makes the connection.
	ConnectMS *int64     `json:"connect_ms"`
	TLSMS     *int64     `json:"tls_ms"`
	TLSEnds   *time.Time `json:"tls_expires_at"` // when the server's certificate does
	// HTTPStatus and LatencyMS are of the list of models.
	HTTPStatus *int            `json:"http_status"`
	LatencyMS  *int64          `json:"latency_ms"`
	Credential CredentialState `json:"credential"`
	// ModelsListed is null unless the list can be read, and Missing too where the list
	// is only a part.
	ModelsListed *int     `json:"models_listed"`
	Missing      []string `json:"missing_models"` // of those asked about
	Error        *string  `json:"error"`
}

// CredentialState is what a provider made of a credential.
type CredentialState string

// The states.
const (
	CredentialAccepted   CredentialState = "accepted"
	CredentialRefused    CredentialState = "refused"
	CredentialNotChecked CredentialState = "not_checked"
)

// Probe connects to the provider and asks for its list of models, with the
// provider's credential. It costs nothing and is never repeated. models are native
// ones, to be looked for in the list. Faults are part of the answer.
func (p *Provider) Probe(ctx context.Context, models []string) Probe {
	out := Probe{Credential: CredentialNotChecked}
	if err := p.probeConnection(ctx, &out); err != nil {
		out.fail(err)
		return out
	}
	if path, query := p.modelList(); path != "" {
		out.fail(p.probeModels(ctx, path, query, models, &out))
	}
	return out
}

func (p *Probe) fail(err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if _, credential := errors.AsType[*modelgate.Error](err); credential {
		p.Credential = CredentialRefused // there is none that may be used
	}
	p.Error = &text
}

// probeConnection makes a connection of its own.
func (p *Provider) probeConnection(ctx context.Context, out *Probe) error {
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &p.base}); err != nil || proxy != nil {
		return err
	}
	port := p.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.base.Scheme]
	}
	dialer := net.Dialer{Timeout: p.timeouts.Connect, Control: RefuseMetadata}
	begun := time.Now()
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(p.base.Hostname(), port))
	if err != nil {
		return http1.Unreached(err)
	}
	defer conn.Close()
	out.ConnectMS = since(begun)
	if p.base.Scheme == "https" {
		config, err := TLSConfig(p.caFile)
		if err != nil {
			return err
		}
		config.ServerName = p.base.Hostname()
		begun = time.Now()
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		out.TLSMS = since(begun)
		if chain := secure.ConnectionState().PeerCertificates; len(chain) > 0 {
			out.TLSEnds = &chain[0].NotAfter
		}
	}
	out.Reachable = true
	return nil
}

func since(begun time.Time) *int64 {
	ms := time.Since(begun).Milliseconds()
	return &ms
}

// modelList is the path of the format's list of models and the query that asks for
// as many as there are, "" for none. Of several versions the last has the most.
func (p *Provider) modelList() (path, query string) {
	for _, r := range p.format.Allow {
		method, pattern, _ := strings.Cut(r.Pattern, " ")
		if method != http.MethodGet || !r.Free || !strings.HasSuffix(pattern, "/models") || strings.Contains(pattern, "{") {
			continue
		}
		path, query = pattern, ""
		for _, name := range []string{"limit", "pageSize", "page_size"} {
			if slices.Contains(r.Query, name) {
				query = url.Values{name: {"1000"}}.Encode()
			}
		}
	}
	return path, query
}

func (p *Provider) probeModels(ctx context.Context, path, query string, models []string, out *Probe) error {
	header := http.Header{"Accept": {"application/json"}, "User-Agent": {"Modelgate/1"}}
	if older := p.format.Older; older != nil {
		header.Set(older.Header, older.Before)
	}
	attempt, err := p.Outbound(ctx, Call{Method: http.MethodGet, Path: path, Query: query, Header: header})
	if err != nil {
		return err
	}
	begun := time.Now()
	resp, _, err := p.Send(attempt)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out.Reachable, out.HTTPStatus, out.LatencyMS = true, &resp.StatusCode, since(begun)
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		out.Credential = CredentialRefused
		return nil
	case resp.StatusCode >= 300:
		return nil
	}
	out.Credential = CredentialAccepted
	_, body, err := ReadReply(resp)
	if err != nil {
		return err
	}
	out.read(body, models)
	return nil
}

// read reads a list of models in any of the shapes that formats have.
func (p *Probe) read(body []byte, models []string) {
	reply := gjson.ParseBytes(body)
	list := reply
	for _, member := range []string{"data", "models"} {
		if found := reply.Get(member); found.IsArray() {
			list = found
		}
	}
	if !list.IsArray() {
		return
	}
	listed := map[string]bool{}
	list.ForEach(func(_, model gjson.Result) bool {
		for _, member := range []string{"id", "name"} {
			listed[strings.TrimPrefix(model.Get(member).String(), "models/")] = true
		}
		return true
	})
	n := len(list.Array())
	p.ModelsListed = &n
	if reply.Get("has_more").Bool() || reply.Get("nextPageToken").String() != "" || reply.Get("next_page_token").String() != "" {
		return
	}
	p.Missing = []string{}
	for _, model := range models {
		if !listed[model] {
			p.Missing = append(p.Missing, model)
		}
	}
}
