package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/apiproxy/supervisors"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// patience bounds one installation, with all the others in parallel. A version whose
	// installation the API server refused is retried after a minute. An unreachable server takes a
	// minute. Watches restart up to another minute after its return, because their backoff grows.
	patience = 5 * time.Minute
	polling  = 50 * time.Millisecond
)

func TestMain(m *testing.M) {
	if code, is := supervisors.Serve(); is {
		os.Exit(code)
	}
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// bed is a cluster with a proxy between it and the supervisor. The test itself accesses the cluster
// without faults.
type bed struct {
	client.Client

	t     *testing.T
	cache cache.Cache
	proxy *apiproxy.Proxy
	paths *paths

	mu      sync.Mutex
	scripts map[string]*script
}

func newBed(t *testing.T) *bed {
	t.Helper()
	read := controlplane.Cache(t, &operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.ClusterServiceVersion{}, &operatorsv1alpha1.InstallPlan{})
	b := &bed{Client: controlplane.Client(t), t: t, cache: read, proxy: apiproxy.Start(t, controlplane.Get(t).Config()), paths: newPaths(), scripts: map[string]*script{}}
	b.proxy.Decide(b.judge)
	plans, err := read.GetInformer(t.Context(), &operatorsv1alpha1.InstallPlan{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plans.AddEventHandler(b.paths); err != nil {
		t.Fatal(err)
	}
	return b
}

// supervise starts a supervisor behind the proxy.
func (b *bed) supervise() {
	b.t.Helper()
	// This test is not about leader election, and a server that is unreachable for less than the
	// renew deadline must not lose the Lease.
	supervisors.Start(b.t, supervisors.Spec{
		Identity: "supervisor", Config: b.proxy.Config(),
		Args: []string{"--concurrency", "8", "--lease-duration", "60s", "--renew-deadline", "50s"},
	})
}

// named matches the namespace of an installation in names.
var named = regexp.MustCompile(`\bf\d{4}\b`)

// judge passes a call to the script of its namespace.
func (b *bed) judge(c apiproxy.Call) apiproxy.Fault {
	namespace := c.Namespace
	if namespace == "" {
		namespace = named.FindString(c.Name)
	}
	b.mu.Lock()
	s := b.scripts[namespace]
	b.mu.Unlock()
	if s == nil {
		return apiproxy.Fault{}
	}
	return s.judge(c)
}

// namespaces counts the installations of all tests.
var namespaces atomic.Int32

// script starts the recording of the calls in a new namespace.
func (b *bed) script() *script {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := newScript(fmt.Sprintf("f%04d", namespaces.Add(1)))
	b.scripts[s.namespace] = s
	return s
}

// install performs an installation and an upgrade in the script's namespace, and returns the
// outcome when it equals want. With an empty want, it returns the outcome when nothing is in
// progress.
func (b *bed) install(ctx context.Context, s *script, want string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server := fakecatalog.StartExtended(b.t, packages(s.namespace, 1)...) //nolint:contextcheck // it lives as long as the test at most
	defer server.Stop()
	err := b.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	for _, o := range order(s.namespace, server.Address()) {
		if err == nil {
			err = b.Create(ctx, o)
		}
	}
	if err != nil {
		return "", fmt.Errorf("ordering a kettle: %w", err)
	}
	if err := pause.Until(ctx, polling, func() string { return b.underWay(ctx, s.namespace, 1) }); err != nil {
		return "", fmt.Errorf("installing: %w", err)
	}
	server.Serve(packages(s.namespace, 2)...)
	if err := pause.Until(ctx, polling, func() string { return b.underWay(ctx, s.namespace, 2) }); err != nil {
		return "", fmt.Errorf("upgrading: %w", err)
	}
	var got string
	err = pause.Until(ctx, 8*polling, func() string {
		var err error
		switch got, err = outcome(ctx, b, s.namespace); {
		case err != nil:
			return err.Error()
		case want != "" && got != want:
			return "what has been made differs (-undisturbed +disturbed):\n" + diff(want, got)
		default:
			return b.paths.differs(ctx, b, s.namespace)
		}
	})
	return got, err
}

// underWay returns what is missing until a version and the cup beside it, and nothing else, are
// installed; empty for nothing.
func (b *bed) underWay(ctx context.Context, namespace string, n int) string {
	var (
		subscriptions operatorsv1alpha1.SubscriptionList
		versions      operatorsv1alpha1.ClusterServiceVersionList
		plans         operatorsv1alpha1.InstallPlanList
	)
	in := client.InNamespace(namespace)
	if err := errors.Join(b.cache.List(ctx, &subscriptions, in), b.cache.List(ctx, &versions, in), b.cache.List(ctx, &plans, in)); err != nil {
		return err.Error()
	}
	var missing []string
	want := map[string]string{"kettle": version(namespace, "kettle", n), "cup": version(namespace, "cup", 1)}
	for i := range subscriptions.Items {
		sub := &subscriptions.Items[i]
		quiet := !slices.ContainsFunc(sub.Status.Conditions, func(c operatorsv1alpha1.SubscriptionCondition) bool { return c.Status == corev1.ConditionTrue })
		if quiet && sub.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest && sub.Status.InstalledCSV == want[sub.Spec.Package] {
			delete(want, sub.Spec.Package)
			continue
		}
		missing = append(missing, fmt.Sprintf("Subscription %s: state %q, current %q, installed %q, conditions %+v",
			sub.Name, sub.Status.State, sub.Status.CurrentCSV, sub.Status.InstalledCSV, sub.Status.Conditions))
	}
	for i := range plans.Items {
		if p := &plans.Items[i]; p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete || len(plans.Items) > n {
			missing = append(missing, fmt.Sprintf("InstallPlan %s of %s for %v: generation %d, phase %q, message %q, conditions %+v, owners %+v",
				p.Name, p.CreationTimestamp, p.Spec.ClusterServiceVersionNames, p.Spec.Generation, p.Status.Phase, p.Status.Message, p.Status.Conditions, p.OwnerReferences))
		}
	}
	for i := range versions.Items {
		if v := &versions.Items[i]; v.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			missing = append(missing, fmt.Sprintf("ClusterServiceVersion %s: phase %q, reason %q, message %q, requirements %+v",
				v.Name, v.Status.Phase, v.Status.Reason, v.Status.Message, v.Status.RequirementStatus))
		}
	}
	if len(want) == 0 && len(subscriptions.Items) == 2 && len(versions.Items) == 2 && len(plans.Items) == n && len(missing) == 0 {
		return ""
	}
	slices.Sort(missing)
	return fmt.Sprintf("%d Subscriptions, %d versions and %d plans, of which are not at the end:\n%s",
		len(subscriptions.Items), len(versions.Items), len(plans.Items), strings.Join(missing, "\n"))
}
