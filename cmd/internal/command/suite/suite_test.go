package suite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// supervisorPath and pluginPath are the files of the programs. Both are built once for the package into their own folder.
var supervisorPath, pluginPath string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		supervisorPath, pluginPath = filepath.Join(dir, "supervisor"), filepath.Join(dir, "kubectl-chandlery")
		return testenv.Main(m, controlplane.Options{Nodes: -1}, installCompleter, testenv.InstallCRDsWith(supervisorPath), prepare)
	}, "./cmd/supervisor", "./cmd/kubectl-chandlery"))
}

// installCompleter puts the completion program of the plugin beside it.
func installCompleter(context.Context, *controlplane.ControlPlane) error {
	const completer = "kubectl_complete-chandlery"
	path, err := buildcache.SourceDir("cmd/kubectl-chandlery/" + completer)
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading what completes the plugin: %w", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(pluginPath), completer), text, 0o700); err != nil {
		return fmt.Errorf("installing what completes the plugin: %w", err)
	}
	return nil
}

// world is a namespace with a Subscription and its InstallPlan.
type world struct {
	*testenv.World

	kubeconfig string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{testenv.New(t), controlplane.Get(t).Kubeconfig()}
	plan := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "install-aaa"},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			Approval: operatorsv1alpha1.ApprovalManual, ClusterServiceVersionNames: []string{"lamp.v1"},
		},
	}
	w.Create(plan)
	w.subscribe("my-lamp")
	w.went("my-lamp", plan, "Planning")
	w.went("my-lamp", plan, "RequiresApproval")
	return w
}

func (w *world) subscribe(name string) {
	w.T.Helper()
	w.Create(&operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "lamp", Channel: "stable", CatalogSource: "wares", CatalogSourceNamespace: "olm"},
	})
}

// change changes a Subscription.
func (w *world) change(name string, write func(client.Object) error, change func(*operatorsv1alpha1.Subscription)) {
	w.T.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		sub := &operatorsv1alpha1.Subscription{}
		if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, sub); err != nil {
			return err
		}
		change(sub)
		return write(sub)
	})
	if err != nil {
		w.T.Fatal(err)
	}
}

// went writes a transition to the log of a Subscription and then the matching status.
func (w *world) went(name string, plan *operatorsv1alpha1.InstallPlan, phase string) {
	w.T.Helper()
	update := func(o client.Object) error { return w.Update(w.T.Context(), o) }
	w.change(name, update, func(sub *operatorsv1alpha1.Subscription) {
		ledger, err := transitionlog.Read(sub)
		if err != nil {
			w.T.Fatal(err)
		}
		ledger = ledger.Append(transitionlog.Transition{
			Plan: plan.Name, UID: plan.UID, Version: plan.ResourceVersion, Phase: phase, Reason: phase, Time: metav1.Now(), Observed: transitionlog.Live,
		})
		metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationTransitions, ledger.Text())
	})
	status := func(o client.Object) error { return w.Status().Update(w.T.Context(), o) }
	w.change(name, status, func(sub *operatorsv1alpha1.Subscription) {
		sub.Status.State, sub.Status.CurrentCSV, sub.Status.LastUpdated = operatorsv1alpha1.SubscriptionStateUpgradePending, "lamp.v1", metav1.Now()
		sub.Status.InstallPlanRef = &corev1.ObjectReference{Name: plan.Name, UID: plan.UID}
		sub.Status.SetCondition(operatorsv1alpha1.SubscriptionCondition{
			Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: phase,
		})
	})
}

// annotate replaces the transition log of a Subscription by a text.
func (w *world) annotate(name, text string) {
	w.T.Helper()
	w.change(name, func(o client.Object) error { return w.Update(w.T.Context(), o) }, func(sub *operatorsv1alpha1.Subscription) {
		metav1.SetMetaDataAnnotation(&sub.ObjectMeta, api.AnnotationTransitions, text)
	})
}

// as returns the same world as a user with only these permissions.
func (w *world) as(rules ...rbacv1.PolicyRule) *world {
	w.T.Helper()
	user := strings.ToLower(strings.ReplaceAll(w.T.Name(), "/", "-")) + "-" + w.Namespace
	kubeconfig, err := controlplane.Get(w.T).NewKubeconfig(user)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Create(fixtures.Role(w.Namespace, user, fixtures.User(user), rules...)...)
	return &world{w.World, kubeconfig}
}

// may returns a permission for Subscriptions.
func may(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"subscriptions"}, Verbs: verbs}
}

// history runs the command and returns what it prints, and the error text if it fails.
func (w *world) history(args ...string) (out, failure string) {
	w.T.Helper()
	var printed, errors bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &printed, &errors
	if err := cmd.Run(); err != nil {
		return printed.String(), errors.String() + err.Error()
	}
	return printed.String(), ""
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.T.Context(), supervisorPath, append([]string{"history", "-n", w.Namespace, "--kubeconfig", w.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	return cmd
}
