package config

import (
	"embed"
	"io/fs"
	"slices"

	"modelgate"
)

//go:embed starter/*.yaml
var starterFiles embed.FS

// Starter is a catalog to begin with: well-known models with the prices that
// were published in late 2026, each with its source in the file it stands in.
// Only routes to a provider that is present are kept, and only models that
// have one.
func Starter(present func(provider string) bool) ([]*modelgate.Model, error) {
	l := loader{env: func(string) (string, bool) { return "", false }}
	list := catalogList{first: make(map[string]string)}
	names, err := fs.Glob(starterFiles, "starter/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := starterFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		doc := l.parse(name, text)
		if doc == nil {
			continue
		}
		var models []model
		doc.decode(&models)
		list.add(doc, "", models)
	}
	if len(l.faults) > 0 {
		return nil, Faults(l.faults)
	}
	var kept []*modelgate.Model
	for _, m := range list.models {
		m.Routes = slices.DeleteFunc(m.Routes, func(r modelgate.Route) bool { return !present(r.Provider) })
		if len(m.Routes) > 0 {
			kept = append(kept, m)
		}
	}
	return kept, nil
}
