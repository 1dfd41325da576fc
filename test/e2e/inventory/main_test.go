package inventory_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/apiproxy/supervisors"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/inventory"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience bounds a step: an installation or an uninstallation.
	patience = 5 * time.Minute
)

func TestMain(m *testing.M) {
	if code, is := supervisors.Serve(); is {
		os.Exit(code)
	}
	// kwok simulates nodes and pods: Deployments become available, and no pod answers.
	os.Exit(testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs))
}

// bed is a cluster, with a catalog if there is a supervisor.
type bed struct {
	client.Client

	t       *testing.T
	lister  *inventory.Lister
	catalog catalog
}

// newBed returns a bed with a supervisor.
func newBed(t *testing.T, dir string) *bed {
	t.Helper()
	b := connect(t)
	b.catalog = catalog{dir: dir}
	supervisors.Start(t, supervisors.Spec{
		Identity: "supervisor", Config: controlplane.Get(t).Config(), Kubeconfig: controlplane.Get(t).Kubeconfig(),
		// The test has no failures, and a busy machine must not lose the Lease.
		Args: []string{"--lease-duration", "60s", "--renew-deadline", "50s"},
	})
	return b
}

// connect returns a bed with access to the cluster.
func connect(t *testing.T) *bed {
	t.Helper()
	cfg := controlplane.Get(t).Config()
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	lister, err := inventory.New(cfg, nil)
	must(t, err)
	return &bed{Client: controlplane.Client(t), t: t, lister: lister}
}

// on returns the bed for another test of the same run.
func (b *bed) on(t *testing.T) *bed {
	t.Helper()
	other := *b
	other.t = t
	return &other
}

func (b *bed) create(objects ...client.Object) {
	b.t.Helper()
	for _, o := range objects {
		if err := b.Create(b.t.Context(), o); err != nil {
			b.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shortly formats a duration for people.
func shortly(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
