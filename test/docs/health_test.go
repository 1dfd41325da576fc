package docs

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/test/buildcache"
)

// healthCase is an object whose health the checks of docs/gitops.md compute.
type healthCase struct {
	kind   string
	status any    // nil for an object without a status
	want   string // current, failed, or empty for an object in progress
}

// subscriptionCases returns the cases of Subscriptions, by name. Each condition has its type and its reason.
func subscriptionCases() map[string]healthCase {
	const none, latest, pending, failed = operatorsv1alpha1.SubscriptionStateNone, operatorsv1alpha1.SubscriptionStateAtLatest,
		operatorsv1alpha1.SubscriptionStateUpgradePending, operatorsv1alpha1.SubscriptionStateFailed
	const planPending, notUpgradeable = operatorsv1alpha1.SubscriptionInstallPlanPending, operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable
	cases := map[string]healthCase{}
	for name, tt := range map[string]struct {
		state     operatorsv1alpha1.SubscriptionState
		installed string
		condition operatorsv1alpha1.SubscriptionConditionType
		reason    string
		want      string
	}{
		"New":             {state: none},
		"First":           {state: pending, condition: planPending, reason: "Installing"},
		"FirstUnapproved": {state: pending, condition: planPending, reason: "RequiresApproval"},
		"FirstFailed":     {state: failed, condition: api.ConditionVersionUnhealthy, reason: "InstallCheckFailed", want: "failed"},
		"Unresolved":      {state: none, condition: "ResolutionFailed", reason: "ConstraintsNotSatisfiable", want: "failed"},
		"Latest":          {state: latest, installed: "lamp.v1", want: "current"},
		"Pinned":          {state: latest, installed: "lamp.v1", condition: api.ConditionNewerVersionHeld, reason: api.ReasonPinned, want: "current"},
		"Unapproved":      {state: pending, installed: "lamp.v1", condition: planPending, reason: "RequiresApproval", want: "current"},
		"NotUpgradeable":  {state: pending, installed: "lamp.v1", condition: api.ConditionNewerVersionHeld, reason: string(notUpgradeable), want: "current"},
		"Slow":            {state: pending, installed: "lamp.v1", condition: api.ConditionNewerVersionHeld, reason: "InstallWaiting"},
		"Installing":      {state: pending, installed: "lamp.v1", condition: planPending, reason: "Installing"},
		"PlanFailed":      {state: pending, installed: "lamp.v1", condition: "InstallPlanFailed", reason: "InstallComponentFailed", want: "failed"},
		"UpdateFailed":    {state: pending, installed: "lamp.v1", condition: api.ConditionVersionUnhealthy, reason: "InstallCheckFailed", want: "failed"},
		"LatestFailed":    {state: latest, installed: "lamp.v1", condition: api.ConditionVersionUnhealthy, reason: "ComponentUnhealthy", want: "failed"},
		"NoBundle":        {state: latest, installed: "lamp.v1", condition: "BundleUnpackFailed", reason: "BundleUnpackFailed", want: "failed"},
		"Misconfigured":   {state: latest, installed: "lamp.v1", condition: api.ConditionConfigInvalid, reason: api.ReasonInvalidAnnotation, want: "failed"},
		"FailForward":     {state: failed, installed: "lamp.v1", condition: "InstallPlanFailed", reason: "InstallComponentFailed", want: "failed"},
	} {
		status := operatorsv1alpha1.SubscriptionStatus{State: tt.state, InstalledCSV: tt.installed, Conditions: []operatorsv1alpha1.SubscriptionCondition{
			{Type: operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, Status: "False", Reason: operatorsv1alpha1.AllCatalogSourcesHealthy},
		}}
		if tt.condition != "" {
			status.Conditions = append(status.Conditions, operatorsv1alpha1.SubscriptionCondition{Type: tt.condition, Status: "True", Reason: tt.reason})
		}
		cases["Subscription/"+name] = healthCase{kind: "Subscription", status: status, want: tt.want}
	}
	return cases
}

// planCases returns the cases of InstallPlans and ClusterServiceVersions, by name.
func planCases() map[string]healthCase {
	cases := map[string]healthCase{}
	for phase, want := range map[operatorsv1alpha1.InstallPlanPhase]string{
		operatorsv1alpha1.InstallPlanPhaseNone: "", operatorsv1alpha1.InstallPlanPhasePlanning: "", operatorsv1alpha1.InstallPlanPhaseInstalling: "",
		operatorsv1alpha1.InstallPlanPhaseRequiresApproval: "current", operatorsv1alpha1.InstallPlanPhaseComplete: "current",
		operatorsv1alpha1.InstallPlanPhaseFailed: "failed",
	} {
		cases["InstallPlan/"+string(phase)] = healthCase{kind: "InstallPlan", status: operatorsv1alpha1.InstallPlanStatus{Phase: phase}, want: want}
	}
	for name, tt := range map[string]struct {
		phase  operatorsv1alpha1.ClusterServiceVersionPhase
		reason operatorsv1alpha1.ConditionReason
		want   string
	}{
		"New":            {},
		"Pending":        {phase: operatorsv1alpha1.CSVPhasePending, reason: operatorsv1alpha1.CSVReasonRequirementsNotMet},
		"NotUpgradeable": {phase: operatorsv1alpha1.CSVPhasePending, reason: operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable, want: "current"},
		"Installing":     {phase: operatorsv1alpha1.CSVPhaseInstalling, reason: operatorsv1alpha1.CSVReasonWaiting},
		"Succeeded":      {phase: operatorsv1alpha1.CSVPhaseSucceeded, reason: operatorsv1alpha1.CSVReasonInstallSuccessful, want: "current"},
		"Replacing":      {phase: operatorsv1alpha1.CSVPhaseReplacing, reason: operatorsv1alpha1.CSVReasonBeingReplaced},
		"Failed":         {phase: operatorsv1alpha1.CSVPhaseFailed, reason: operatorsv1alpha1.CSVReasonInstallCheckFailed, want: "failed"},
		"Copied":         {phase: operatorsv1alpha1.CSVPhaseSucceeded, reason: operatorsv1alpha1.CSVReasonCopied, want: "current"},
		"CopiedFailed":   {phase: operatorsv1alpha1.CSVPhaseFailed, reason: operatorsv1alpha1.CSVReasonCopied, want: "failed"},
	} {
		status := operatorsv1alpha1.ClusterServiceVersionStatus{Phase: tt.phase, Reason: tt.reason}
		cases["ClusterServiceVersion/"+name] = healthCase{kind: "ClusterServiceVersion", status: status, want: tt.want}
	}
	return cases
}

// groupCases returns the cases of OperatorGroups and CatalogSources, by name.
func groupCases() map[string]healthCase {
	group := func(want, kind string, status metav1.ConditionStatus, reason string) healthCase {
		s := operatorsv1.OperatorGroupStatus{LastUpdated: &metav1.Time{Time: time.Unix(0, 0)}}
		if kind != "" {
			s.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
		}
		return healthCase{kind: "OperatorGroup", status: s, want: want}
	}
	catalog := func(want, state string, reason operatorsv1alpha1.ConditionReason) healthCase {
		s := operatorsv1alpha1.CatalogSourceStatus{Reason: reason}
		if state != "" {
			s.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{LastObservedState: state}
		}
		return healthCase{kind: "CatalogSource", status: s, want: want}
	}
	const invalid = operatorsv1alpha1.CatalogSourceSpecInvalidError
	return map[string]healthCase{
		"OperatorGroup/New":          {kind: "OperatorGroup", status: map[string]any{}},
		"OperatorGroup/Valid":        group("current", "", "", ""),
		"OperatorGroup/Multiple":     group("failed", operatorsv1.MutlipleOperatorGroupCondition, metav1.ConditionTrue, operatorsv1.MultipleOperatorGroupsReason),
		"OperatorGroup/NoAccount":    group("failed", operatorsv1.OperatorGroupServiceAccountCondition, metav1.ConditionTrue, operatorsv1.OperatorGroupServiceAccountReason),
		"OperatorGroup/BadTargets":   group("failed", api.ConditionTargetsResolved, metav1.ConditionFalse, operatorgroup.TargetsInvalidReason),
		"CatalogSource/New":          catalog("", "", ""),
		"CatalogSource/Connecting":   catalog("", "CONNECTING", ""),
		"CatalogSource/Unreachable":  catalog("", "TRANSIENT_FAILURE", operatorsv1alpha1.CatalogSourceRegistryServerError),
		"CatalogSource/Invalid":      catalog("failed", "", invalid),
		"CatalogSource/Ready":        catalog("current", "READY", ""),
		"CatalogSource/ReadyInvalid": catalog("current", "READY", invalid),
	}
}

// TestHealthChecks evaluates the expressions for Flux and the scripts for Argo CD in docs/gitops.md, for objects in each
// state.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	checks, scripts, program := fluxChecks(t), argoScripts(t), argoProgram(t)
	argo := map[string]string{"": "Progressing", "current": "Healthy", "failed": "Degraded"}
	cases := map[string]healthCase{}
	for _, some := range []map[string]healthCase{subscriptionCases(), planCases(), groupCases()} {
		maps.Copy(cases, some)
	}
	for kind := range scripts {
		cases[kind+"/WithoutStatus"] = healthCase{kind: kind}
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := objectOf(t, tt.kind, tt.status)
			status, has := object["status"].(map[string]any)
			got := ""
			for _, result := range []string{"failed", "current"} {
				// Without a status, each expression ends with an error, and Flux waits.
				if has && holds(t, checks[tt.kind][result], status) {
					got = result
					break
				}
			}
			if got != tt.want {
				t.Errorf("Flux: got %q, want %q", got, tt.want)
			}
			if got := runHealth(t, program, object, scripts[tt.kind]).ArgoCD; got != argo[tt.want] {
				t.Errorf("Argo CD: got %q, want %q", got, argo[tt.want])
			}
		})
	}
}

// TestHealthWithoutChecks checks that the kinds for which docs/gitops.md has no check need none: Argo CD has no script for
// them, and kstatus shows them as Current.
func TestHealthWithoutChecks(t *testing.T) {
	t.Parallel()
	program := argoProgram(t)
	for kind, status := range map[string]any{
		"OLMConfig":         operatorsv1.OLMConfigStatus{Conditions: []metav1.Condition{{Type: "DisabledCopiedCSVs", Status: metav1.ConditionFalse}}},
		"OperatorCondition": operatorsv2.OperatorConditionStatus{Conditions: []metav1.Condition{{Type: operatorsv2.Upgradeable, Status: metav1.ConditionFalse}}},
		"Operator":          operatorsv1.OperatorStatus{Components: &operatorsv1.Components{}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if got, want := runHealth(t, program, objectOf(t, kind, status)), (health{Kstatus: "Current"}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// objectOf returns an object of a kind as JSON decodes it.
func objectOf(t *testing.T, kind string, status any) map[string]any {
	t.Helper()
	object := map[string]any{"apiVersion": "operators.coreos.com/v1", "kind": kind, "metadata": map[string]any{"name": "lamp"}}
	if status != nil {
		object["status"] = status
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
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

// health is the output of the program that runs the scripts.
type health struct{ ArgoCD, Kstatus string }

// runHealth computes the health of an object, with the given script or else with Argo CD's own.
func runHealth(t *testing.T, program string, object map[string]any, script ...string) health {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, script...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), os.Stderr
	out, err := cmd.Output()
	var h health
	if err == nil {
		err = json.Unmarshal(out, &h)
	}
	if err != nil {
		t.Errorf("%s: %v", out, err)
	}
	return h
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
