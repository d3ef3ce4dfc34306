package config

import (
	"modelgate"
	"modelgate/internal/pricing"
)

// ToolPrices are prices of what a provider's own tools do, in USD; nil is none.
type ToolPrices struct {
	// USD per thousand searches of the web.
	Search *modelgate.Nano `yaml:"search"`

	// USD per thousand searches in files that the provider keeps.
	FileSearch *modelgate.Nano `yaml:"file_search"`

	// USD per container in which the provider runs code.
	CodeSession *modelgate.Nano `yaml:"code_session"`

	// USD per thousand calls that were answered from searches. It counts where
	// search has no price.
	GroundedRequest *modelgate.Nano `yaml:"grounded_request"`
}

// priceTools completes the prices of language models by those of the tools of
// their providers.
func (c *Config) priceTools(tools map[string]modelgate.Rates) {
	for _, m := range c.Catalog {
		if m.Kind != modelgate.LLM {
			continue
		}
		for i := range m.Routes {
			if rates := tools[m.Routes[i].Provider]; !rates.Empty() {
				m.Routes[i].Price = pricing.WithTools(m.PriceOn(i), rates)
			}
		}
	}
	for i := range c.Prices {
		p := &c.Prices[i]
		if rates := tools[p.Provider]; !rates.Empty() && pricing.PerToken(p.Price) {
			p.Price = pricing.WithTools(p.Price, rates)
		}
	}
}
