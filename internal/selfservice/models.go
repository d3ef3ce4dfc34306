package selfservice

import (
	"context"

	"modelgate"
)

// modelList is the catalog as the management API shows it
// (spec: GET /gw/models). No route is among it.
type modelList struct {
	Models []modelView `json:"models"`
}

type modelView struct {
	Slug          string              `json:"slug"`
	DisplayName   string              `json:"display_name"`
	Author        string              `json:"author"`
	Kind          modelgate.ModelKind `json:"kind"`
	Allowed       bool                `json:"allowed"`
	ContextLength int64               `json:"context_length,omitzero"` // llm only
}

func (a *API) models(_ context.Context, by actor, _ nothing) (modelList, error) {
	bounds := by.Bounds()
	models := a.Catalog().Models()
	list := modelList{Models: make([]modelView, 0, len(models))}
	for _, m := range models {
		view := modelView{
			Slug:        m.Slug,
			DisplayName: m.DisplayName,
			Author:      m.Author(),
			Kind:        m.Kind,
			Allowed:     bounds.Allows(m),
		}
		if m.Kind == modelgate.LLM {
			view.ContextLength = m.ContextLength
		}
		list.Models = append(list.Models, view)
	}
	return list, nil
}

// openList is the catalog in the shape of OpenAI's model list
// (spec: GET /v1/models).
type openList struct {
	Object string     `json:"object"`
	Data   []openView `json:"data"`
}

type openView struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // seconds since the epoch; 0 where unknown
	OwnedBy string `json:"owned_by"`
}

func (a *API) openModels(_ context.Context, _ actor, _ nothing) (openList, error) {
	models := a.Catalog().Models()
	list := openList{Object: "list", Data: make([]openView, 0, len(models))}
	for _, m := range models {
		list.Data = append(list.Data, viewOpen(m))
	}
	return list, nil
}

// modelSlug is the slug in a path; it may come as author/model or as one
// escaped segment.
type modelSlug string

func (s *modelSlug) read(x *exchange) error {
	*s = modelSlug(x.path[0])
	return nil
}

func (a *API) openModel(_ context.Context, _ actor, slug modelSlug) (openView, error) {
	m := a.Catalog().Find(string(slug))
	if m == nil {
		return openView{}, modelgate.ErrUnknownSlug(string(slug))
	}
	return viewOpen(m), nil
}

func viewOpen(m *modelgate.Model) openView {
	view := openView{ID: m.Slug, Object: "model", OwnedBy: m.Author()}
	if !m.Created.IsZero() {
		view.Created = m.Created.Unix()
	}
	return view
}
