package config

import (
	"encoding/base64"
	"iter"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"modelgate"
)

// The bounds of settings.
const (
	maxRequest     Size = 1 << 30
	minSpool       Size = 128 << 20
	minRetention        = 62 // days: this month and the last
	maxRetention        = 36500
	maxDrainDelay       = 10 * time.Minute
	minTokenTTL         = modelgate.MinTokenTTL * time.Second
	maxTokenTTL         = 24 * time.Hour
	maxTokens           = 10_000_000
	maxAddressRate      = 1_000_000_000

	masterKeySize    = 32  // bytes
	maxMeterName     = 100 // as the processor allows
	minWebhookSecret = 16
)

// check judges what the settings mean.
func (s *Settings) check(d *document) {
	s.Server.check(d)
	s.Operator.check(d, &s.Server, s.SignIn.Providers)
	s.Database.check(d)
	s.Redis.check(d)
	notNegative(d, "limits.requests_per_second", int64(s.Limits.RequestsPerSecond))
	notNegative(d, "limits.burst", int64(s.Limits.Burst))
	notNegative(d, "limits.concurrency", int64(s.Limits.Concurrency))
	s.Limits.checkRules(d)
	notNegative(d, "limits.address_requests_per_minute", int64(s.Limits.AddressRequestsPerMinute))
	d.faultIf(s.Limits.AddressRequestsPerMinute > maxAddressRate, "limits.address_requests_per_minute", "must be at most %d", maxAddressRate)
	s.Tokens.check(d)
	oneOf(d, "metering.fsync", s.Metering.Fsync, FsyncAlways, FsyncInterval)
	days := s.Metering.RetentionDays
	d.faultIf(days != 0 && (days < minRetention || days > maxRetention), "metering.retention_days", "must be 0, or from %d to %d", minRetention, maxRetention)
	d.faultIf(s.Metering.SpoolMaxBytes < minSpool, "metering.spool_max_bytes", "must be at least %s", minSpool)
	s.Alerts.check(d)
	s.SignIn.check(d, s.Server.BaseURL)
	s.Invoices.check(d)
	if !s.SessionKey.Empty() {
		d.warn("session_key", "does nothing: sessions are kept in the database; remove it")
	}
	s.checkMasterKeys(d)
	s.Evidence.check(d)
	s.Processor.check(d)
	s.Telemetry.check(d)
	oneOf(d, "log.format", s.Log.Format, LogAuto, LogText, LogJSON)
	seen := make(map[string]int)
	for i := range s.Providers {
		path := element("providers", i)
		s.Providers[i].check(d, path)
		name := s.Providers[i].Name
		if first, known := seen[name]; known && name != "" {
			d.fault(path+".name", "is already the name of the provider in line %d; names are unique", d.places[element("providers", first)].line)
		} else {
			seen[name] = i
		}
	}
}

func (t *Telemetry) check(d *document) {
	checkURL(d, "telemetry.otlp_endpoint", t.OTLPEndpoint, "*")
	d.faultIf(t.SamplePercent < 0 || t.SamplePercent > 100, "telemetry.sample_percent", "must be from 0 to 100")
}

func (s *Server) check(d *document) {
	checkAddress(d, "server.listen", s.Listen)
	oneOf(d, "server.http", s.HTTP, ServerFast, ServerStandard)
	oneOf(d, "server.cost_headers", s.CostHeaders, CostHeadersOnRequest, CostHeadersOff)
	if s.AdminListen != "" {
		checkAddress(d, "server.admin_listen", s.AdminListen)
		d.faultIf(s.AdminListen == s.Listen && !strings.HasSuffix(s.Listen, ":0"), "server.admin_listen", "must differ from listen; leave it empty to have metrics on the main listener")
	}
	checkURL(d, "server.base_url", s.BaseURL, "")
	d.faultIf(s.MaxRequestBytes < 1 || s.MaxRequestBytes > maxRequest, "server.max_request_bytes", "must be from 1 to %s", maxRequest)
	d.faultIf(s.DataDir == "", "server.data_dir", "must not be empty")
	d.faultIf(s.DrainDelay > maxDrainDelay, "server.drain_delay", "must be at most 10m")
	s.checkNetwork(d)
	d.faultIf(s.TLS.CertFile != "" && s.TLS.KeyFile == "", "server.tls.cert_file", "needs key_file beside it")
	d.faultIf(s.TLS.KeyFile != "" && s.TLS.CertFile == "", "server.tls.key_file", "needs cert_file beside it")
}

func (db *Database) check(d *document) {
	oneOf(d, "database.pooler", db.Pooler, PoolerNone, PoolerTransaction)
	text := db.URL.Reveal()
	file, sqlite := strings.CutPrefix(text, "sqlite:")
	sqlite = sqlite && file != "" && !strings.HasPrefix(file, "//")
	u, err := url.Parse(text)
	postgres := err == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql")
	d.faultIf(!sqlite && !postgres, "database.url", "want sqlite:FILE or postgres://user:password@host:5432/name")
}

func (r *Redis) check(d *document) {
	if r.URL.Empty() {
		return
	}
	u, err := url.Parse(r.URL.Reveal())
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" {
		d.fault("redis.url", "want redis://host:6379/0 or rediss://…, or leave it empty")
		return
	}
	d.faultIf(u.RawQuery != "" || u.Fragment != "", "redis.url", "takes nothing behind ? or #")
	if database := strings.Trim(u.Path, "/"); database != "" {
		n, err := strconv.Atoi(database)
		d.faultIf(err != nil || n < 0, "redis.url", "want the number of a database after the host, such as /0")
	}
}

// keysOf are a key and those that were used before it, each with its path.
func keysOf(path string, key Secret, before string, previous []Secret) iter.Seq2[string, Secret] {
	return func(yield func(string, Secret) bool) {
		more := yield(path, key)
		for i := 0; more && i < len(previous); i++ {
			more = yield(element(before, i), previous[i])
		}
	}
}

func (e *Evidence) check(d *document) {
	for path, key := range keysOf("evidence.signing_key", e.SigningKey, "evidence.previous_signing_keys", e.PreviousSigningKeys) {
		_, err := note.NewSigner(strings.TrimSpace(key.Reveal()))
		d.faultIf(!key.Empty() && err != nil, path, "is no signing key; modelgate evidence key new makes one")
		d.faultIf(!key.Empty() && e.SigningKey.Empty(), path, "needs a signing_key that follows it")
	}
}

func (a *Alerts) check(d *document) {
	if a.WebhookURL == "" {
		return
	}
	checkURL(d, "alerts.webhook_url", a.WebhookURL, "*")
	d.faultIf(a.Secret.Empty(), "alerts.secret", "is needed with webhook_url, so that its receiver can tell alerts from forgeries")
}

func (s *Settings) checkMasterKeys(d *document) {
	for path, key := range keysOf("master_key", s.MasterKey, "previous_master_keys", s.PreviousMasterKeys) {
		raw, err := base64.StdEncoding.DecodeString(key.Reveal())
		d.faultIf(!key.Empty() && (err != nil || len(raw) != masterKeySize), path, "want %d bytes in base64, as openssl rand -base64 %d prints them", masterKeySize, masterKeySize)
		d.faultIf(!key.Empty() && s.MasterKey.Empty(), "previous_master_keys", "needs master_key beside it")
	}
}

func (p *Processor) check(d *document) {
	d.faultIf(p.BaseURL == "", "processor.base_url", "must not be empty")
	checkURL(d, "processor.base_url", p.BaseURL, "")
	checkURL(d, "processor.return_url", p.ReturnURL, "*")
	n := len(p.MeterEventName)
	d.faultIf(n == 0 || n > maxMeterName || !isPrintable(p.MeterEventName), "processor.meter_event_name", "must have from 1 to %d characters", maxMeterName)
	for path, s := range keysOf("processor.webhook_secret", p.WebhookSecret, "processor.previous_webhook_secrets", p.PreviousWebhookSecrets) {
		d.faultIf(!s.Empty() && len(s.Reveal()) < minWebhookSecret, path, "must have at least %d characters", minWebhookSecret)
	}
	switch {
	case !p.WebhookSecret.Empty() && p.APIKey.Empty():
		d.warn("processor.webhook_secret", "does nothing without api_key beside it")
	case p.WebhookSecret.Empty() && !p.APIKey.Empty():
		d.warn("processor.api_key", "does nothing without webhook_secret beside it: a payment could not be credited")
	}
}

// checkAddress wants host:port; the host may be missing, the port may be 0.
func checkAddress(d *document, key, address string) {
	host, port, err := net.SplitHostPort(address)
	_, notNumber := strconv.ParseUint(port, 10, 16)
	d.faultIf(err != nil || notNumber != nil || strings.ContainsAny(host, " /@"), key, "want host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080")
}

// checkURL wants an http or https address without user, query and fragment,
// and with one of the paths: "" for none, "*" for any. An empty text is none.
func checkURL(d *document, key, text, path string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		d.fault(key, "want http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		d.fault(key, "must not have a user, a query or a fragment")
	case path == "" && strings.Trim(u.Path, "/") != "":
		d.fault(key, "must not have a path")
	case !isPrintable(text):
		d.fault(key, "must not have control characters")
	}
}

// required wants a key that has a value which is not empty.
func required(d *document, path, name, value string) {
	key := member(path, name)
	d.faultIf(!d.has(key), key, "is missing")
	d.faultIf(value == "", key, "must not be empty")
}

func notNegative(d *document, key string, n int64) {
	d.faultIf(n < 0, key, "must not be negative")
}

func oneOf[T ~string](d *document, key string, value T, choices ...T) {
	d.faultIf(!slices.Contains(choices, value), key, "want one of %s", joined(choices))
}

func joined[T ~string](list []T) string {
	words := make([]string, len(list))
	for i := range list {
		words[i] = string(list[i])
	}
	return strings.Join(words, ", ")
}

// isPrintable reports whether a text has only characters that can be seen and
// spaces.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
