package config

import (
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"modelgate"
)

// InvoiceSource is where a provider's bill is read.
type InvoiceSource string

// The choices.
const (
	InvoiceOpenAI    InvoiceSource = "openai"
	InvoiceAnthropic InvoiceSource = "anthropic"
	InvoiceFile      InvoiceSource = "file"
)

// InvoiceAmount is which cost of a FOCUS file counts.
type InvoiceAmount string

// The choices.
const (
	InvoiceEffective InvoiceAmount = "effective"
	InvoiceBilled    InvoiceAmount = "billed"
	InvoiceList      InvoiceAmount = "list"
)

// InvoiceSchedule is when a provider's bill is read.
type InvoiceSchedule string

// The choices.
const (
	InvoiceDaily InvoiceSchedule = "daily"
	InvoiceOff   InvoiceSchedule = "off"
)

// ProviderInvoice is where a provider's bill is read.
type ProviderInvoice struct {
	// `openai` reads OpenAI's costs API, `anthropic` Anthropic's analytics API,
	// `file` FOCUS or CSV files that `modelgate invoice import` names. Default:
	// openai and anthropic with the formats of these names, else file.
	Source InvoiceSource `yaml:"source"`

	// The address of the API; https, or this machine. Default: the scheme and host of the
	// provider's base_url.
	BaseURL string `yaml:"base_url"`

	// An administrator's key for the API. It must not be one that calls are
	// sent with. Excludes credential_file.
	Credential Secret `yaml:"credential"`

	// File that holds the key, relative to the directory of this file.
	CredentialFile string `yaml:"credential_file"`

	// Ids of the provider's projects or workspaces that this gateway uses; what
	// other ones cost is no difference. Default: all.
	Projects []string `yaml:"projects"`

	// Ids (not secrets) of the provider's API keys that this gateway uses.
	// Default: all.
	APIKeys []string `yaml:"api_keys"`

	// `daily` reads the API every day, 30 minutes and lag after midnight UTC, with
	// the seven days before; `off` only by `modelgate invoice fetch`. Without a
	// credential nothing is read.
	Schedule InvoiceSchedule `yaml:"schedule"`

	// After a day's end its bill is final: from 1h to 168h. Until then the provider
	// may correct it.
	Lag time.Duration `yaml:"lag"`

	// Which cost of a FOCUS file counts: `effective`, `billed` or `list`.
	Amount InvoiceAmount `yaml:"amount"`

	// Rules for lines of a file, before the built-in ones; the first that
	// matches applies.
	SKUs []InvoiceSKU `yaml:"skus"`
}

func (i *ProviderInvoice) setDefaults() {
	i.Amount, i.Schedule, i.Lag = InvoiceEffective, InvoiceDaily, 24*time.Hour
}

// ContractFactor is what the operator pays of a provider's costs, by day; empty is 1.
type ContractFactor []DatedFactor

// DatedFactor is a factor from a day on.
type DatedFactor struct {
	// The first UTC day.
	From time.Time `yaml:"from"`

	// The factor, of more than 0 and at most 100.
	Factor modelgate.Nano `yaml:"factor"`
}

// On is the factor of a day.
func (c ContractFactor) On(day time.Time) modelgate.Nano {
	held, newest := modelgate.USD, time.Time{}
	for _, d := range c {
		if !day.Before(d.From) && !d.From.Before(newest) {
			held, newest = d.Factor, d.From
		}
	}
	return held
}

// decodeNode reads a number, or a list by days.
func (c *ContractFactor) decodeNode(d *document, path string, n ast.Node) {
	var list []DatedFactor
	if _, dated := n.(*ast.SequenceNode); dated {
		d.value(path, n, &list)
	} else {
		list = make([]DatedFactor, 1)
		d.value(path, n, &list[0].Factor)
	}
	seen := make(map[time.Time]bool)
	for i, one := range list {
		key := path
		if _, dated := n.(*ast.SequenceNode); dated {
			key = element(path, i)
			d.faultIf(one.From.IsZero() || !one.From.Equal(one.From.Truncate(24*time.Hour)) || seen[one.From], key+".from", "must be a date, each another")
			seen[one.From] = true
		}
		d.faultIf(one.Factor <= 0 || one.Factor > maxPriceFactor, key, "must be a factor of more than 0 and at most 100")
	}
	*c = list
}

// InvoiceSKU says what lines of a file are for.
type InvoiceSKU struct {
	// A glob for SkuId, SkuMeter or ChargeDescription.
	Match string `yaml:"match"`

	// The provider's own id of the model.
	Model string `yaml:"model"`

	// The unit of price, such as input.
	Unit string `yaml:"unit"`

	// The service tier, such as flex. Default: the usual one.
	ServiceTier string `yaml:"service_tier"`
}

// Invoices are about checks of providers' bills.
type Invoices struct {
	// How many percent of a bill may be unexplained before an alert is sent. 0: no
	// alert.
	AlertUnexplainedPercent modelgate.Nano `yaml:"alert_unexplained_percent"`
}

func (i *Invoices) setDefaults() { i.AlertUnexplainedPercent = modelgate.USD / 100 }

func (i *Invoices) check(d *document) {
	d.faultIf(i.AlertUnexplainedPercent < 0 || i.AlertUnexplainedPercent > 100*modelgate.USD, "invoices.alert_unexplained_percent", "must be from 0 to 100")
}

// checkInvoice judges where a bill is read, and fills in what is left out.
func (p *Provider) checkInvoice(d *document, path string) {
	i := &p.Invoice
	if i.Source == "" {
		i.Source = InvoiceFile
		if p.Format == string(InvoiceOpenAI) || p.Format == string(InvoiceAnthropic) {
			i.Source = InvoiceSource(p.Format)
		}
	}
	oneOf(d, path+".source", i.Source, InvoiceOpenAI, InvoiceAnthropic, InvoiceFile)
	oneOf(d, path+".amount", i.Amount, InvoiceEffective, InvoiceBilled, InvoiceList)
	oneOf(d, path+".schedule", i.Schedule, InvoiceDaily, InvoiceOff)
	d.faultIf(i.Lag < time.Hour || i.Lag > 168*time.Hour, path+".lag", "must be from 1h to 168h")
	checkURL(d, path+".base_url", i.BaseURL, "*")
	if i.BaseURL == "" {
		if u, err := url.Parse(p.BaseURL); err == nil {
			i.BaseURL = u.Scheme + "://" + u.Host
		}
	}
	if u, err := url.Parse(i.BaseURL); err == nil && u.Scheme != "https" && (!i.Credential.Empty() || i.CredentialFile != "" || d.has(path+".base_url")) {
		ip := net.ParseIP(u.Hostname())
		d.faultIf(ip == nil || !ip.IsLoopback(), path+".base_url", "must be https: an administrator's key is sent there")
	}
	checkSecret(d, path+".credential", i.Credential)
	d.faultIf(!i.Credential.Empty() && i.CredentialFile != "", path+".credential_file", "excludes credential; keep one of them")
	same := func(s Secret) bool { return !s.Empty() && s.Reveal() == i.Credential.Reveal() }
	d.faultIf(slices.ContainsFunc(p.keys(), same), path+".credential", "is one that calls are sent with; use an administrator's key")
	for n, sku := range i.SKUs {
		key := element(path+".skus", n)
		d.faultIf(sku.Match == "" || sku.Unit == "", key, "needs match and unit")
		if _, known := modelgate.UnitByName(sku.Unit); sku.Unit != "" {
			d.faultIf(!known, key+".unit", "no unit of price has this name")
		}
	}
}
