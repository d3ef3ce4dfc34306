// Package modelview is a model of the catalog as clients of OpenAI, OpenRouter and
// Anthropic read it.
package modelview

import (
	"cmp"
	"strings"

	"modelgate"
	"modelgate/internal/null"
)

// List is the catalog in the shape of OpenAI's model list, with the members
// that OpenRouter's has beside it (GET /v1/models).
type List struct {
	Object     string  `json:"object"`
	Data       []Model `json:"data"`
	TotalCount int     `json:"total_count"`
	Links      Next    `json:"links"`
}

// Next is the link of a list that has no pages.
type Next struct {
	Next *string `json:"next"` // always null: the list is whole
}

// Model is a model in the list.
type Model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // seconds since the epoch; 0 where unknown
	OwnedBy string `json:"owned_by"`

	Name          string              `json:"name"`
	CanonicalSlug string              `json:"canonical_slug"`
	Description   string              `json:"description,omitzero"`
	Kind          modelgate.ModelKind `json:"kind"`
	ContextLength *int64              `json:"context_length"` // null where unknown, and except for llm
	Architecture  Architecture        `json:"architecture"`
	Pricing       Pricing             `json:"pricing"`
	TopProvider   TopProvider         `json:"top_provider"`

	SupportedParameters []string `json:"supported_parameters"` // of a request's body; empty where unknown
	// Clients of OpenRouter expect these. The catalog knows nothing of them, so
	// that they are null.
	SupportedVoices   *struct{} `json:"supported_voices"`
	DefaultParameters *struct{} `json:"default_parameters"`
	PerRequestLimits  *struct{} `json:"per_request_limits"`

	Links Details `json:"links"`
}

// Architecture is what a model reads and writes.
type Architecture struct {
	Modality string   `json:"modality"` // such as text+image->text
	Input    []string `json:"input_modalities"`
	Output   []string `json:"output_modalities"`
}

// TopProvider is what bounds a call; null where unknown.
type TopProvider struct {
	ContextLength       *int64 `json:"context_length"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	IsModerated         bool   `json:"is_moderated"`
}

// Details is where a model is shown alone.
type Details struct {
	Details string `json:"details"`
}

// noPrice stands for a price that is not known, which must not look free.
const noPrice = "-1"

// Pricing are decimals in USD for one token, call or search.
type Pricing struct {
	Prompt            string `json:"prompt"`     // noPrice where unknown
	Completion        string `json:"completion"` // noPrice where unknown
	InputCacheRead    string `json:"input_cache_read,omitzero"`
	InputCacheWrite   string `json:"input_cache_write,omitzero"`
	InputCacheWrite1h string `json:"input_cache_write_1h,omitzero"`
	Audio             string `json:"audio,omitzero"`
	AudioOutput       string `json:"audio_output,omitzero"`
	Request           string `json:"request,omitzero"`
	WebSearch         string `json:"web_search,omitzero"`
}

// Of shows a model at some rates and a markup.
func Of(m *modelgate.Model, rates modelgate.Rates, markup modelgate.Markup) Model {
	view := Model{
		ID: m.Slug, Object: "model", OwnedBy: m.Author(),
		Name: m.DisplayName, CanonicalSlug: m.Slug, Description: m.Description, Kind: m.Kind,
		Architecture:        architecture(m),
		Pricing:             prices(rates, markup),
		SupportedParameters: m.SupportedParameters,
		Links:               Details{"/v1/models/" + m.Slug},
	}
	if !m.Created.IsZero() {
		view.Created = m.Created.Unix()
	}
	if m.Kind == modelgate.LLM {
		view.ContextLength = null.IfZero(m.ContextLength)
		view.TopProvider = TopProvider{ContextLength: view.ContextLength, MaxCompletionTokens: null.IfZero(m.MaxOutput)}
	}
	return view
}

func architecture(m *modelgate.Model) Architecture {
	usual := m.Kind.Modalities()
	view := Architecture{Input: m.Modalities.Input, Output: m.Modalities.Output}
	if view.Input == nil {
		view.Input = usual.Input
	}
	if view.Output == nil {
		view.Output = usual.Output
	}
	view.Modality = strings.Join(view.Input, "+") + "->" + strings.Join(view.Output, "+")
	return view
}

func prices(rates modelgate.Rates, markup modelgate.Markup) Pricing {
	usd := func(u modelgate.Unit) string { return rates.Decimal(u, markup) }
	return Pricing{
		Prompt:            cmp.Or(usd(modelgate.UnitInput), noPrice),
		Completion:        cmp.Or(usd(modelgate.UnitOutput), noPrice),
		InputCacheRead:    usd(modelgate.UnitCachedInput),
		InputCacheWrite:   usd(modelgate.UnitCacheWrite),
		InputCacheWrite1h: usd(modelgate.UnitCacheWrite1h),
		Audio:             usd(modelgate.UnitAudioInput),
		AudioOutput:       usd(modelgate.UnitAudioOutput),
		Request:           usd(modelgate.UnitRequest),
		WebSearch:         usd(modelgate.UnitSearch),
	}
}
