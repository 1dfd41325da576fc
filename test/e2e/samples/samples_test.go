package samples_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/realcatalogs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience bounds the time until the cluster is as in a sample.
	patience = testenv.Patience
	polling  = 500 * time.Millisecond
	// global is the namespace of the catalog and of the supervisor.
	global = "olm"
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{}, testenv.InstallCRDsWith(filepath.Join(dir, "supervisor")))
	}, "./cmd/registry", "./cmd/supervisor", "./cmd/kubectl-chandlery"))
}

// TestLive creates what the documentation describes for its samples: the demo, with two more
// Subscriptions and a selector that matches no node. Then it runs the commands.
func TestLive(t *testing.T) {
	play(t)
	for _, s := range live {
		t.Run(s.page+"/"+s.command, func(t *testing.T) {
			kubeconfig := controlplane.Get(t).Kubeconfig()
			if s.user != "" {
				var err error
				if kubeconfig, err = controlplane.Get(t).NewKubeconfig(s.user); err != nil {
					t.Fatal(err)
				}
			}
			s.compare(t, kubeconfig)
		})
	}
}

// compare runs the command until it prints the sample. A command that changes something must print it at once.
func (s sample) compare(t *testing.T, kubeconfig string) {
	t.Helper()
	want := s.on(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := ""
	err := pause.Until(ctx, polling, func() string {
		got = kubectl(t, kubeconfig, t.TempDir(), s.command)
		return cmp.Diff(steady(want), steady(got))
	})
	if err != nil {
		s.report(t, got, err.Error())
	}
}

// kubectl returns the output of a command, including its errors, without the line that names the cluster.
func kubectl(t *testing.T, kubeconfig, dir, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), controlplane.Get(t).Kubectl(), strings.Fields(command)...)
	var screen bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &screen, &screen, dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("running kubectl %s: %v", command, err)
	}
	// The first line names the cluster of the test.
	header, rest, _ := strings.Cut(screen.String(), "\n")
	if strings.HasPrefix(header, "Cluster: ") {
		return rest
	}
	return screen.String()
}

// play creates the objects.
func play(t *testing.T) {
	t.Helper()
	c := controlplane.Client(t)
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: global}})
	programs.Start(t, "supervisor-b", filepath.Join(bin, "supervisor"), "run", "--kubeconfig", controlplane.Get(t).Kubeconfig(),
		"--identity", "supervisor-b", "--leader-election-namespace", global, "--lease-duration", "60s", "--renew-deadline", "50s",
		"--metrics-address", "0", "--health-address", "0", "--bundle-cache-dir", t.TempDir())
	create(t, c, &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: global, Name: "demo"},
		Spec: operatorsv1alpha1.CatalogSourceSpec{
			SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: programs.Serve(t, filepath.Join(bin, "registry"), filepath.Join(root, "examples", "catalog")),
		},
	})
	for _, s := range []struct {
		namespace, channel string
		approval           operatorsv1alpha1.Approval
	}{
		{"demo-lantern", "stable", operatorsv1alpha1.ApprovalAutomatic},
		{"lab", "stable", operatorsv1alpha1.ApprovalManual},
		{"shop", "stabel", operatorsv1alpha1.ApprovalAutomatic},
	} {
		create(t, c,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}},
			&operatorsv1.OperatorGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.namespace},
				Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{s.namespace}},
			},
			&operatorsv1alpha1.Subscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "lantern"},
				Spec: &operatorsv1alpha1.SubscriptionSpec{
					CatalogSource: "demo", CatalogSourceNamespace: global, Package: "lantern", Channel: s.channel, InstallPlanApproval: s.approval,
				},
			})
	}
	installed(t, c)
	selector := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"config":{"nodeSelector":{"disk":"none"}}}}`))
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "demo-lantern", Name: "lantern"}}
	if err := c.Patch(t.Context(), sub, selector); err != nil {
		t.Fatal(err)
	}
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// installed waits until the operator of the demo runs.
func installed(t *testing.T, c client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := pause.Until(ctx, polling, func() string {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "demo-lantern", Name: "lantern.v1.2.0"}, csv); err != nil {
			return err.Error()
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return "the version is " + string(csv.Status.Phase)
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlanned runs the dry run of a file with a real catalog.
func TestPlanned(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", "subscription.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "subscription.yaml"), text, 0o600),
		os.Symlink(realcatalogs.Dir(t, realcatalogs.Objects), filepath.Join(dir, "catalog")),
	)
	if err != nil {
		t.Fatal(err)
	}
	got := kubectl(t, filepath.Join(dir, "none"), dir, planned.command)
	if diff := cmp.Diff(planned.on(t), got); diff != "" {
		planned.report(t, got, diff)
	}
}
