package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/prometheus"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// bin is the folder of the programs.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{Nodes: 2}, testenv.InstallCRDs)
	}, "./cmd/supervisor"))
}

// TestDashboardQueriesReturnData runs each query of the dashboard against a real Prometheus. Subscriptions, plans and
// versions wait, a step of a plan fails, and a bundle image cannot be pulled.
func TestDashboardQueriesReturnData(t *testing.T) {
	w := testenv.New(t)
	metrics := ports.Address(t)
	programs.Start(t, "supervisor", filepath.Join(bin, "supervisor"), "run", "--kubeconfig", controlplane.Get(t).Kubeconfig(),
		"--leader-election-namespace", w.Namespace, "--metrics-address", metrics, "--health-address", "0", "--catalog-refresh-interval", "1s",
		"--bundle-cache-dir", t.TempDir())
	server := prometheus.Start(t, metrics, "chandlery-supervisor", map[string]string{"namespace": "chandlery-system", "pod": "a"})
	create(w)

	wanted := queries(t)
	testenv.Until(t, testenv.Patience, "data of all queries", func(ctx context.Context) string {
		var missing []string
		wanted = slices.DeleteFunc(wanted, func(q query) bool {
			found, err := server.Query(ctx, q.expression)
			why := q.problem(found)
			if err != nil {
				why = err.Error()
			}
			if why != "" {
				missing = append(missing, fmt.Sprintf("%s: %s", q, why))
			}
			return why == ""
		})
		return strings.Join(missing, "; ")
	})
}

// create creates a catalog and the objects that the panels show.
func create(w *testenv.World) {
	csv := func(name string) string {
		text, err := json.Marshal(fixtures.Kettle("", name))
		if err != nil {
			w.T.Fatal(err)
		}
		return strings.Replace(string(text), `{"metadata"`, `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata"`, 1)
	}
	const invalid = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"invalid"},"spec":{"ports":[{"port":70000}]}}`
	served := fakecatalog.StartExtended(w.T,
		fakecatalog.Simple("kettle", fakecatalog.Entry{Name: "kettle.v1", Version: "1.0.0", Objects: []string{csv("kettle.v1")}}),
		fakecatalog.Simple("invalid", fakecatalog.Entry{Name: "invalid.v1", Version: "1.0.0", Objects: []string{csv("invalid.v1"), invalid}}),
		fakecatalog.Simple("image", fakecatalog.Entry{Name: "image.v1", Version: "1.0.0", Image: ports.Address(w.T) + "/image:v1"}),
	)
	for _, name := range []string{"kettle", "invalid", "image"} {
		namespace := controlplane.Namespace(w.T)
		s := fixtures.Subscription(namespace, name, name, "shop")
		s.Spec.Channel = "stable"
		if name == "kettle" {
			s.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
		}
		w.Create(fixtures.ServedCatalog(namespace, "shop", served.Address()), fixtures.OperatorGroup(namespace, "group", namespace), s)
	}
	pending := fixtures.Kettle(w.Namespace, "pending.v1")
	pending.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "lamps.example.com", Version: "v1", Kind: "Lamp"}}
	w.Create(fixtures.OperatorGroup(w.Namespace, "group", w.Namespace), pending, fixtures.ImageCatalog(w.Namespace, "hosted", "example.com/catalog:v1"))
}

// query is a query of a panel, and the labels in its legend.
type query struct {
	panel, expression string
	labels            []string
}

func (q query) String() string { return fmt.Sprintf("panel %q, query %s", q.panel, q.expression) }

// problem returns what a result lacks; empty if it lacks nothing.
func (q query) problem(found []prometheus.Sample) string {
	if len(found) == 0 {
		return "no data"
	}
	for _, label := range q.labels {
		if !slices.ContainsFunc(found, func(s prometheus.Sample) bool { return s.Metric[label] != "" }) {
			return fmt.Sprintf("no series has label %s of the legend", label)
		}
	}
	return ""
}

var legendLabel = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// queries returns the queries of the dashboard, without the zero that some show instead of no data.
func queries(t *testing.T) (all []query) {
	t.Helper()
	text, err := os.ReadFile("../../components/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			q := query{panel: p.Title, expression: strings.TrimSuffix(target.Expr, " or vector(0)")}
			for _, match := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				q.labels = append(q.labels, match[1])
			}
			all = append(all, q)
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d queries were found", len(all))
	}
	return all
}
