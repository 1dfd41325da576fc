package docs

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/test/buildcache"
)

// TestHealthChecks evaluates the expressions for Flux and the scripts for Argo CD in docs/gitops.md, for objects in each
// state.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	checks, scripts, program := fluxChecks(t), argoScripts(t), argoProgram(t)
	argo := map[string]string{"": "Progressing", "current": "Healthy", "failed": "Degraded"}
	conditions := func(kind, reason string) map[string]any {
		return map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "reason": reason}}, "state": "UpgradePending", "installedCSV": "lamp.v1"}
	}
	for name, tt := range map[string]struct {
		kind   string
		status map[string]any
		want   string
	}{
		"New":        {kind: "Subscription", status: map[string]any{}},
		"Latest":     {kind: "Subscription", status: map[string]any{"state": "AtLatestKnown", "installedCSV": "lamp.v1"}, want: "current"},
		"Held":       {kind: "Subscription", status: conditions("InstallPlanPending", "RequiresApproval"), want: "current"},
		"Broken":     {kind: "Subscription", status: map[string]any{"state": "UpgradeFailed", "installedCSV": "lamp.v1"}, want: "failed"},
		"Installing": {kind: "Subscription", status: conditions("InstallPlanPending", "Installing")},
		"Unresolved": {kind: "Subscription", status: conditions("ResolutionFailed", "ConstraintsNotSatisfiable"), want: "failed"},
		"Failed":     {kind: "Subscription", status: conditions("InstallPlanFailed", "InstallComponentFailed"), want: "failed"},
		"Connecting": {kind: "CatalogSource", status: map[string]any{"connectionState": map[string]any{"lastObservedState": "CONNECTING"}}},
		"NoState":    {kind: "CatalogSource", status: map[string]any{}},
		"Ready":      {kind: "CatalogSource", status: map[string]any{"connectionState": map[string]any{"lastObservedState": "READY"}}, want: "current"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			for _, result := range []string{"failed", "current"} {
				if holds(t, checks[tt.kind][result], tt.status) {
					got = result
					break
				}
			}
			if got != tt.want {
				t.Errorf("Flux: got %q, want %q", got, tt.want)
			}
			if got := argoHealth(t, program, scripts[tt.kind], tt.kind, tt.status); got != argo[tt.want] {
				t.Errorf("Argo CD: got %q, want %q", got, argo[tt.want])
			}
		})
	}
}

// argoScripts returns the files with the scripts of the page, by kind.
func argoScripts(t *testing.T) map[string]string {
	t.Helper()
	var document struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(yamlBlock(t, "data:")), &document); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for key, script := range document.Data {
		kind, found := strings.CutPrefix(key, "resource.customizations.health.operators.coreos.com_")
		if !found {
			t.Errorf("Argo CD does not know the key %s", key)
		}
		files[kind] = filepath.Join(t.TempDir(), kind+".lua")
		if err := os.WriteFile(files[kind], []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// argoProgram builds the program that runs the scripts.
func argoProgram(t *testing.T) string {
	t.Helper()
	dir, err := buildcache.SourceDir("test/compat/clients")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := buildcache.Build(t.Context(), buildcache.Module{
		Name: "health", Dir: dir,
		Programs: []buildcache.Program{{Name: "health", Package: "github.com/chandlery/chandlery/test/compat/clients/health"}},
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(programs, "health")
}

// argoHealth runs a script for an object.
func argoHealth(t *testing.T, program, script, kind string, status map[string]any) string {
	t.Helper()
	object, err := json.Marshal(map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "lamp"}, "status": status,
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, script)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(object), os.Stderr
	out, err := cmd.Output()
	var health struct{ ArgoCD string }
	if err == nil {
		err = json.Unmarshal(out, &health)
	}
	if err != nil {
		t.Errorf("%s: %v", out, err)
	}
	return health.ArgoCD
}

// yamlBlock returns the block of the page that begins with a line.
func yamlBlock(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\n"+first)
	block, _, found := strings.Cut(first+after, "```")
	if !found {
		t.Fatalf("the page has no block that begins with %s", first)
	}
	return block
}

// fluxChecks returns the expressions of the page, by kind and result.
func fluxChecks(t *testing.T) map[string]map[string]string {
	t.Helper()
	var document struct {
		HealthCheckExprs []struct{ Kind, Current, Failed string } `json:"healthCheckExprs"`
	}
	if err := yaml.Unmarshal([]byte(yamlBlock(t, "healthCheckExprs:")), &document); err != nil {
		t.Fatal(err)
	}
	checks := map[string]map[string]string{}
	for _, check := range document.HealthCheckExprs {
		checks[check.Kind] = map[string]string{"current": check.Current, "failed": check.Failed}
	}
	return checks
}

// holds evaluates an expression as Flux does, with the fields of the object as variables. An empty expression does not
// hold, and an expression with an error does not either.
func holds(t *testing.T, expression string, status map[string]any) bool {
	t.Helper()
	if expression == "" {
		return false
	}
	env, err := cel.NewEnv(cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(map[string]any{"status": status})
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return false
	}
	return value.Value() == true
}
