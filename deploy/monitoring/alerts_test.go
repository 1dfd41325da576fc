package monitoring_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/test/prometheus"
)

const component = "../components/monitoring"

// run runs promtool in a folder.
func run(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := prometheus.Program(t.Context(), prometheus.Promtool)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// rule is a rule of a group.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// readRules returns the groups of the PrometheusRule as a rule file of Prometheus, and the alerts.
func readRules(t *testing.T) (file []byte, alerts []rule) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(component, "prometheusrule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := json.Unmarshal(object.Spec, &spec); err != nil {
		t.Fatal(err)
	}
	for _, g := range spec.Groups {
		alerts = append(alerts, g.Rules...)
	}
	if len(alerts) < 10 {
		t.Fatalf("only %d alerts were found", len(alerts))
	}
	return object.Spec, alerts
}

// TestAlertsFireAndResolve runs the tests of testdata/alerts.yaml. It fails if they do not test every alert, both while
// it fires and while it does not.
func TestAlertsFireAndResolve(t *testing.T) {
	file, alerts := readRules(t)
	dir := t.TempDir()
	tests, err := os.ReadFile("testdata/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"rules.yaml": file, "alerts.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
	run(t, dir, "test", "rules", "alerts.yaml")
	fires, resolves := outcomes(t, tests)
	for _, a := range alerts {
		if !fires[a.Alert] || !resolves[a.Alert] {
			t.Errorf("%s fires in a test: %t, and resolves: %t", a.Alert, fires[a.Alert], resolves[a.Alert])
		}
	}
}

// outcomes returns the alerts that fire in a test file, and those that rest at a later time of the same test.
func outcomes(t *testing.T, tests []byte) (fires, resolves map[string]bool) {
	t.Helper()
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `json:"alertname"`
				Time     string `json:"eval_time"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(tests, &file); err != nil {
		t.Fatal(err)
	}
	fires, resolves = map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		first, last := map[string]time.Duration{}, map[string]time.Duration{}
		for _, a := range test.Alerts {
			at, err := time.ParseDuration(a.Time)
			if err != nil {
				t.Fatal(err)
			}
			if old, known := first[a.Name]; len(a.Expected) > 0 && (!known || at < old) {
				first[a.Name] = at
			}
			if len(a.Expected) == 0 {
				last[a.Name] = max(last[a.Name], at)
			}
		}
		for name, at := range first {
			fires[name] = true
			resolves[name] = resolves[name] || last[name] > at
		}
	}
	return fires, resolves
}

func TestOutcomes(t *testing.T) {
	fires, resolves := outcomes(t, []byte(`
tests:
- alert_rule_test:
  - {alertname: A, eval_time: 5m, exp_alerts: [{}]}
  - {alertname: A, eval_time: 9m, exp_alerts: []}
  - {alertname: Late, eval_time: 9m, exp_alerts: [{}]}
  - {alertname: Late, eval_time: 5m, exp_alerts: []}
  - {alertname: Rests, eval_time: 1h, exp_alerts: []}
- alert_rule_test:
  - {alertname: Late, eval_time: 2h, exp_alerts: []}
`))
	if diff := cmp.Diff([]map[string]bool{{"A": true, "Late": true}, {"A": true, "Late": false}}, []map[string]bool{fires, resolves}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAlertsHaveRunbooks checks that each alert has a section in docs/alerts.md with a command, in the same order, and
// that its annotation leads there.
func TestAlertsHaveRunbooks(t *testing.T) {
	_, alerts := readRules(t)
	text, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections, wanted []string
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		sections = append(sections, name)
		if !strings.Contains(body, "\n```sh\nkubectl ") {
			t.Errorf("section %s has no command", name)
		}
	}
	const page = "https://github.com/chandlery/chandlery/blob/main/docs/alerts.md#"
	for _, a := range alerts {
		wanted = append(wanted, a.Alert)
		if got := a.Annotations["runbook_url"]; got != page+strings.ToLower(a.Alert) {
			t.Errorf("the runbook of %s is %q", a.Alert, got)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
	}
	if diff := cmp.Diff(wanted, sections); diff != "" {
		t.Errorf("sections of docs/alerts.md (-alerts +sections):\n%s", diff)
	}
}

// TestAlertsUseDocumentedMetrics checks the metrics and labels of the alerts.
func TestAlertsUseDocumentedMetrics(t *testing.T) {
	_, alerts := readRules(t)
	known := documentedMetrics(t)
	for _, a := range alerts {
		for _, problem := range known.problems(a.Expr) {
			t.Errorf("%s: %s", a.Alert, problem)
		}
	}
}

// metricLabels are the labels of each documented metric.
type metricLabels map[string][]string

// others are metrics that docs/reference/metrics.md names as a group.
var others = metricLabels{
	"leader_election_master_status":             {"name"},
	"process_resident_memory_bytes":             nil,
	"controller_runtime_reconcile_total":        {"controller", "result"},
	"controller_runtime_reconcile_errors_total": {"controller"},
}

// documentedMetrics returns the metrics of docs/reference/metrics.md, which is generated from the code.
func documentedMetrics(t *testing.T) metricLabels {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := metricLabels{}
	maps.Copy(known, others)
	for _, match := range regexp.MustCompile("(?m)^- `([a-z0-9_]+)` \\(`(.*)`\\): ").FindAllStringSubmatch(string(text), -1) {
		fields := strings.Split(match[2], "`, `")
		name, kind, labels := match[1], fields[0], fields[1:]
		known[name] = labels
		if kind == "histogram" || kind == "summary" {
			known[name+"_count"], known[name+"_sum"] = labels, labels
		}
		if kind == "histogram" {
			known[name+"_bucket"] = append(slices.Clone(labels), "le")
		}
	}
	if len(known) < 60 {
		t.Fatalf("only %d metrics were found", len(known))
	}
	return known
}

// ofTargets are the labels that Prometheus adds to each series.
var ofTargets = []string{"job", "namespace", "pod", "exported_namespace"}

var (
	selector = regexp.MustCompile(`([a-z_][a-z0-9_]*)(?:\{([^}]*)\})`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*[=!]~?\s*"`)
	// notMetrics are the parts of an expression that name no metric.
	notMetrics = regexp.MustCompile(`\{[^}]*\}|\[[^]]*\]|\b(?:by|without|on|ignoring)\s*\([^)]*\)|"[^"]*"`)
	grouping   = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	identifier = regexp.MustCompile(`[a-z_][a-z0-9_]*\s*\(?`)
)

// problems returns the unknown metrics and labels of an expression.
func (m metricLabels) problems(expression string) []string {
	var found, names []string
	labels := slices.Clone(ofTargets)
	for _, name := range identifier.FindAllString(notMetrics.ReplaceAllString(expression, " "), -1) {
		name = strings.TrimSpace(name)
		if strings.HasSuffix(name, "(") || slices.Contains([]string{"or", "and", "unless", "bool"}, name) {
			continue
		}
		names = append(names, name)
		of, known := m[name]
		if !known {
			found = append(found, "no metric "+name)
		}
		labels = append(labels, of...)
	}
	if len(names) == 0 {
		found = append(found, "no metric in "+expression)
	}
	for _, match := range selector.FindAllStringSubmatch(expression, -1) {
		for _, label := range matcher.FindAllStringSubmatch(match[2], -1) {
			if !slices.Contains(slices.Concat(ofTargets, m[match[1]]), label[1]) {
				found = append(found, fmt.Sprintf("%s has no label %s", match[1], label[1]))
			}
		}
	}
	for _, match := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(match[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) {
				found = append(found, fmt.Sprintf("%s have no label %s", strings.Join(names, ", "), label))
			}
		}
	}
	return found
}

func TestProblemsOfExpressions(t *testing.T) {
	known := metricLabels{"lamps": {"color"}, "lamp_seconds_bucket": {"le"}}
	for expression, want := range map[string][]string{
		`sum by (color) (rate(lamps{color="red"}[5m])) or vector(0)`:                                   nil,
		`histogram_quantile(0.5, sum by (le) (rate(lamp_seconds_bucket{exported_namespace="a"}[5m])))`: nil,
		`lamp > 0`:                      {"no metric lamp"},
		`lamps{size="1", color!="red"}`: {"lamps has no label size"},
		`sum by (color, size) (lamps)`:  {"lamps have no label size"},
		`vector(1)`:                     {"no metric in vector(1)"},
	} {
		if diff := cmp.Diff(want, known.problems(expression)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expression, diff)
		}
	}
}
