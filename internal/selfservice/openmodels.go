package selfservice

import (
	"context"

	"modelgate"
	"modelgate/internal/httpx"
	"modelgate/internal/modelview"
	"modelgate/internal/pricing"
)

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
	list := modelview.List{Object: "list", Data: make([]modelview.Model, 0, len(models)), TotalCount: len(models)}
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
		return modelview.OfAnthropic(m), nil
	}
	return a.viewOpen(by, m), nil
}

// viewOpen shows a model with the price that holds now on the route that a call
// takes, for an end customer what it is billed.
func (a *API) viewOpen(by actor, m *modelgate.Model) modelview.Model {
	var rates modelgate.Rates
	route, _ := by.Bounds().Route(m)
	if p := m.PriceOn(route); p != nil {
		rates = pricing.At(p, a.Now())
	}
	return modelview.Of(m, rates, by.Markup)
}
