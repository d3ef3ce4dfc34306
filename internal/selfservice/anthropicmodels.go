package selfservice

import (
	"slices"

	"modelgate"
	"modelgate/internal/modelview"
)

// anthropicPage is which page of Anthropic's list a request is for.
type anthropicPage struct {
	asked bool
	modelview.AnthropicPage
}

// asksAnthropic reports whether a request is from a client of Anthropic's.
func asksAnthropic(x *exchange) bool { return x.r.Header.Get("Anthropic-Version") != "" }

func (p *anthropicPage) read(x *exchange) error {
	if p.asked = asksAnthropic(x); !p.asked {
		return nil
	}
	p.Limit = x.query.Int("limit", 1, 1000, 20)
	if id, given := x.query.Text("after_id"); given {
		p.After = &id
	}
	if id, given := x.query.Text("before_id"); given {
		p.Before = &id
	}
	if p.After != nil && p.Before != nil {
		return modelgate.Errorf(modelgate.BadRequest, "give after_id or before_id, not both")
	}
	return nil
}

// servesMessages reports whether Anthropic's clients can call a model.
func (a *API) servesMessages(m *modelgate.Model) bool {
	return slices.Contains(a.doors(m), "/v1/messages")
}

// anthropicModels is a page of the models that /v1/messages serves, newest first.
func (a *API) anthropicModels(models []*modelgate.Model, p anthropicPage) (modelview.AnthropicList, error) {
	return modelview.ListAnthropic(slices.DeleteFunc(models, func(m *modelgate.Model) bool { return !a.servesMessages(m) }), p.AnthropicPage)
}
