// Package deploy checks the files in deploy/ as far as a machine without a
// container engine or a cluster allows. It is a module of its own, so that
// what it needs is no dependency of the gateway.
package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// TestCompose reads the compose file with compose's own library.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{"../../deploy/compose/compose.yaml"},
		cli.WithEnv([]string{"MODELGATE_POSTGRES_PASSWORD=p", "MODELGATE_GRAFANA_PASSWORD=g", "MODELGATE_MASTER_KEY=m", "OPENAI_API_KEY=k"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"modelgate-1", "modelgate-2", "postgres", "redis", "prometheus", "grafana"} {
		if _, ok := project.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	for _, name := range []string{"modelgate-1", "modelgate-2"} {
		s := project.Services[name]
		if !s.ReadOnly || s.User != "65532:65532" || !slices.Contains(s.CapDrop, "ALL") || s.StopGracePeriod == nil || len(s.Volumes) != 1 {
			t.Errorf("%s: read-only %v, user %s, without %v, grace %v, volumes %v", name, s.ReadOnly, s.User, s.CapDrop, s.StopGracePeriod, s.Volumes)
		}
		for _, c := range s.Configs {
			if file := project.Configs[c.Source].File; file != "" {
				if _, err := os.Stat(file); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if project.Services["modelgate-1"].Volumes[0].Source == project.Services["modelgate-2"].Volumes[0].Source {
		t.Error("two instances share a spool")
	}
	for _, missing := range []string{"MODELGATE_POSTGRES_PASSWORD", "MODELGATE_MASTER_KEY", "OPENAI_API_KEY"} {
		env := slices.DeleteFunc([]string{"MODELGATE_POSTGRES_PASSWORD=p", "MODELGATE_GRAFANA_PASSWORD=g", "MODELGATE_MASTER_KEY=m", "OPENAI_API_KEY=k"},
			func(v string) bool { return strings.HasPrefix(v, missing+"=") })
		options, err := cli.NewProjectOptions([]string{"../../deploy/compose/compose.yaml"}, cli.WithEnv(env))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := options.LoadProject(context.Background()); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v, want an error that names it", missing, err)
		}
	}
}

// render is the chart with values, by file.
func render(t *testing.T, values map[string]any) map[string]string {
	t.Helper()
	chart, err := loader.Load("../../deploy/helm/modelgate")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "gate", Namespace: "prod", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// objects are the Kubernetes objects of a rendered chart, by kind and name.
func objects(t *testing.T, files map[string]string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		d := yaml.NewDecoder(strings.NewReader(text))
		for {
			var o map[string]any
			if err := d.Decode(&o); err != nil {
				if err.Error() != "EOF" {
					t.Errorf("%s: %v\n%s", name, err, text)
				}
				break
			}
			if o != nil {
				out[fmt.Sprint(o["kind"], "/", dig(o, "metadata", "name"))] = o
			}
		}
	}
	return out
}

func dig(v any, path ...any) any {
	for _, p := range path {
		switch at := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[at]
		case int:
			l, _ := v.([]any)
			if at >= len(l) {
				return nil
			}
			v = l[at]
		}
	}
	return v
}

func TestChart(t *testing.T) {
	result := action.NewLint().Run([]string{"../../deploy/helm/modelgate"}, nil)
	for _, m := range result.Messages {
		t.Logf("lint: %s", m)
		if m.Severity > 1 { // more than a recommendation
			t.Error(m)
		}
	}
	plain := objects(t, render(t, nil))
	for _, want := range []string{"StatefulSet/gate", "Service/gate", "Service/gate-instances", "ConfigMap/gate", "PodDisruptionBudget/gate"} {
		if plain[want] == nil {
			t.Errorf("no %s", want)
		}
	}
	if len(plain) != 5 {
		t.Errorf("%d objects by default", len(plain))
	}
	set := plain["StatefulSet/gate"]
	pod := dig(set, "spec", "template", "spec")
	container := dig(pod, "containers", 0)
	for what, ok := range map[string]bool{
		"not root":                dig(pod, "securityContext", "runAsNonRoot") == true,
		"read-only root":          dig(container, "securityContext", "readOnlyRootFilesystem") == true,
		"no privileges":           dig(container, "securityContext", "allowPrivilegeEscalation") == false && dig(container, "securityContext", "capabilities", "drop", 0) == "ALL",
		"a volume each":           dig(set, "spec", "volumeClaimTemplates", 0, "metadata", "name") == "data",
		"its headless service":    dig(set, "spec", "serviceName") == "gate-instances",
		"readiness":               dig(container, "readinessProbe", "httpGet", "path") == "/readyz",
		"no token of the cluster": dig(pod, "automountServiceAccountToken") == false,
		"selected by its service": fmt.Sprint(dig(set, "spec", "selector", "matchLabels")) == fmt.Sprint(dig(plain["Service/gate"], "spec", "selector")),
	} {
		if !ok {
			t.Errorf("the pod has not: %s", what)
		}
	}
	if got := dig(container, "image"); got != "modelgate:0.1.0" {
		t.Errorf("image %v, want the chart's own version", got)
	}
	pinned := objects(t, render(t, map[string]any{"image": map[string]any{"repository": "registry.example.com/modelgate", "tag": "v9", "digest": "sha256:1234"}}))
	if got := dig(pinned["StatefulSet/gate"], "spec", "template", "spec", "containers", 0, "image"); got != "registry.example.com/modelgate@sha256:1234" {
		t.Errorf("image %v, want the digest", got)
	}
	full := objects(t, render(t, map[string]any{
		"ingress": map[string]any{"enabled": true, "className": "nginx", "tlsSecret": "tls"}, "serviceMonitor": map[string]any{"enabled": true},
		"env": []any{map[string]any{"name": "A", "value": "b"}}, "podAnnotations": map[string]any{"a": "b"}, "nodeSelector": map[string]any{"a": "b"},
		"imagePullSecrets": []any{map[string]any{"name": "s"}}, "persistence": map[string]any{"storageClass": "fast"},
		"tolerations": []any{map[string]any{"key": "k"}}, "affinity": map[string]any{"nodeAffinity": map[string]any{}},
	}))
	if full["Ingress/gate"] == nil || full["ServiceMonitor/gate"] == nil || dig(full["StatefulSet/gate"], "spec", "volumeClaimTemplates", 0, "spec", "storageClassName") != "fast" {
		t.Errorf("with everything: %v", full)
	}
}

// TestConfigurations has the gateway itself judge the configurations of
// compose and chart.
func TestConfigurations(t *testing.T) {
	values := map[string]any{"config": map[string]any{
		"providers": []any{map[string]any{"name": "openai", "format": "openai", "base_url": "https://api.openai.com", "region": "us", "credential": "${OPENAI_API_KEY}"}},
	}}
	chart := objects(t, render(t, values))["ConfigMap/gate"]
	compose, err := os.ReadFile("../../deploy/compose/modelgate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "modelgate")
	build := exec.Command("go", "build", "-o", binary, "./cmd/modelgate")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range map[string]string{"chart": fmt.Sprint(dig(chart, "data", "modelgate.yaml")), "compose": string(compose)} {
		file := filepath.Join(t.TempDir(), "modelgate.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check := exec.Command(binary, "config", "check", "--config", file)
		check.Env = append(os.Environ(), "MODELGATE_POSTGRES_PASSWORD=p", "MODELGATE_DATABASE_URL=postgres://a:b@c/d", "OPENAI_API_KEY=k",
			"MODELGATE_MASTER_KEY=MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
		}
	}
}

// TestRules reads the alert rules and the dashboard's queries with
// Prometheus's own parser.
func TestRules(t *testing.T) {
	groups, errs := rulefmt.ParseFile("../../deploy/prometheus/rules.yml", false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Annotations["summary"] == "" || r.Labels["severity"] == "" {
				t.Errorf("rule %+v", r)
			}
		}
	}
	runbook, err := os.ReadFile("../../docs/guides/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range groups.Groups[0].Rules {
		if !strings.Contains(string(runbook), r.Alert) {
			t.Errorf("the runbook does not say what to do about %s", r.Alert)
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile("../../deploy/grafana/modelgate.json")
	if err == nil {
		err = yaml.Unmarshal(text, &dashboard)
	}
	if err != nil || len(dashboard.Panels) < 20 {
		t.Fatalf("%d panels, %v", len(dashboard.Panels), err)
	}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			if _, err := parser.ParseExpr(fill.Replace(q.Expr)); err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
	}
}
