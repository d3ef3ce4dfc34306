package provider

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate/internal/provider/usage"
)

var update = flag.Bool("update", false, "write the reference of providers")

const referenceIntro = `# Provider formats

This reference lists what each wire format (` + "`format`" + ` of a provider in the configuration) serves. It is generated from the provider table by
` + "`go test ./internal/provider -run Reference -update`" + `. [Connect a provider](../providers.md) shows how to configure one.

- **Doors** take a catalog slug and are the same for every provider: ` + "`POST {gateway}/v1/…`" + `.
- **Proxy paths** are the provider's own, below ` + "`{gateway}/{name}`" + `, with the provider's model names. Other paths get
  403 ` + "`path not permitted for this provider`" + `, because all organizations share the provider account. ` + "`allow`" + ` adds paths.
- **Free** paths cost nothing but make a usage row.
- **Jobs** are asynchronous. A path that creates one is booked at a provisional cost, which becomes final when the job ends: by the reply to
  a poll, otherwise by what was requested. Paths of a job serve its owner only, cost nothing and make no row.
- **Query parameters** that the official SDKs send for a path are listed. Others get 400, because a parameter can make a provider
  omit the usage. ` + "`alt=json|sse`" + ` lists the allowed values. ` + "`allow_query`" + ` adds names. A parameter that can carry a client's key, such as ` + "`key`" + `,
  is accepted and removed.
- **Refused members** refer to objects that are stored at the provider, which other organizations could reach. On the door responses
  ` + "`prompt`" + ` is one too. ` + "`allow_stored_objects`" + ` allows them. The same holds for references deeper in a body: ` + "`item_reference`, `file_id`, `vector_store_ids`, `container`" + ` of
  a tool, file search stores, ids of spoken answers, and addresses of files at the provider. Public addresses are allowed.
- **Usage in streams.** Where it says so, the gateway asks for the usage, and removes it for callers that did not ask.
- **Model.** A request without a model in the expected place gets 403 ` + "`model not permitted for this client`" + `, or 400 if it would create a job.
  Free paths need no model. If the path names the model, the body may repeat it.
- **Recordings** whose transcript states no usage (` + "`text`, `srt` and `vtt`" + `; with ` + "`recording`" + ` in the table also ` + "`json`" + `) are charged by their
  length, which the gateway reads from WAV (PCM) and MP3 files. With other files, or addresses of files, such calls get 400.
- Members that make a provider answer later (` + "`background`" + ` of responses, ` + "`deferred`" + ` of xAI's chat) get 400.

## Doors

`

// TestReferenceFollowsTheTable holds the published reference against the
// table; -update writes it again.
func TestReferenceFollowsTheTable(t *testing.T) {
	const path = "../../docs/reference/providers.md"
	formats := Formats()
	slices.SortFunc(formats, func(a, b Format) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString(referenceIntro)
	writeDoors(&b, formats)
	for _, f := range formats {
		writeFormat(t, &b, f)
	}
	text := b.String()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text, string(have)); diff != "" {
		t.Errorf("%s is not what the table says; run go test ./internal/provider -run Reference -update (-want +got):\n%s", path, diff)
	}
}

// writeDoors lists the doors, each with the formats that serve it.
func writeDoors(b *strings.Builder, formats []Format) {
	b.WriteString("| door | path | formats |\n|---|---|---|\n")
	for _, d := range standardDoors() {
		note := ""
		switch {
		case d.Free:
			note = ", free"
		case d.name == "videos":
			note = ", makes a job"
		case d.name == "reranks":
			note = ", also `/v1/rerank` and `/v2/rerank`"
		}
		var serve []string
		for _, f := range formats {
			if slices.ContainsFunc(f.Doors, func(served Door) bool { return served.Path == d.path }) {
				serve = append(serve, fmt.Sprintf("[%s](#%s)", f.Name, f.Name))
			}
		}
		fmt.Fprintf(b, "| `%s` | `POST %s`%s | %s |\n", d.name, d.path, note, strings.Join(serve, ", "))
	}
	b.WriteString("\nThe names of doors are the keys of `paths`. [generic](#generic) serves what its `paths` say.\n")
}

func writeFormat(t *testing.T, b *strings.Builder, f Format) {
	t.Helper()
	fmt.Fprintf(b, "\n## %s\n\n", f.Name)
	if f.BaseURL != "" {
		fmt.Fprintf(b, "- Usual `base_url`: `%s`\n", f.BaseURL)
	}
	fmt.Fprintf(b, "- Credential: %s", authText(f.Auth))
	if f.OptionalCredential {
		b.WriteString(", optional")
	}
	if f.Older != nil {
		fmt.Fprintf(b, "; %s where the client's `%s` is before %s", authText(f.Older.Auth), f.Older.Header, f.Older.Before)
	}
	b.WriteString("\n")
	if f.IncludeUsage {
		b.WriteString("- The gateway asks for usage in streams\n")
	}
	if f.InProject {
		b.WriteString("- Paths stand below `/projects/PROJECT/locations/LOCATION`, which follows the version; the gateway writes the configured ones. A client may name them, write `-` for each, or leave both out\n")
	}
	if f.AnyQuery {
		b.WriteString("- Query parameters: any\n")
	}
	list(b, "Query parameters on every path", f.Query)
	list(b, "Refused members", f.Stored)
	list(b, "Refused members at any depth, in any letter case, with underscores or without", f.StoredDeep)
	list(b, "Refused addresses", f.StoredSchemes)
	list(b, "Additional request headers", f.Headers)
	var doors, paths, jobs [][]string
	for _, d := range f.Doors {
		std, _ := doorNamed(d.Path)
		doors = append(doors, []string{std.name, "`" + d.Upstream + "`" + streamed(d), metered(d.Reader, d.Free, d.Job), codes(d.Query)})
	}
	for _, r := range f.Allow {
		paths = append(paths, []string{"`" + r.Pattern + "`", metered(r.Reader, r.Free, r.Job), codes(r.Query)})
	}
	for _, pattern := range f.Except {
		paths = append(paths, []string{"`" + pattern + "`", "refused", ""})
	}
	p, err := New(Config{Name: "p", Format: f.Name, BaseURL: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.protocols {
		for _, r := range w.routes() {
			jobs = append(jobs, []string{"`" + r.Pattern + "`", string(r.Async), codes(r.Query)})
		}
		content := fmt.Sprintf("`GET /v1/videos/{id}/content`, the door, for `%s`", w.Poll)
		switch {
		case w.Has(AsyncContent):
		case len(w.Own) > 0:
			jobs = append(jobs, []string{content, "content, from the address in a poll", ""})
		case len(w.File) > 0:
			jobs = append(jobs, []string{content, "redirect to the result", ""})
		}
	}
	table(b, doors, "door", "upstream path", "metered by", "query parameters")
	table(b, paths, "further proxy path", "metered by", "query parameters")
	table(b, jobs, "path of a job", "does", "query parameters")
}

// table writes the rows, if there are any. The last column is left out where
// all of it is empty.
func table(b *strings.Builder, rows [][]string, titles ...string) {
	if len(rows) == 0 {
		return
	}
	last := len(titles) - 1
	if !slices.ContainsFunc(rows, func(row []string) bool { return row[last] != "" }) {
		last--
	}
	fmt.Fprintf(b, "\n| %s |\n|%s\n", strings.Join(titles[:last+1], " | "), strings.Repeat("---|", last+1))
	for _, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row[:last+1], " | "))
	}
}

func list(b *strings.Builder, title string, names []string) {
	if len(names) > 0 {
		fmt.Fprintf(b, "- %s: `%s`\n", title, strings.Join(names, "`, `"))
	}
}

// codes are the names as code in a table, where a bar ends a cell.
func codes(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.ReplaceAll(strings.Join(names, "`, `"), "|", "\\|") + "`"
}

// streamed is where a door's streams go, if that is elsewhere.
func streamed(d Door) string {
	if d.Streamed == "" {
		return ""
	}
	return ", streamed `" + d.Streamed + "`"
}

func authText(a Auth) string {
	switch {
	case a.Query != "":
		return "query parameter `" + a.Query + "`"
	case a.Prefix != "":
		return fmt.Sprintf("`%s: %s…`", a.Header, a.Prefix)
	}
	return fmt.Sprintf("`%s: …`", a.Header)
}

func metered(r *usage.Reader, free bool, w *JobProtocol) string {
	switch {
	case w != nil:
		return "job"
	case free:
		return "free"
	}
	return r.String()
}
