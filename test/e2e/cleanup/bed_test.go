package cleanup_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/apiproxy/supervisors"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/inventory"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience bounds a step of a round, including the start of a supervisor. Garbage collection of
	// objects whose owner has a new kind begins half a minute late.
	patience = 2 * time.Minute
	polling  = 200 * time.Millisecond

	// home is the namespace of the supervisor. account is its ServiceAccount.
	home    = testenv.SupervisorNamespace
	account = "system:serviceaccount:" + home + ":chandlery-supervisor"
	// bystander is the namespace of an operator that is never deleted.
	bystander = "bystander"
)

func TestMain(m *testing.M) {
	if code, is := supervisors.Serve(); is {
		os.Exit(code)
	}
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs, testenv.Deploy("rbac/supervisor.yaml", "rbac/leases.yaml")))
}

// employed returns the access of the supervisor's account.
func employed(t *testing.T) *rest.Config {
	t.Helper()
	return testenv.ConfigOf(t, account, "system:serviceaccounts", "system:serviceaccounts:"+home, "system:authenticated")
}

// bed is a cluster with a proxy between it and the supervisor. The test itself accesses the cluster
// without faults.
type bed struct {
	client.Client

	t       *testing.T
	lister  *inventory.Lister
	proxy   *apiproxy.Proxy
	running *process.Process
	starts  int
}

func newBed(t *testing.T) *bed {
	t.Helper()
	cfg := controlplane.Get(t).Config()
	cfg.QPS, cfg.WarningHandler = -1, rest.NoWarnings{}
	lister, err := inventory.New(cfg, overlooked)
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Client: controlplane.Client(t), t: t, lister: lister, proxy: apiproxy.Start(t, employed(t))}
	b.release()
	return b
}

// supervise starts a supervisor behind the proxy unless one runs.
func (b *bed) supervise() {
	b.t.Helper()
	if b.running != nil {
		return
	}
	b.starts++
	b.proxy.Forget()
	b.running = supervisors.Start(b.t, supervisors.Spec{
		Identity: b.identity(), Config: b.proxy.Config(),
		// This test is not about leader election, and a slow machine must not lose the Lease.
		Args: []string{"--leader-election-namespace", home, "--lease-duration", "60s", "--renew-deadline", "50s"},
	})
}

func (b *bed) identity() string { return fmt.Sprintf("supervisor-%d", b.starts) }

// atRest is the time without calls about an operator after which the supervisor is idle.
const atRest = time.Second

// rests waits until the supervisor leads and is idle for an operator, so its next calls belong to the clean-up.
func (b *bed) rests(tr *trial) {
	b.t.Helper()
	testenv.Until(b.t, patience, "the supervisor to have nothing to do", func(ctx context.Context) string {
		var lease coordinationv1.Lease
		if err := b.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, &lease); err != nil {
			return err.Error()
		}
		if supervisor.IdentityOf(ptr.Deref(lease.Spec.HolderIdentity, "")) != b.identity() {
			return "it does not lead"
		}
		for _, r := range slices.Backward(b.proxy.Records()) {
			switch {
			case !tr.concerns(r.Call):
			case time.Since(r.Time) < atRest:
				return "its last call was " + r.Call.String()
			default:
				return ""
			}
		}
		return "it has made no call"
	})
}

// release releases the Lease of a killed supervisor, without waiting until it expires.
func (b *bed) release() {
	b.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: api.LeaseName}}
	if err := client.IgnoreNotFound(b.Delete(b.t.Context(), lease)); err != nil {
		b.t.Fatal(err)
	}
}

// kill kills the supervisor, as a lost machine would.
func (b *bed) kill() {
	b.t.Helper()
	if err := b.running.Kill(); err != nil {
		b.t.Fatal(err)
	}
	b.running = nil
	b.release()
}

// dies waits until a supervisor dies at a call of a clean-up, or until the clean-up ends without that call.
func (b *bed) dies(tr *trial, csv *operatorsv1alpha1.ClusterServiceVersion) {
	b.t.Helper()
	gone := time.Time{}
	testenv.Until(b.t, patience, tr.namespace+" to be cleaned up, or the supervisor to die", func(ctx context.Context) string {
		select {
		case <-tr.dead:
			return ""
		default:
		}
		left := b.there(ctx, csv)
		if left == "" && gone.IsZero() {
			gone = time.Now()
		}
		if left == "" && time.Since(gone) < afterwards {
			return "others may still have something to do"
		}
		return left
	})
	if tr.died() {
		b.kill()
	}
}

// afterwards is how long other controllers may work after the deletion of a version.
const afterwards = time.Second

// there returns a text if an object exists; empty otherwise.
func (b *bed) there(ctx context.Context, o client.Object) string {
	err := b.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion); is && err == nil {
		return fmt.Sprintf("it is there: %s %s: %s", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
	}
	return fmt.Sprintf("it is there (%v)", err)
}

// settle installs the operator that stays.
func (b *bed) settle() {
	b.t.Helper()
	b.create(ground(bystander, forOwn)...)
	b.installed(b.order(bystander, forOwn))
}

// prepare creates what exists before the operators and returns its inventory, without the records of install
// plans.
func (b *bed) prepare(list ...*trial) inventory.Objects {
	b.t.Helper()
	for _, tr := range list {
		b.create(ground(tr.namespace, tr.shape)...)
	}
	var before inventory.Objects
	testenv.Until(b.t, patience, "the ground to be settled", func(ctx context.Context) string {
		for _, tr := range list {
			if missing := b.unprepared(ctx, tr); missing != "" {
				return missing
			}
		}
		now, err := b.inventory(ctx)
		if err != nil {
			return err.Error()
		}
		changes := inventory.Difference(before, now, nil)
		before = now
		return changes
	})
	return withoutRecords(before, list...)
}

// unprepared returns what other controllers have yet to create in the namespace of an operator.
func (b *bed) unprepared(ctx context.Context, tr *trial) string {
	served := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "v1." + apiGroup(tr.namespace)}}
	served.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	needed := []client.Object{served}
	for _, namespace := range []string{tr.namespace, tr.shape.elsewhere(tr.namespace)} {
		needed = append(needed,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"}})
	}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: tr.namespace, Name: groupName(tr.namespace)}}
	for _, o := range append(needed, group) {
		if err := b.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
	}
	if len(group.Status.Namespaces) == 0 {
		return "the OperatorGroup of " + tr.namespace + " has no status"
	}
	return ""
}

// install creates operators and waits until they have succeeded.
func (b *bed) install(trials ...*trial) []*operatorsv1alpha1.ClusterServiceVersion {
	b.t.Helper()
	var list []*operatorsv1alpha1.ClusterServiceVersion
	for _, tr := range trials {
		list = append(list, b.order(tr.namespace, tr.shape))
	}
	for _, csv := range list {
		b.installed(csv)
	}
	b.complete(trials...)
	return list
}

// order creates an operator and the objects of its InstallPlan.
func (b *bed) order(namespace string, s shape) *operatorsv1alpha1.ClusterServiceVersion {
	b.t.Helper()
	csv := operator(namespace, s)
	b.create(csv)
	// The operator that stays may exist already.
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
		b.t.Fatal(err)
	}
	b.create(belongings(csv, s)...)
	return csv
}

func (b *bed) installed(csv *operatorsv1alpha1.ClusterServiceVersion) {
	b.t.Helper()
	testenv.Until(b.t, patience, "the operator of "+csv.Namespace+" to succeed", func(ctx context.Context) string {
		if err := b.Get(ctx, client.ObjectKeyFromObject(csv), csv); err != nil {
			return err.Error()
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s (%s: %s)", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return ""
	})
}

// raze deletes the namespaces of the operators, with everything that rounds have left.
func (b *bed) raze(list ...*trial) {
	b.t.Helper()
	var (
		namespaces []string
		all        []client.Object
	)
	for _, tr := range list {
		namespaces = append(namespaces, tr.namespace)
		objects := ground(tr.namespace, tr.shape)
		slices.Reverse(objects)
		all = append(all, objects...)
	}
	for _, o := range all {
		if err := b.Delete(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
	}
	b.vacated(namespaces...)
}

func (b *bed) create(objects ...client.Object) {
	b.t.Helper()
	for _, o := range objects {
		testenv.Until(b.t, patience, fmt.Sprintf("%T %s to be made", o, o.GetName()), func(ctx context.Context) string {
			if err := b.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
	}
}
