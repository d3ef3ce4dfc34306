package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"modelgate/internal/atomicfile"
	"modelgate/internal/config"
	"modelgate/internal/pricing/pricefile"
)

// catalogCommand groups the commands on catalog files.
type catalogCommand struct {
	Import catalogImport `cmd:"" help:"Show what a public price list would change in a catalog file, and with --write change it."`
}

type catalogImport struct {
	operatorFlags
	From     string   `name:"from" required:"" placeholder:"FILE" help:"models.dev's api.json or LiteLLM's model_prices_and_context_window.json."`
	Into     string   `name:"into" placeholder:"FILE" default:"catalog.d/imported.yaml" help:"The catalog file, relative to the configuration file's directory; it must be named in catalog_files."`
	Provider []string `name:"provider" placeholder:"NAME[=SOURCE]" help:"A configured provider, and what the list calls it; default all."`
	Write    bool     `name:"write" help:"Write the file. Without it nothing is changed."`
}

// imported is what `modelgate catalog import` has found.
type imported struct {
	File    string `json:"file"`
	Diff    string `json:"diff"`
	Written bool   `json:"written"`
	// Refused are the models of the providers whose price is not understood.
	Refused []pricefile.Refused `json:"refused"`
}

// Run is `modelgate catalog import`. Models that another file of the
// configuration has are left alone.
func (c *catalogImport) Run(env *Environment) error {
	cfg, err := env.loadConfig(c.ConfigFile)
	if err != nil {
		return err
	}
	list, err := os.ReadFile(c.From)
	if err != nil {
		return err
	}
	entries, refused, err := pricefile.Read(list)
	if err != nil {
		return err
	}
	providers, err := c.providers(cfg, entries)
	if err != nil {
		return err
	}
	out := imported{File: c.Into, Refused: slices.DeleteFunc(refused, func(r pricefile.Refused) bool {
		return !slices.ContainsFunc(providers, func(p pricefile.Provider) bool { return p.Source == r.Source })
	})}
	if out.Refused == nil {
		out.Refused = []pricefile.Refused{}
	}
	if !filepath.IsAbs(out.File) {
		out.File = filepath.Join(filepath.Dir(c.ConfigFile), out.File)
	}
	before, err := os.ReadFile(out.File)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !pricefile.Owned(before) {
		return fmt.Errorf("%s was not written by this command; name another file with --into", out.File)
	}
	elsewhere := map[string]bool{}
	for _, m := range cfg.Catalog {
		if !bytes.Contains(before, []byte("\n- slug: "+m.Slug+"\n")) {
			elsewhere[strings.ToLower(m.Slug)] = true
		}
	}
	after := pricefile.Catalog(entries, providers, func(slug string) bool { return elsewhere[slug] })
	out.Diff = pricefile.Diff(before, after)
	if c.Write && out.Diff != "" {
		if err := c.replace(env, out.File, before, after); err != nil {
			return err
		}
		out.Written = true
	}
	return c.output(env).value(out, out.text)
}

func (i imported) text(w io.Writer) {
	fmt.Fprint(w, i.Diff)
	for _, r := range i.Refused {
		fmt.Fprintf(w, "Refused: %s %s: %s\n", r.Source, r.Model, r.Reason)
	}
	switch {
	case i.Diff == "":
		fmt.Fprintln(w, "No change.")
	case i.Written:
		fmt.Fprintln(w, "Written to", i.File)
	default:
		fmt.Fprintln(w, "Nothing is changed yet; review, then add --write.")
	}
}

// providers are those asked for, or all, as far as the list has them.
func (c *catalogImport) providers(cfg *config.Config, entries []pricefile.Entry) ([]pricefile.Provider, error) {
	known := func(source string) bool {
		return slices.ContainsFunc(entries, func(e pricefile.Entry) bool { return e.Source == source })
	}
	var out []pricefile.Provider
	asked := c.Provider
	if len(asked) == 0 {
		for i := range cfg.Providers {
			asked = append(asked, cfg.Providers[i].Name)
		}
	}
	for _, want := range asked {
		name, source, named := strings.Cut(want, "=")
		i := slices.IndexFunc(cfg.Providers, func(p config.Provider) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no provider %s is configured", name)
		}
		sources, author := pricefile.Aliases(cfg.Providers[i].Format)
		if named {
			sources = []string{source}
		}
		if at := slices.IndexFunc(sources, known); at >= 0 {
			out = append(out, pricefile.Provider{Name: name, Source: sources[at], Author: author})
		} else if len(c.Provider) > 0 {
			return nil, fmt.Errorf("the price list knows nothing of %s; write --provider %s=NAME-IN-THE-LIST", strings.Join(sources, " or "), name)
		}
	}
	return out, nil
}

// replace writes the file, and takes that back where the configuration as a
// whole is no longer right.
func (c *catalogImport) replace(env *Environment, path string, before, after []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := replaceFile(path, after); err != nil {
		return err
	}
	faults, _ := config.Check(c.ConfigFile, env.Lookup)
	if len(faults) == 0 {
		return nil
	}
	err := fmt.Errorf("not written, the configuration would be wrong: %s", faults[0])
	if before == nil {
		return errors.Join(err, os.Remove(path))
	}
	return errors.Join(err, replaceFile(path, before))
}

// replaceFile replaces a file; who may read it stays as it was.
func replaceFile(path string, text []byte) error {
	mode := os.FileMode(0o644)
	if old, err := os.Stat(path); err == nil {
		mode = old.Mode().Perm()
	}
	return atomicfile.Write(path, text, mode)
}
