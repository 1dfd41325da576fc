package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// empty lists the metrics that have no data in the state of the test, and the state in which they do.
var empty = map[string]string{
	"chandlery_catalog_failovers_total": "a replica of a catalog was lost with its node",
	"chandlery_catalog_failovers_held":  "a lost replica must not be marked or deleted yet",
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

	listed := map[string]bool{}
	for _, q := range queries(t) {
		var because string
		for metric, state := range empty {
			if strings.Contains(q.expression, metric) {
				because, listed[metric] = state, true
			}
		}
		if because != "" {
			found, err := server.Query(t.Context(), q.expression)
			if err != nil || len(found) > 0 {
				t.Errorf("%s: %d series, %v: want none unless %s", q, len(found), err, because)
			}
			continue
		}
		testenv.Until(t, testenv.Patience, "data of "+q.String(), func(ctx context.Context) string {
			found, err := server.Query(ctx, q.expression)
			if err != nil {
				return err.Error()
			}
			if len(found) == 0 {
				return "no data"
			}
			return ""
		})
	}
	if len(listed) < len(empty) {
		t.Errorf("of the metrics %v, the dashboard shows %v", empty, listed)
	}
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

// query is a query of a panel.
type query struct{ panel, expression string }

func (q query) String() string { return fmt.Sprintf("panel %q, query %s", q.panel, q.expression) }

// queries returns the queries of the dashboard.
func queries(t *testing.T) (all []query) {
	t.Helper()
	text, err := os.ReadFile("../../components/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all = append(all, query{p.Title, target.Expr})
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d queries were found", len(all))
	}
	return all
}
