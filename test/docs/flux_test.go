package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"sigs.k8s.io/yaml"
)

// TestFluxHealthChecks evaluates the expressions of docs/gitops.md for objects in each state.
func TestFluxHealthChecks(t *testing.T) {
	t.Parallel()
	checks := fluxChecks(t)
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
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// fluxChecks returns the expressions of the page, by kind and result.
func fluxChecks(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "```yaml\nhealthCheckExprs:")
	block, _, found := strings.Cut("healthCheckExprs:"+after, "```")
	if !found {
		t.Fatal("the page has no healthCheckExprs")
	}
	var document struct {
		HealthCheckExprs []struct{ Kind, Current, Failed string } `json:"healthCheckExprs"`
	}
	if err := yaml.Unmarshal([]byte(block), &document); err != nil {
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
