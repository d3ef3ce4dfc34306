package config

// Focus is how FOCUS files name things.
type Focus struct {
	// Who issues the invoices to organizations: InvoiceIssuerName. Empty means
	// Modelgate.
	IssuerName string `yaml:"issuer_name"`

	// How files call a provider, by its name here, such as `openai: OpenAI`.
	// Default: as it is named here.
	ProviderNames map[string]string `yaml:"provider_names"`
}

// CostHeaders is when answers say what a call costs.
type CostHeaders string

// The choices.
const (
	CostHeadersOnRequest CostHeaders = "on_request"
	CostHeadersOff       CostHeaders = "off"
)
