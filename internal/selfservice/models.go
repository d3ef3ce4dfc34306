package selfservice

import (
	"context"

	"modelgate"
)

// modelList is the catalog as the management API shows it (GET /gw/models). No
// route is among it.
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
			Allowed:     bounds.Allows(m) && (by.Token == nil || by.Token.Permits(m.Slug)),
		}
		if m.Kind == modelgate.LLM {
			view.ContextLength = m.ContextLength
		}
		list.Models = append(list.Models, view)
	}
	return list, nil
}
