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

	"github.com/spf13/cobra"

	"modelgate/internal/atomicfile"
	"modelgate/internal/config"
	"modelgate/internal/pricing/pricefile"
)

// catalog groups the commands on catalog files.
func (a *app) catalog() *cobra.Command {
	return a.group("catalog", "The catalog of models", a.catalogImport())
}

// importFlags are those of `modelgate catalog import`.
type importFlags struct {
	from, into string
	providers  []string
	write      bool
}

func (a *app) catalogImport() *cobra.Command {
	f := importFlags{into: "catalog.d/imported.yaml"}
	short := "Show what a public price list would change in a catalog file, and with --write change it"
	cmd := a.configured("import", short, func(op *operation) error { return op.importCatalog(&f) })
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "models.dev's api.json or LiteLLM's model_prices_and_context_window.json: a `FILE or URL`")
	flags.StringVar(&f.into, "into", f.into, "the catalog `FILE`, relative to the configuration file's directory; it must be named in catalog_files")
	flags.StringSliceVar(&f.providers, "provider", nil, "a configured provider, and what the list calls it: `NAME[=SOURCE]`; default all")
	flags.BoolVar(&f.write, "write", false, "write the file; without it nothing is changed")
	_ = cmd.RegisterFlagCompletionFunc("provider", a.completeProviders) // the flags are there
	_ = cmd.MarkFlagFilename("from", "json")
	_ = cmd.MarkFlagFilename("into", "yaml", "yml")
	required(cmd, "from")
	return cmd
}

// imported is what `modelgate catalog import` has found.
type imported struct {
	File    string `json:"file"`
	Diff    string `json:"diff"`
	Written bool   `json:"written"`
	// Refused are the models of the providers whose price is not understood.
	Refused []pricefile.Refused `json:"refused"`
}

// importCatalog shows or makes the change. Models that another file of the
// configuration has are left alone.
func (op *operation) importCatalog(f *importFlags) error {
	list, err := op.app.readList(op.ctx, f.from)
	if err != nil {
		return err
	}
	entries, refused, err := pricefile.Read(list)
	if err != nil {
		return err
	}
	providers, err := f.matching(op.cfg, entries)
	if err != nil {
		return err
	}
	out := imported{File: f.into, Refused: slices.DeleteFunc(refused, func(r pricefile.Refused) bool {
		return !slices.ContainsFunc(providers, func(p pricefile.Provider) bool { return p.Source == r.Source })
	})}
	if out.Refused == nil {
		out.Refused = []pricefile.Refused{}
	}
	if !filepath.IsAbs(out.File) {
		out.File = filepath.Join(filepath.Dir(op.file), out.File)
	}
	before, err := os.ReadFile(out.File)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !pricefile.Owned(before) {
		return fmt.Errorf("%s was not written by this command; name another file with --into", out.File)
	}
	elsewhere := map[string]bool{}
	for _, m := range op.cfg.Catalog {
		if !bytes.Contains(before, []byte("\n- slug: "+m.Slug+"\n")) {
			elsewhere[strings.ToLower(m.Slug)] = true
		}
	}
	after := pricefile.Catalog(entries, providers, func(slug string) bool { return elsewhere[slug] })
	out.Diff = pricefile.Diff(before, after)
	if f.write && out.Diff != "" {
		if err := op.replaceCatalog(out.File, before, after); err != nil {
			return err
		}
		out.Written = true
	}
	return op.out.value(out, out.text)
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

// matching are the providers asked for, or all, as far as the list has them.
func (f *importFlags) matching(cfg *config.Config, entries []pricefile.Entry) ([]pricefile.Provider, error) {
	known := func(source string) bool {
		return slices.ContainsFunc(entries, func(e pricefile.Entry) bool { return e.Source == source })
	}
	var out []pricefile.Provider
	asked := f.providers
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
		} else if len(f.providers) > 0 {
			return nil, fmt.Errorf("the price list knows nothing of %s; write --provider %s=NAME-IN-THE-LIST", strings.Join(sources, " or "), name)
		}
	}
	return out, nil
}

// replaceCatalog writes the file, and takes that back where the configuration as a
// whole is no longer right.
func (op *operation) replaceCatalog(path string, before, after []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := replaceFile(path, after); err != nil {
		return err
	}
	faults, _ := config.Check(op.file, op.app.Lookup)
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
