package selfservice

import (
	"cmp"
	"context"
	"strings"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/pricing"
)

// openList is the catalog in the shape of OpenAI's model list, with the members
// that OpenRouter's has beside it (spec: GET /v1/models).
type openList struct {
	Object     string     `json:"object"`
	Data       []openView `json:"data"`
	TotalCount int        `json:"total_count"`
	Links      nextLink   `json:"links"`
}

type nextLink struct {
	Next *string `json:"next"` // always null: the list is whole
}

type openView struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // seconds since the epoch; 0 where unknown
	OwnedBy string `json:"owned_by"`

	Name          string              `json:"name"`
	CanonicalSlug string              `json:"canonical_slug"`
	Description   string              `json:"description,omitzero"`
	Kind          modelgate.ModelKind `json:"kind"`
	ContextLength *int64              `json:"context_length"` // null where unknown, and except for llm
	Architecture  architectureView    `json:"architecture"`
	Pricing       pricingView         `json:"pricing"`
	TopProvider   topProviderView     `json:"top_provider"`

	SupportedParameters []string `json:"supported_parameters"` // of a request's body; empty where unknown
	// Clients of OpenRouter expect these. The catalog knows nothing of them, so
	// that they are null.
	SupportedVoices   *struct{} `json:"supported_voices"`
	DefaultParameters *struct{} `json:"default_parameters"`
	PerRequestLimits  *struct{} `json:"per_request_limits"`

	Links detailsLink `json:"links"`
}

type architectureView struct {
	Modality string   `json:"modality"` // such as text+image->text
	Input    []string `json:"input_modalities"`
	Output   []string `json:"output_modalities"`
}

type topProviderView struct {
	ContextLength       *int64 `json:"context_length"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	IsModerated         bool   `json:"is_moderated"`
}

type detailsLink struct {
	Details string `json:"details"`
}

// noPrice stands for a price that is not known, which must not look free.
const noPrice = "-1"

// pricingView are decimals in USD for one token, call or search.
type pricingView struct {
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

// modelsQuery is what the lists of models read from a request.
type modelsQuery struct {
	allowed bool // only models that the key may call
	// anthropic says that a client of Anthropic's asks, which has an
	// anthropic-version header. It gets Anthropic's shape.
	anthropic anthropicPage
}

func (q *modelsQuery) read(x *exchange) error {
	q.allowed = httpx.OneOf(x.query, "allowed", "false", "true", "false") == "true"
	return q.anthropic.read(x)
}

// openModels lists the catalog for the SDKs of OpenAI, Anthropic and OpenRouter.
func (a *API) openModels(_ context.Context, by actor, q modelsQuery) (any, error) {
	var models []*modelgate.Model
	for _, m := range a.Catalog().Models() {
		if !q.allowed || mayCall(by, m) {
			models = append(models, m)
		}
	}
	if q.anthropic.asked {
		return a.anthropicModels(models, q.anthropic)
	}
	list := openList{Object: "list", Data: make([]openView, 0, len(models)), TotalCount: len(models)}
	for _, m := range models {
		list.Data = append(list.Data, a.viewOpen(by, m))
	}
	return list, nil
}

// mayCall reports whether the key may call the model on one of its routes.
func mayCall(by actor, m *modelgate.Model) bool {
	if !by.Has(modelgate.InferenceUse) {
		return false
	}
	for i, r := range m.Routes {
		if by.Permit(m.Target(i)) && by.PermitRegion(r.Region) {
			return true
		}
	}
	return false
}

// modelQuery names one model by its slug, which comes as author/model or as one
// escaped segment.
type modelQuery struct {
	slug      string
	anthropic bool
}

func (q *modelQuery) read(x *exchange) error {
	*q = modelQuery{x.path[0], asksAnthropic(x)}
	return nil
}

func (a *API) openModel(_ context.Context, by actor, q modelQuery) (any, error) {
	m := a.Catalog().Find(q.slug)
	if m == nil || q.anthropic && !a.servesMessages(m) {
		return nil, httpx.SuggestModels(modelgate.ErrUnknownSlug(q.slug), q.slug, a.Catalog().Models(), func(m *modelgate.Model) bool {
			return !q.anthropic || a.servesMessages(m)
		})
	}
	if q.anthropic {
		return viewAnthropic(m), nil
	}
	return a.viewOpen(by, m), nil
}

func (a *API) viewOpen(by actor, m *modelgate.Model) openView {
	view := openView{
		ID: m.Slug, Object: "model", OwnedBy: m.Author(),
		Name: m.DisplayName, CanonicalSlug: m.Slug, Description: m.Description, Kind: m.Kind,
		Architecture:        viewArchitecture(m),
		Pricing:             a.viewPricing(by, m),
		SupportedParameters: m.SupportedParameters,
		Links:               detailsLink{"/v1/models/" + m.Slug},
	}
	if !m.Created.IsZero() {
		view.Created = m.Created.Unix()
	}
	if m.Kind == modelgate.LLM {
		view.ContextLength = tokensOrNull(m.ContextLength)
		view.TopProvider = topProviderView{ContextLength: view.ContextLength, MaxCompletionTokens: tokensOrNull(m.MaxOutput)}
	}
	return view
}

// tokensOrNull is a number of tokens, null where it is not known.
func tokensOrNull(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func viewArchitecture(m *modelgate.Model) architectureView {
	usual := m.Kind.Modalities()
	view := architectureView{Input: m.Modalities.Input, Output: m.Modalities.Output}
	if view.Input == nil {
		view.Input = usual.Input
	}
	if view.Output == nil {
		view.Output = usual.Output
	}
	view.Modality = strings.Join(view.Input, "+") + "->" + strings.Join(view.Output, "+")
	return view
}

// viewPricing is the price that holds now on the route that a call takes, for an
// end customer what it is billed.
func (a *API) viewPricing(by actor, m *modelgate.Model) pricingView {
	var rates modelgate.Rates
	route, _ := by.Bounds().Route(m)
	if p := m.PriceOn(route); p != nil {
		rates = pricing.At(p, a.Now())
	}
	usd := func(u modelgate.Unit) string { return rates.Decimal(u, by.Markup) }
	return pricingView{
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
