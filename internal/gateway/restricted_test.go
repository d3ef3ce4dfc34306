package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"modelgate"
	"modelgate/internal/provider"
)

// A key that may use the models ok-* of every provider, also below the publishers
// that paths name.
var restricted = modelgate.Entitlements{
	{Axis: modelgate.AxisProvider, Provider: "*", ModelPattern: "ok-*", Effect: modelgate.Allow},
	{Axis: modelgate.AxisProvider, Provider: "*", ModelPattern: "google/ok-*", Effect: modelgate.Allow},
	{Axis: modelgate.AxisProvider, Provider: "*", ModelPattern: "anthropic/ok-*", Effect: modelgate.Allow},
}

const (
	permitted = "ok-model"
	forbidden = "no-model"
)

// place is where a request names a model, as a row of the table says it.
type place struct {
	where string // body, array, path, query or form
	steps []string
}

// placeOf reads a source as it prints: {body [tools [] model] }, with a publisher at
// the end for a model without.
func placeOf(t testing.TB, s provider.ModelSource) place {
	t.Helper()
	where, steps, ok := strings.Cut(strings.Trim(fmt.Sprint(s), "{}"), " ")
	if !ok || !slices.Contains([]string{"body", "array", "path", "query", "form"}, where) {
		t.Fatalf("a model in an unknown place: %v", s)
	}
	return place{where, strings.Fields(steps[1:strings.LastIndexByte(steps, ']')])}
}

// way is one path of a row, with the models in all of the places where the
// provider reads one.
type way struct {
	provider, method, pattern string
	route                     *provider.Route
	places                    []place
}

// attemptAt is a request that names the forbidden model in one place, nowhere
// with -1, and the permitted one in the places that come along.
type attemptAt struct {
	at    int
	along bool
}

// request writes it: path, query, and a body of JSON or a form.
func (w way) request(t testing.TB, g *gate, a attemptAt, extra string) *http.Request {
	t.Helper()
	path, query := w.pattern, ""
	var members, parts []string
	for i, p := range w.places {
		model := permitted
		if i == a.at {
			model = forbidden
		} else if !a.along && p.where != "path" {
			continue
		}
		if strings.Contains(path, "/endpoints/openapi/") {
			model += "/name" // models have a publisher there
		}
		switch p.where {
		case "path":
			for j, name := range p.steps {
				value := model
				if j > 0 {
					value = "name"
				}
				if name != "**" {
					name = "{" + name + "}"
				}
				path = strings.ReplaceAll(path, name, value)
			}
			path = strings.ReplaceAll(path, "**", model) // a path that a door's route takes first
		case "query":
			query = "?" + p.steps[0] + "=" + model
		case "form":
			parts = append(parts, fmt.Sprintf("--XyZ\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", p.steps[0], model))
		case "array":
			members = append(members, fmt.Sprintf(`%q:[%q,{"model":%q}]`, p.steps[0], permitted, model))
		case "body":
			members = append(members, nested(p.steps, model))
		}
	}
	for _, name := range []string{"{model}", "{publisher}", "{owner}", "{name}", "{app}", "{id}", "**"} {
		path = strings.ReplaceAll(path, name, "thing")
	}
	body := ""
	form := len(parts) > 0 && (a.at < 0 || w.places[a.at].where == "form")
	switch {
	case w.method == http.MethodGet && len(members) == 0 && !form:
	case form:
		if extra != "" {
			parts = append(parts, fmt.Sprintf("--XyZ\r\nContent-Disposition: form-data; name=%q\r\n\r\nid\r\n", extra))
		}
		body = strings.Join(parts, "") + "--XyZ--\r\n"
	default:
		if extra != "" {
			members = append(members, fmt.Sprintf("%q:%q", extra, "id"))
		}
		body = "{" + strings.Join(members, ",") + "}"
	}
	r := g.request(t.Context(), "/"+w.provider+path+query, body)
	r.Method = w.method
	if form {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=XyZ")
	}
	return r
}

// nested writes the member that the steps lead to.
func nested(steps []string, model string) string {
	text := fmt.Sprintf("%q", model)
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] == "[]" {
			text = `[{"type":"other"},` + text + `]`
		} else if i == 0 {
			text = fmt.Sprintf("%q:%s", steps[i], text)
		} else {
			text = fmt.Sprintf("{%q:%s}", steps[i], text)
		}
	}
	return text
}

// ways are all paths of all rows, as the proxy serves them.
func ways(t testing.TB, live *Snapshot) (all []way) {
	t.Helper()
	nowhere := &gate{Server: &httptest.Server{URL: "http://127.0.0.1:1"}}
	for _, f := range provider.Formats() {
		patterns := make([]string, 0, len(f.Doors)+len(f.Allow))
		for _, d := range f.Doors {
			path, _, _ := strings.Cut(d.Upstream, "?")
			patterns = append(patterns, "POST "+path)
		}
		for _, r := range f.Allow {
			patterns = append(patterns, r.Pattern)
		}
		for _, pattern := range patterns {
			method, path, _ := strings.Cut(pattern, " ")
			methods := []string{method}
			if method == "*" {
				methods = []string{"POST", "PUT", "PATCH", "GET", "DELETE"}
			}
			for _, m := range methods {
				w := way{provider: f.Name, method: m, pattern: path}
				concrete := w.request(t, nowhere, attemptAt{-1, true}, "").URL.EscapedPath()
				w.route, _ = live.Providers[f.Name].Route(m, strings.TrimPrefix(concrete, "/"+f.Name))
				if w.route == nil {
					t.Fatalf("%s: %s %s is not served as %s", f.Name, m, path, concrete)
				}
				for _, s := range w.route.Models {
					w.places = append(w.places, placeOf(t, s))
				}
				all = append(all, w)
			}
		}
	}
	return all
}

// A forbidden model is refused in every place of every path of every row, and
// the provider hears nothing of it; the permitted one passes in all of them.
func TestRestrictedKeyOnEveryPath(t *testing.T) {
	t.Parallel()
	upstream, calls := served(t)
	live := everyFormat(t, upstream)
	g := open(t, "", plan{live: live, caller: restricted})
	tried, passed := 0, 0
	for _, w := range ways(t, live) {
		name := w.method + " /" + w.provider + w.pattern
		want := "model not permitted for this client"
		refused := func(a attemptAt) {
			t.Helper()
			tried++
			r := w.request(t, g, a, "")
			if status, kind, message := g.refusal(t, r); status != 403 || kind != "forbidden" || message != want {
				t.Errorf("%s with %v forbidden: %d %s %q, want 403 %q", name, w.places[max(a.at, 0):], status, kind, message, want)
			}
			if heard := calls(); len(heard) != 0 {
				t.Errorf("%s: the provider heard %v", name, heard)
			}
		}
		for at := range w.places {
			refused(attemptAt{at, false})
			refused(attemptAt{at, true})
		}
		if len(w.places) == 0 {
			refused(attemptAt{-1, true}) // no model: that takes the right to all of them
			continue
		}
		status, _, message := g.refusal(t, w.request(t, g, attemptAt{-1, true}, ""))
		if heard := calls(); status != 200 || len(heard) != 1 {
			t.Errorf("%s with the permitted model: %d %q, heard %v", name, status, message, heard)
		}
		passed++
	}
	if tried < 500 || passed < 100 {
		t.Errorf("%d refused and %d passed, want more", tried, passed)
	}
	t.Logf("%d refused, %d passed", tried, passed)
}

// The same through the doors: what a body names beside the slug is judged too.
func TestRestrictedKeyAtEveryDoor(t *testing.T) {
	t.Parallel()
	upstream, calls := served(t)
	g := open(t, "", plan{live: permittedModels(t, upstream), caller: restricted})
	tried := 0
	for _, f := range provider.Formats() {
		for _, d := range f.Doors {
			door := g.gateway.doors[d.Path]
			slug := fmt.Sprintf("acme/%s-%s", door.kind, f.Name)
			for _, s := range g.gateway.Live().Providers[f.Name].Door(d.Path).Models {
				p := placeOf(t, s)
				beside, path := "", d.Path
				switch {
				case len(p.steps) == 1 && p.steps[0] == "model" && p.where != "query":
					continue // the slug's own place
				case p.where == "query":
					path += "?" + p.steps[0] + "=" + forbidden
				case p.where == "array":
					beside = fmt.Sprintf(`,%q:[%q]`, p.steps[0], forbidden)
				case p.where == "body":
					beside = "," + nested(p.steps, forbidden)
				default:
					t.Errorf("%s %s: a model in the %s of a door", f.Name, d.Path, p.where)
				}
				tried++
				body := fmt.Sprintf(`{"model":%q%s}`, slug, beside)
				if status, kind, message := g.refusal(t, g.request(t.Context(), path, body)); status != 403 || kind != "forbidden" || message != "model not permitted for this client" {
					t.Errorf("%s at %s with %s: %d %s %q, want 403", f.Name, path, body, status, kind, message)
				}
			}
			status, _, message := g.refusal(t, g.asksFor(t, d.Path, slug, false))
			if heard := calls(); status != 200 || len(heard) != 1 {
				t.Errorf("%s at %s with the permitted model: %d %q, heard %v", f.Name, d.Path, status, message, heard)
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d places tried", tried)
	}
}

// permittedModels is everyFormat with a native id that a restricted key may
// use.
func permittedModels(t testing.TB, upstream string) *Snapshot {
	live := everyFormat(t, upstream)
	for _, m := range live.Catalog.Models() {
		for i := range m.Routes {
			m.Routes[i].Model = permitted
		}
	}
	return liveOf(t, live.Catalog.Models(), configsOf(upstream)...)
}

// Members that refer to objects kept at the provider pass nowhere, unless the
// operator lets them.
func TestStoredObjectsOnEveryPath(t *testing.T) {
	t.Parallel()
	upstream, calls := served(t)
	strict := everyFormat(t, upstream)
	g := open(t, "", plan{live: strict})
	configs := configsOf(upstream)
	for i := range configs {
		configs[i].AllowStoredObjects = true
	}
	lenient := open(t, "", plan{live: liveOf(t, nil, configs...)})
	tried := 0
	for _, w := range ways(t, strict) {
		if w.method == http.MethodGet {
			continue
		}
		for _, member := range w.route.Stored {
			tried++
			name := w.method + " /" + w.provider + w.pattern + " with " + member
			status, kind, message := g.refusal(t, w.request(t, g, attemptAt{-1, true}, member))
			if heard := calls(); status != 403 || kind != "forbidden" || !strings.Contains(message, member) || len(heard) != 0 {
				t.Errorf("%s: %d %s %q, heard %v; want 403", name, status, kind, message, heard)
			}
			if status, _, message := g.refusal(t, w.request(t, lenient, attemptAt{-1, true}, member)); status != 200 {
				t.Errorf("%s, allowed: %d %q", name, status, message)
			}
			calls()
		}
	}
	for _, f := range provider.Formats() {
		for _, d := range f.Doors {
			for _, member := range strict.Providers[f.Name].Door(d.Path).Stored {
				tried++
				slug := fmt.Sprintf("acme/%s-%s", g.gateway.doors[d.Path].kind, f.Name)
				for body, want := range map[string]int{
					fmt.Sprintf(`{"model":%q,%q:"id"}`, slug, member):       403,
					fmt.Sprintf(`{"model":%q,%q:{"id":"x"}}`, slug, member): 403,
					fmt.Sprintf(`{"model":%q,%q:null}`, slug, member):       200,
				} {
					if status, _, message := g.refusal(t, g.request(t.Context(), d.Path, body)); status != want {
						t.Errorf("%s at %s with %s: %d %q, want %d", f.Name, d.Path, body, status, message, want)
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d tried", tried)
	}
}

// The routing policy is judged by where the model is computed, and the row says it.
func TestRegionOfModel(t *testing.T) {
	t.Parallel()
	u := rawUpstream(t, sends(sized("application/json", chatReply)))
	g := open(t, u.URL, plan{
		configure: func(c *provider.Config) {
			c.Region, c.ModelRegions = "eu-central-1", []modelgate.ModelRegion{{Model: "global.*", Region: "global"}, {Model: "eu.*", Region: "eu"}}
		},
		who: &modelgate.Caller{ClientID: "c", KeyID: "k", Scopes: []modelgate.Scope{modelgate.InferenceUse},
			Entitlements: modelgate.OpenEntitlements(), RoutingPolicy: modelgate.EUOnly},
	})
	for model, blocked := range map[string]string{"claude": "", "eu.claude": "", "global.claude": "global"} {
		resp, answer, _ := g.do(t, "/openai/v1/chat/completions", `{"model":"`+model+`","messages":[]}`)
		refused := strings.Contains(string(answer), `provider region \"`+blocked+`\" is blocked`)
		if blocked == "" && resp.StatusCode != http.StatusOK || blocked != "" && (resp.StatusCode != http.StatusForbidden || !refused) {
			t.Errorf("%s: status %d, body %s", model, resp.StatusCode, answer)
		}
	}
	regions := map[string]string{}
	for _, begin := range g.books.begins {
		regions[begin.Model] = begin.Region
	}
	if want := map[string]string{"claude": "eu-central-1", "eu.claude": "eu"}; !maps.Equal(regions, want) {
		t.Errorf("regions of the rows %v, want %v", regions, want)
	}
}
