// Package config reads the configuration: one strict YAML file, and the lists
// of models it names, become one value.
//
// Strict means that whatever is not understood is a Fault with its line, and
// that all faults are found at once. The way of a file: parse (document.go),
// decode into the structs whose yaml tags are the keys (decode.go), with
// environment variables replaced in the values only (expand.go), then judge
// what the values mean (check*.go), then make the catalog (catalog.go,
// price.go).
//
// A new section is one struct with yaml tags and manuals as its comments, one
// field of Settings, perhaps a setDefaults and a check. The schema and the
// reference manual follow from these; go test -update writes them.
package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"modelgate"
)

// Config is a configuration that was found to be right. It is immutable and
// safe for concurrent use; a reload makes a new one.
type Config struct {
	Settings
	// Catalog holds the models of the file and of its catalog_files, in the
	// order of the files.
	Catalog []*modelgate.Model
	// Prices is the price list of provider-proxy calls, searched in order.
	Prices []modelgate.ProxyPrice
	// Warnings are what is probably not meant but harmless, in the order of
	// the file.
	Warnings []Fault
}

// NewCatalog indexes the models and the price list. On every route it notes
// where its provider is.
func (c *Config) NewCatalog() (*modelgate.Catalog, error) {
	models := make([]*modelgate.Model, len(c.Catalog))
	for i, m := range c.Catalog {
		located := *m
		located.Routes = slices.Clone(m.Routes)
		for k := range located.Routes {
			r := &located.Routes[k]
			at := slices.IndexFunc(c.Providers, func(p Provider) bool { return p.Name == r.Provider })
			if r.Unconfigured = at < 0; !r.Unconfigured {
				r.Region = c.Providers[at].regionOf(r.Model)
			}
		}
		models[i] = &located
	}
	return modelgate.NewCatalog(models, c.Prices)
}

// file is the shape of the configuration file.
type file struct {
	Settings `yaml:",inline"`

	// The models that clients may name, in addition to those of
	// catalog_files. Default: none. May change without a restart.
	Catalog []model `yaml:"catalog"`

	// Files with more models: each holds a list of the same shape as catalog.
	// An entry is a path or a glob (`*`, `?`, `[a-z]`), relative to the
	// directory of this file. A path without a glob must exist. A slug may
	// occur only once in all files. Default: none. May change without a
	// restart.
	CatalogFiles []string `yaml:"catalog_files"`

	// Prices of provider-proxy calls of models that no route of the catalog
	// names. The first entry that matches applies. Default: none. May change
	// without a restart.
	Prices []listPrice `yaml:"prices"`
}

// Load reads the file and returns its configuration, or Faults. Environment
// variables come from env, usually os.LookupEnv; relative paths are relative
// to the directory of the file.
func Load(path string, env func(string) (string, bool)) (*Config, error) {
	l := loader{env: env}
	cfg := l.load(path)
	if len(l.faults) > 0 {
		return nil, Faults(sorted(l.faults))
	}
	cfg.Warnings = sorted(l.warnings)
	return cfg, nil
}

// Check reads the file as Load does and returns all that is wrong with it, in
// the order of its lines, and what is probably not meant. A file without
// faults is one that Load accepts.
func Check(path string, env func(string) (string, bool)) (faults, warnings []Fault) {
	l := loader{env: env}
	l.load(path)
	return sorted(l.faults), sorted(l.warnings)
}

// sorted puts faults in the order of their places, file by file as the files
// first came up.
func sorted(faults []Fault) []Fault {
	order := make(map[string]int)
	for _, f := range faults {
		if _, known := order[f.File]; !known {
			order[f.File] = len(order)
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}

// loader is the reading of one configuration with all its files.
type loader struct {
	env              func(string) (string, bool)
	faults, warnings []Fault
}

func (l *loader) load(path string) *Config {
	doc := l.open(path)
	if doc == nil {
		return nil
	}
	return l.read(doc, filepath.Dir(path))
}

// read makes the configuration of a document whose relative paths begin at
// dir.
func (l *loader) read(doc *document, dir string) *Config {
	var f file
	initialise(&f)
	doc.decode(&f)
	if text, ok := l.env(transportVariable); ok && text != "" {
		for i := range f.Providers {
			f.Providers[i].Transport = Transport(text)
		}
	}
	f.Settings.resolvePaths(dir)
	f.Settings.check(doc)
	models := l.models(doc, &f, dir)
	cfg := &Config{Settings: f.Settings, Catalog: models}
	for i := range f.Prices {
		cfg.Prices = append(cfg.Prices, f.Prices[i].resolve(doc, element("prices", i), f.Providers))
	}
	cfg.priceAt(accounts(doc, f.Providers))
	return cfg
}

// models resolves the catalog of the file and of its catalog files.
func (l *loader) models(doc *document, f *file, dir string) []*modelgate.Model {
	list := catalogList{providers: f.Providers, first: make(map[string]string)}
	list.add(doc, "catalog", f.Catalog)
	seen := make(map[string]bool)
	for i, pattern := range f.CatalogFiles {
		for _, path := range matches(doc, element("catalog_files", i), dir, pattern) {
			if seen[path] {
				continue
			}
			seen[path] = true
			more := l.open(path)
			if more == nil {
				continue
			}
			var models []model
			more.decode(&models)
			list.add(more, "", models)
		}
	}
	return list.models
}

// matches are the files that an entry of catalog_files names, sorted.
func matches(doc *document, key, dir, pattern string) []string {
	if pattern == "" {
		doc.fault(key, "must not be empty")
		return nil
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(dir, pattern)
	}
	if !strings.ContainsAny(pattern, `*?[\`) {
		return []string{pattern}
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		doc.fault(key, "is no valid glob; close every [ and do not end with \\")
	} else if len(paths) == 0 {
		doc.warn(key, "matches no file")
	}
	return paths
}

// Default is the configuration of an empty file: every default, no providers
// and no models.
func Default() *Config {
	var f file
	initialise(&f)
	return &Config{Settings: f.Settings}
}
