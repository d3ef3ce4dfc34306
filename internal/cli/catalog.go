package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"modelgate"
	"modelgate/internal/atomicfile"
	"modelgate/internal/cli/fetch"
	"modelgate/internal/config"
	"modelgate/internal/pricing/pricefile"
)

// catalog groups the commands on catalog files.
func (a *app) catalog() *cobra.Command {
	return a.group("catalog", "The catalog of models", a.catalogImport(), a.catalogCheck())
}

// maxLists bounds the price lists of one command.
const maxLists = 4

// listFlags name price lists and the providers that they are read for.
type listFlags struct {
	from, providers []string
}

func (f *listFlags) add(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.from, "from", nil, "a price list of models.dev, LiteLLM, genai-prices or OpenRouter: a `FILE or URL`; may be repeated, up to four")
	flags.StringSliceVar(&f.providers, "provider", nil, "a configured provider, and what lists call it: `NAME[=[LIST:]SOURCE]`; default all")
	_ = cmd.RegisterFlagCompletionFunc("provider", a.completeProviders) // the flags are there
	_ = cmd.MarkFlagFilename("from", "json")
	required(cmd, "from")
}

// importFlags are those of `modelgate catalog import`.
type importFlags struct {
	listFlags
	into    string
	approve []string
	write   bool
}

func (a *app) catalogImport() *cobra.Command {
	f := importFlags{into: "catalog.d/imported.yaml"}
	short := "Show what public price lists would change in a catalog file, and with --write change it"
	cmd := a.configured("import", short, func(op *operation) error { return op.importCatalog(&f) })
	cmd.Long = short + ".\n\nA price is written where two lists state it and none another, or where --approve says that a person has compared it with the provider's page. " +
		"A price that moves by more than twice, to 0 or vanishes takes the model's slug. Models are never removed."
	f.add(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.into, "into", f.into, "the catalog `FILE`, relative to the configuration file's directory; it must be named in catalog_files")
	flags.StringSliceVar(&f.approve, "approve", nil, "`SLUGS` whose shown prices you approve, comma separated, or all")
	flags.BoolVar(&f.write, "write", false, "write the file; without it nothing is changed")
	_ = cmd.MarkFlagFilename("into", "yaml", "yml")
	return cmd
}

func (a *app) catalogCheck() *cobra.Command {
	var f listFlags
	short := "Compare the prices of the catalog with public price lists"
	cmd := a.configured("check", short, func(op *operation) error { return op.checkCatalog(&f) })
	cmd.Long = short + ".\n\nExit codes: 0 the lists confirm the prices, 1 a price differs, is disputed or missing, or has other thresholds, 2 usage."
	f.add(a, cmd)
	return cmd
}

// imported is what `modelgate catalog import` has found.
type imported struct {
	File    string `json:"file"`
	Diff    string `json:"diff"`
	Written bool   `json:"written"`
	// Proposed are the changes that a person has to approve.
	Proposed []*pricefile.Change `json:"proposed"`
	// Refused are the models of the providers whose price is not understood.
	Refused []pricefile.Refused `json:"refused"`
}

// importCatalog shows or makes the change. Models that another file of the
// configuration has are left alone.
func (op *operation) importCatalog(f *importFlags) error {
	models, refused, err := op.readLists(&f.listFlags)
	if err != nil {
		return err
	}
	out := imported{File: f.into, Refused: refused, Proposed: []*pricefile.Change{}}
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
	var approved []*pricefile.Change
	for i := range models {
		m := &models[i]
		mine := strings.Contains(string(before), "\n- slug: "+m.Slug+"\n")
		at := slices.IndexFunc(op.cfg.Catalog, func(c *modelgate.Model) bool { return strings.EqualFold(c.Slug, m.Slug) })
		if at >= 0 && !mine {
			continue
		}
		var now map[pricefile.Place]string
		if at >= 0 {
			now = pricefile.Places(op.cfg.Catalog[at].Price)
		}
		switch c := m.Compare(now); {
		case c == nil:
		case c.Approved(f.approve):
			approved = append(approved, c)
		default:
			out.Proposed = append(out.Proposed, c)
		}
	}
	after := before
	if len(approved) > 0 {
		after = pricefile.Catalog(before, approved, time.Now().UTC(), approver())
	}
	if out.Diff = pricefile.Diff(before, after); f.write && out.Diff != "" {
		if err := op.replaceCatalog(out.File, before, after); err != nil {
			return err
		}
		out.Written = true
	}
	return op.out.value(out, out.text)
}

// approver is who runs the command.
func approver() string {
	if u, err := user.Current(); err == nil {
		return "cli:" + u.Username
	}
	return "cli:"
}

func (i imported) text(w io.Writer) {
	fmt.Fprint(w, i.Diff)
	for _, r := range i.Refused {
		fmt.Fprintf(w, "Refused: %s: %s %s: %s\n", r.List, r.Source, r.Model, r.Reason)
	}
	for _, c := range i.Proposed {
		name := "--approve all, or " + c.Slug
		if c.Drastic {
			name = "--approve " + c.Slug
		}
		fmt.Fprintf(w, "Not approved: %s: %s (%s)\n", c.Slug, strings.Join(c.Doubts, "; "), name)
	}
	switch {
	case i.Diff == "" && len(i.Proposed) == 0:
		fmt.Fprintln(w, "No change.")
	case i.Diff == "":
		fmt.Fprintln(w, "Nothing is changed: compare these prices with the provider's page, then add --approve.")
	case i.Written:
		fmt.Fprintln(w, "Written to", i.File)
	default:
		fmt.Fprintln(w, "Nothing is changed yet; review, then add --write.")
	}
}

// readLists reads the lists, and finds the models of the providers in them.
func (op *operation) readLists(f *listFlags) (models []pricefile.Model, refused []pricefile.Refused, err error) {
	if len(f.from) > maxLists {
		return nil, nil, usageError(fmt.Sprintf("at most %d lists", maxLists))
	}
	var entries []pricefile.Entry
	for _, from := range f.from {
		list, err := fetch.List(op.ctx, from, op.app.terminal(op.app.Stderr).Watch)
		if err != nil {
			return nil, nil, err
		}
		found, bad, err := pricefile.Read(list, time.Now().UTC())
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", from, err)
		}
		entries, refused = append(entries, found...), append(refused, bad...)
	}
	providers, err := f.matching(op.cfg, entries)
	if err != nil {
		return nil, nil, err
	}
	refused = slices.DeleteFunc(refused, func(r pricefile.Refused) bool {
		return !slices.ContainsFunc(providers, func(p pricefile.Provider) bool { return slices.Contains(p.Sources, r.Source) })
	})
	if refused == nil {
		refused = []pricefile.Refused{}
	}
	return pricefile.Match(entries, providers), refused, nil
}

// matching are the providers asked for, or all, as far as the lists have them.
func (f *listFlags) matching(cfg *config.Config, entries []pricefile.Entry) ([]pricefile.Provider, error) {
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
		p := pricefile.Provider{Name: name}
		p.Sources, p.Author = pricefile.Aliases(cfg.Providers[i].Format)
		if named {
			if list, rest, ok := strings.Cut(source, ":"); ok {
				p.List, source = list, rest
			}
			p.Sources = []string{source}
		}
		known := slices.ContainsFunc(entries, func(e pricefile.Entry) bool {
			return slices.Contains(p.Sources, e.Source) && (p.List == "" || p.List == e.List)
		})
		if known {
			out = append(out, p)
		} else if len(f.providers) > 0 {
			return nil, fmt.Errorf("the price list knows nothing of %s; write --provider %s=NAME-IN-THE-LIST", strings.Join(p.Sources, " or "), name)
		}
	}
	return out, nil
}

// checkCatalog compares every price of a route that the lists know.
func (op *operation) checkCatalog(f *listFlags) error {
	models, _, err := op.readLists(f)
	if err != nil {
		return err
	}
	found := []pricefile.Finding{}
	failed := false
	for i := range models {
		at := slices.IndexFunc(op.cfg.Catalog, func(c *modelgate.Model) bool { return strings.EqualFold(c.Slug, models[i].Slug) })
		if at < 0 || op.cfg.Catalog[at].Price == nil {
			continue
		}
		for _, f := range models[i].Check(op.cfg.Catalog[at].Price, time.Now()) {
			found = append(found, f)
			failed = failed || f.Fails()
		}
	}
	err = op.out.table(found, "FINDING\tMODEL\tUNIT\tABOVE\tTIER\tOURS\tLISTS", func(row func(...any)) {
		for _, f := range found {
			var lists []string
			for _, s := range f.Lists {
				lists = append(lists, s.List+" "+s.USD)
			}
			row(f.Finding, f.Slug, f.Unit, f.Above, f.ServiceTier, f.Ours, strings.Join(lists, ", "))
		}
	})
	if err == nil && failed {
		return exitWith(exitError)
	}
	return err
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
