package suite_test

import (
	"os"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/informer/crdcache"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs))
}

// world is a test's view of the cluster.
type world struct {
	*testenv.World

	// home is the namespace of the supervisor; empty for one outside the cluster.
	home string
	// election makes the controllers work only while they hold a Lease in the namespace.
	election bool
	// crds is the cache of definitions of the running controllers.
	crds cache.Cache
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{World: testenv.New(t)}
}

// supervise runs both controllers until the test ends or stop is called. stop waits for their end.
func (w *world) supervise() (stop func()) {
	w.T.Helper()
	return w.superviseAt(nil)
}

// superviseAt does the same as supervise with another clock, and with further controllers.
func (w *world) superviseAt(c clock.PassiveClock, more ...func(ctrl.Manager) error) (stop func()) {
	w.T.Helper()
	groups := func(mgr ctrl.Manager) error { return operatorgroup.Setup(mgr, operatorgroup.Options{}) }
	return w.superviseWith(c, append(more, groups)...)
}

// superviseWith runs the controller of versions and the given controllers.
func (w *world) superviseWith(c clock.PassiveClock, others ...func(ctrl.Manager) error) (stop func()) {
	w.T.Helper()
	return w.StartManager(ctrl.Options{
		LeaderElection: w.election, LeaderElectionNamespace: w.Namespace, LeaderElectionID: "leader",
		LeaderElectionReleaseOnCancel: true, RetryPeriod: new(200 * time.Millisecond),
		// A slow machine loses no Lease, and a stop releases it.
		RenewDeadline: new(50 * time.Second), LeaseDuration: new(time.Minute),
	}, func(mgr testenv.Manager) error {
		grants, err := grant.Setup(mgr)
		if err != nil {
			return err
		}
		if w.crds, err = crdcache.Add(mgr); err != nil {
			return err
		}
		if err := groupindex.Add(mgr.Context, mgr.GetFieldIndexer()); err != nil {
			return err
		}
		if err := clusterserviceversion.Setup(mgr, clusterserviceversion.Options{CRDs: w.crds, Clock: c, Grants: grants, Namespace: w.home}); err != nil {
			return err
		}
		for _, setup := range others {
			if err := setup(mgr); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) csv(name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, csv); err != nil {
		csv.Status.Message = err.Error()
	}
	return csv
}

// reaches waits until a ClusterServiceVersion is in a phase for a reason.
func (w *world) reaches(name string, phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason) *operatorsv1alpha1.ClusterServiceVersion {
	w.T.Helper()
	var csv *operatorsv1alpha1.ClusterServiceVersion
	w.Eventually(func(g gomega.Gomega) {
		csv = w.csv(name)
		g.Expect(csv.Status.Phase).To(gomega.Equal(phase), "%s %s", csv.Status.Reason, csv.Status.Message)
		g.Expect(csv.Status.Reason).To(gomega.Equal(reason), csv.Status.Message)
	}).Should(gomega.Succeed())
	return csv
}

func (w *world) succeeds(name string) *operatorsv1alpha1.ClusterServiceVersion {
	w.T.Helper()
	return w.reaches(name, operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful)
}

// caused checks the cause of a version.
func (w *world) caused(csv *operatorsv1alpha1.ClusterServiceVersion, reason, remedy string) {
	w.T.Helper()
	cause, _ := api.CauseOf(csv)
	w.Expect(cause).To(gomega.Equal(api.Cause{Reason: reason, Remedy: remedy}))
}

// accountRefused checks the cause of a version that the account of the OperatorGroup may not install.
func accountRefused(w *world, csv *operatorsv1alpha1.ClusterServiceVersion) {
	w.T.Helper()
	cause, _ := api.CauseOf(csv)
	w.Expect(cause).To(gomega.Equal(api.Cause{
		Reason: "PermissionDenied", Detail: "ServiceAccount weak of OperatorGroup own lacks a permission",
		Remedy: "grant the ServiceAccount this permission, or name another ServiceAccount in the OperatorGroup",
	}))
}

// uncaused waits until kettle.v1 has no cause. It is removed after the status that it explains.
func (w *world) uncaused() {
	w.T.Helper()
	w.Eventually(func() map[string]string { return w.csv("kettle.v1").Annotations }).ShouldNot(gomega.HaveKey(api.AnnotationCause))
}

// phases returns the phases in the conditions of a ClusterServiceVersion, without repetitions.
func phases(csv *operatorsv1alpha1.ClusterServiceVersion) []operatorsv1alpha1.ClusterServiceVersionPhase {
	var out []operatorsv1alpha1.ClusterServiceVersionPhase
	for _, c := range csv.Status.Conditions {
		if len(out) == 0 || out[len(out)-1] != c.Phase {
			out = append(out, c.Phase)
		}
	}
	return out
}
