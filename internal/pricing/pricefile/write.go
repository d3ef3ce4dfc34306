package pricefile

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"modelgate"
)

// head marks a file that was written here and may be written again.
const head = "# Imported by modelgate catalog import. Review every change: compare prices with the\n# provider's own page before billing by them.\n"

// Provider is a configured provider and what lists call it.
type Provider struct {
	Name    string   // in the configuration
	Sources []string // in the lists
	List    string   // the only list that counts; "" for any
	Author  string   // of slugs, where the model's id has none
}

// aliases are, by format, the lists' names of a provider and the author of its
// models in slugs, where these are not the format's own name.
var aliases = map[string]struct {
	sources []string
	author  string
}{
	"gemini":       {[]string{"google", "gemini"}, "google"},
	"xai":          {[]string{"xai", "x-ai"}, "x-ai"},
	"mistral":      {[]string{"mistral"}, "mistralai"},
	"dashscope":    {[]string{"alibaba", "dashscope"}, "alibaba"},
	"moonshot":     {[]string{"moonshotai", "moonshot"}, "moonshotai"},
	"zhipu":        {[]string{"zai", "zhipuai", "z-ai"}, "z-ai"},
	"ark":          {[]string{"volcengine", "bytedance"}, "bytedance"},
	"together":     {[]string{"togetherai", "together_ai"}, "together"},
	"fireworks":    {[]string{"fireworks-ai", "fireworks_ai"}, "fireworks"},
	"azure-openai": {[]string{"azure"}, "openai"},
}

// Aliases are the lists' names of a format and the author of its models in
// slugs.
func Aliases(format string) (sources []string, author string) {
	if a, ok := aliases[format]; ok {
		return a.sources, a.author
	}
	return []string{format}, format
}

// slugged is what a slug may be, see the configuration.
var slugged = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._:@/-]+$`)

// slug is the catalog's name of a model. Ids that have an author keep it.
func (p Provider) slug(model string) string {
	model = strings.ToLower(model)
	if strings.Contains(model, "/") {
		return model
	}
	return p.Author + "/" + model
}

// Catalog is a catalog file with approved changes made: models that do not change
// stay as they are, and none is removed. approvedBy is who approved of what two
// lists do not agree on.
func Catalog(before []byte, changes []*Change, today time.Time, approvedBy string) []byte {
	blocks := blocksOf(before)
	for _, c := range changes {
		origin := fmt.Sprintf("lists: [%s], checked: %s", quoted(c.lists, today), today.Format(time.DateOnly))
		if len(c.Doubts) > 0 {
			origin += fmt.Sprintf(", approved_by: %q, approved_at: %s", approvedBy, today.Format(time.DateOnly))
		}
		blocks[c.Slug] = strings.TrimSpace(block(c.Slug, c.Provider, c.entry(), origin))
	}
	var out bytes.Buffer
	out.WriteString(head)
	for _, slug := range slices.Sorted(maps.Keys(blocks)) {
		out.WriteString("\n" + blocks[slug] + "\n")
	}
	return out.Bytes()
}

// quoted are the names of lists with a day.
func quoted(lists []string, day time.Time) string {
	var all []string
	for _, l := range lists {
		all = append(all, fmt.Sprintf("%q", l+" "+day.Format(time.DateOnly)))
	}
	return strings.Join(all, ", ")
}

// plain reports whether an id can stand in the file as it is.
func plain(id string) bool {
	return len(id) <= 256 && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == '$' || r > '~' })
}

func block(slug, provider string, e Entry, origin string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("- slug: %s", slug)
	if plain(e.Name) && e.Name != "" {
		line("  display_name: %q", e.Name)
	}
	line("  kind: %s", e.Kind)
	if e.ContextLength > 0 {
		line("  context_length: %d", e.ContextLength)
	}
	if e.MaxOutput > 0 && e.Kind == modelgate.LLM {
		line("  max_output: %d", e.MaxOutput)
	}
	if _, err := time.Parse(time.DateOnly, e.Created); err == nil {
		line("  created: %s", e.Created)
	}
	line("  routes:\n    - {provider: %s, model: %q}", provider, e.Model)
	line("  price:")
	for _, p := range e.Prices {
		line("    %s: %s", p.Unit, p.USD)
	}
	flow := func(fields []string, prices []Price) {
		for _, p := range prices {
			fields = append(fields, p.Unit+": "+p.USD)
		}
		line("      - {%s}", strings.Join(fields, ", "))
	}
	if len(e.Tiers) > 0 {
		line("    tiers:")
	}
	for _, t := range e.Tiers {
		flow([]string{fmt.Sprintf("above: %d", t.Above)}, t.Prices)
	}
	if len(e.Variants) > 0 {
		line("    variants:")
	}
	for _, v := range e.Variants {
		fields := []string{"service_tier: " + v.ServiceTier}
		if v.Above > 0 {
			fields = append(fields, fmt.Sprintf("above: %d", v.Above))
		}
		flow(fields, v.Prices)
	}
	line("    origin: {%s}", origin)
	return b.String()
}

// Owned reports whether a file may be written anew: it is empty or was
// written here.
func Owned(text []byte) bool {
	first, _, _ := strings.Cut(head, ".")
	return len(text) == 0 || bytes.HasPrefix(text, []byte(first))
}

// Diff is how a catalog file changes, model by model: lines with + and -, and
// the slug of each model that changes above them.
func Diff(before, after []byte) string {
	old, fresh := blocksOf(before), blocksOf(after)
	both := maps.Clone(old)
	maps.Copy(both, fresh)
	var b strings.Builder
	for _, slug := range slices.Sorted(maps.Keys(both)) {
		if old[slug] == fresh[slug] {
			continue
		}
		fmt.Fprintf(&b, "@@ %s\n", slug)
		for _, l := range lines(split(old[slug]), split(fresh[slug])) {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func split(block string) []string {
	if block == "" {
		return nil
	}
	return strings.Split(block, "\n")
}

// blocksOf takes a file apart into its models.
func blocksOf(text []byte) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split(string(text), "\n\n") {
		part = strings.TrimSpace(part)
		if at := strings.Index(part, "- slug: "); at >= 0 {
			slug, _, _ := strings.Cut(part[at+len("- slug: "):], "\n")
			out[slug] = part
		}
	}
	return out
}

// lines are the longest common lines of two texts with a space before them,
// and the others with - or +.
func lines(a, b []string) (out []string) {
	long := make([][]int, len(a)+1)
	for i := range long {
		long[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				long[i][j] = long[i+1][j+1] + 1
			} else {
				long[i][j] = max(long[i+1][j], long[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && long[i+1][j] >= long[i][j+1]:
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}
