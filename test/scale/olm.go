package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/oracle/olmpeer"
)

// olmPatience bounds OLM's average time for one installation of a batch.
const olmPatience = 20 * time.Second

// OLM is a Cluster with Operator Lifecycle Manager instead of the supervisor.
type OLM struct {
	cluster *Cluster
	peer    *olmpeer.Peer
}

// StartOLM starts all processes. It builds OLM unless the cache has it. It uses only the options
// Dir and RealNodes.
func StartOLM(ctx context.Context, o Options) (*OLM, error) {
	programs, err := olmpeer.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	p, err := startPlane(ctx, o, "")
	if err != nil {
		return nil, err
	}
	p.account = olmpeer.Account
	m := &OLM{cluster: newCluster(o, p)}
	if err := m.start(ctx, programs); err != nil {
		return nil, errors.Join(err, m.Stop()) //nolint:contextcheck // What was started is removed after ctx too.
	}
	return m, nil
}

func (m *OLM) start(ctx context.Context, programs string) error {
	if err := m.cluster.connect(ctx); err != nil {
		return err
	}
	logs := filepath.Join(m.cluster.options.Dir, "olm")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return fmt.Errorf("making a folder for the logs of OLM: %w", err)
	}
	var err error
	m.peer, err = olmpeer.Start(ctx, olmpeer.Options{Programs: programs, Logs: logs, Plane: m.cluster.plane.ControlPlane})
	if err != nil {
		return err
	}
	if err := m.cluster.serve(ctx); err != nil {
		return err
	}
	return m.peer.AwaitCatalog(ctx, client.ObjectKey{Namespace: catalogNamespace, Name: catalogName})
}

// Stop stops all processes.
func (m *OLM) Stop() error {
	var err error
	if m.peer != nil {
		err = m.peer.Stop()
	}
	return errors.Join(err, m.cluster.Stop())
}

// Prepare creates namespaces with their OperatorGroups and waits until OLM has reconciled these and is idle.
func (m *OLM) Prepare(ctx context.Context, names []string) error {
	ctx, cancel := m.limit(ctx, names)
	defer cancel()
	create := m.cluster.plane.create
	err := each(ctx, names, func(ctx context.Context, name string) error {
		if err := create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		return create(ctx, &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "own"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{name}},
		})
	})
	if err != nil {
		return err
	}
	if err := m.reached(ctx, names, &corev1.ServiceAccountList{}, isDefaultAccount); err != nil {
		return err
	}
	if err := m.reached(ctx, names, &operatorsv1.OperatorGroupList{}, isReconciledGroup); err != nil {
		return err
	}
	_, err = m.idle(ctx)
	return err
}

// Install subscribes to the operator in prepared namespaces, all at once, and counts the cost.
// before is the number of namespaces that already have the operator. Took ends when the
// ClusterServiceVersions of Complete InstallPlans are Succeeded, because OLM sets AtLatestKnown as
// soon as a ClusterServiceVersion exists. Supervisor and Memory are sums over OLM's two programs.
func (m *OLM) Install(ctx context.Context, before int, names []string) (*Batch, error) {
	ctx, cancel := m.limit(ctx, names)
	defer cancel()
	start, err := m.measure()
	if err != nil {
		return nil, err
	}
	b := &Batch{Before: before, Namespaces: len(names)}
	began := time.Now()
	if b.Failed, err = m.subscribe(ctx, names); err != nil {
		return nil, err
	}
	b.Took = time.Since(began)
	if b.Requests, err = m.idle(ctx); err != nil {
		return nil, err
	}
	b.Span = time.Since(began)
	end, err := m.measure()
	if err != nil {
		return nil, err
	}
	b.Supervisor, b.APIServer = end.processor-start.processor, end.apiServer-start.apiServer
	b.ControllerManager = end.controllerManager - start.controllerManager
	b.Memory, b.Resident = end.memory, end.resident
	return b, nil
}

// subscribe creates Subscriptions and waits until each installation has ended. It returns the
// namespaces whose InstallPlan has failed.
func (m *OLM) subscribe(ctx context.Context, names []string) ([]string, error) {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		return m.cluster.plane.create(ctx, &operatorsv1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: packageName},
			Spec: &operatorsv1alpha1.SubscriptionSpec{
				Package: packageName, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace,
			},
		})
	})
	if err != nil {
		return nil, err
	}
	return m.installed(ctx, names)
}

// installed waits until all InstallPlans are Complete or Failed, and the ClusterServiceVersions of
// Complete ones are Succeeded. It returns the namespaces whose InstallPlan has failed.
func (m *OLM) installed(ctx context.Context, names []string) ([]string, error) {
	complete, failed := sets.New(names...), sets.New[string]()
	err := m.reached(ctx, names, &operatorsv1alpha1.InstallPlanList{}, func(o client.Object) bool {
		if hasFailed(o) && complete.Has(o.GetNamespace()) {
			complete.Delete(o.GetNamespace())
			failed.Insert(o.GetNamespace())
		}
		return hasFailed(o) || isComplete(o)
	})
	if err != nil {
		return nil, err
	}
	return sets.List(failed), m.reached(ctx, sets.List(complete), &operatorsv1alpha1.ClusterServiceVersionList{}, isSucceeded)
}

// limit returns a context that ends when a batch takes too long or a program of OLM ends.
func (m *OLM) limit(ctx context.Context, names []string) (context.Context, context.CancelFunc) {
	long := patience + time.Duration(len(names))*olmPatience
	ctx, stop := context.WithTimeoutCause(ctx, long, fmt.Errorf("OLM took longer than %s", long))
	ctx, cancel := m.peer.While(ctx)
	return ctx, func() {
		cancel()
		stop()
	}
}
