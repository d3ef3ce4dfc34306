package modelview

import (
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/null"
)

// AnthropicList is a page of models in the shape of Anthropic's list
// (https://docs.claude.com/en/api/models-list).
type AnthropicList struct {
	Data    []Anthropic `json:"data"`
	HasMore bool        `json:"has_more"` // in the direction of the page
	FirstID *string     `json:"first_id"`
	LastID  *string     `json:"last_id"`
}

// Anthropic is a model in that shape.
type Anthropic struct {
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

// AnthropicPage is which page of Anthropic's list a request is for.
type AnthropicPage struct {
	Limit         int     // 1..1000
	After, Before *string // slugs that the page ends at; at most one is given
}

// ListAnthropic is a page of models, newest first. Errors: bad_request.
func ListAnthropic(models []*modelgate.Model, p AnthropicPage) (AnthropicList, error) {
	slices.SortStableFunc(models, func(a, b *modelgate.Model) int { return b.Created.Compare(a.Created) })
	position := func(name, id string) (int, error) {
		i := slices.IndexFunc(models, func(m *modelgate.Model) bool { return m.Slug == id })
		if i < 0 {
			return 0, modelgate.Errorf(modelgate.BadRequest, "%s is not the id of a model in this list", name)
		}
		return i, nil
	}
	from, to := 0, min(p.Limit, len(models))
	more := to < len(models)
	switch {
	case p.After != nil:
		i, err := position("after_id", *p.After)
		if err != nil {
			return AnthropicList{}, err
		}
		from, to = i+1, min(i+1+p.Limit, len(models))
		more = to < len(models)
	case p.Before != nil:
		i, err := position("before_id", *p.Before)
		if err != nil {
			return AnthropicList{}, err
		}
		from, to = max(i-p.Limit, 0), i
		more = from > 0
	}
	list := AnthropicList{Data: []Anthropic{}, HasMore: more}
	for _, m := range models[from:to] {
		list.Data = append(list.Data, OfAnthropic(m))
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return list, nil
}

// OfAnthropic shows a model as Anthropic does.
func OfAnthropic(m *modelgate.Model) Anthropic {
	view := Anthropic{
		Type: "model", ID: m.Slug, DisplayName: m.DisplayName, CreatedAt: m.Created, Lifecycle: "active",
		MaxInputTokens: null.IfZero(m.ContextLength), MaxTokens: null.IfZero(m.MaxOutput),
	}
	if m.Created.IsZero() {
		view.CreatedAt = time.Unix(0, 0)
	}
	return view
}
