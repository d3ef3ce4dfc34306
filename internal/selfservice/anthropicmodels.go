package selfservice

import (
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/null"
)

// anthropicList is a page of models in the shape of Anthropic's list
// (https://docs.claude.com/en/api/models-list).
type anthropicList struct {
	Data    []anthropicView `json:"data"`
	HasMore bool            `json:"has_more"` // in the direction of the page
	FirstID *string         `json:"first_id"`
	LastID  *string         `json:"last_id"`
}

type anthropicView struct {
	Type           string     `json:"type"`
	ID             string     `json:"id"`
	DisplayName    string     `json:"display_name"`
	CreatedAt      time.Time  `json:"created_at"` // the epoch where unknown
	MaxInputTokens *int64     `json:"max_input_tokens"`
	MaxTokens      *int64     `json:"max_tokens"`
	Capabilities   *struct{}  `json:"capabilities"`
	Lifecycle      string     `json:"lifecycle"`
	Line           *string    `json:"line"`
	DeprecatedAt   *time.Time `json:"deprecated_at"`
	RetiresAt      *time.Time `json:"retires_at"`
}

// anthropicPage is which page of Anthropic's list a request is for.
type anthropicPage struct {
	asked         bool
	limit         int     // 1..1000
	after, before *string // slugs that the page ends at; at most one is given
}

// asksAnthropic reports whether a request is from a client of Anthropic's.
func asksAnthropic(x *exchange) bool { return x.r.Header.Get("Anthropic-Version") != "" }

func (p *anthropicPage) read(x *exchange) error {
	if p.asked = asksAnthropic(x); !p.asked {
		return nil
	}
	p.limit = x.query.Int("limit", 1, 1000, 20)
	if id, given := x.query.Text("after_id"); given {
		p.after = &id
	}
	if id, given := x.query.Text("before_id"); given {
		p.before = &id
	}
	if p.after != nil && p.before != nil {
		return modelgate.Errorf(modelgate.BadRequest, "give after_id or before_id, not both")
	}
	return nil
}

// servesMessages reports whether Anthropic's clients can call a model.
func (a *API) servesMessages(m *modelgate.Model) bool {
	return slices.Contains(a.doors(m), "/v1/messages")
}

// anthropicModels is a page of the models that /v1/messages serves, newest first.
func (a *API) anthropicModels(models []*modelgate.Model, p anthropicPage) (anthropicList, error) {
	models = slices.DeleteFunc(models, func(m *modelgate.Model) bool { return !a.servesMessages(m) })
	slices.SortStableFunc(models, func(a, b *modelgate.Model) int { return b.Created.Compare(a.Created) })
	position := func(name, id string) (int, error) {
		i := slices.IndexFunc(models, func(m *modelgate.Model) bool { return m.Slug == id })
		if i < 0 {
			return 0, modelgate.Errorf(modelgate.BadRequest, "%s is not the id of a model in this list", name)
		}
		return i, nil
	}
	from, to := 0, min(p.limit, len(models))
	more := to < len(models)
	switch {
	case p.after != nil:
		i, err := position("after_id", *p.after)
		if err != nil {
			return anthropicList{}, err
		}
		from, to = i+1, min(i+1+p.limit, len(models))
		more = to < len(models)
	case p.before != nil:
		i, err := position("before_id", *p.before)
		if err != nil {
			return anthropicList{}, err
		}
		from, to = max(i-p.limit, 0), i
		more = from > 0
	}
	list := anthropicList{Data: []anthropicView{}, HasMore: more}
	for _, m := range models[from:to] {
		list.Data = append(list.Data, viewAnthropic(m))
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return list, nil
}

func viewAnthropic(m *modelgate.Model) anthropicView {
	view := anthropicView{
		Type: "model", ID: m.Slug, DisplayName: m.DisplayName, CreatedAt: m.Created, Lifecycle: "active",
		MaxInputTokens: null.IfZero(m.ContextLength), MaxTokens: null.IfZero(m.MaxOutput),
	}
	if m.Created.IsZero() {
		view.CreatedAt = time.Unix(0, 0)
	}
	return view
}
