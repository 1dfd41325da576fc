package suite_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/copiedcsv"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	conflicts = operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict
	isFixed   = operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs
	// winner and loser are the versions of the two operators.
	winner, loser = "kettle.v1", "pot.v1"
)

// groupConflict has two groups with a common namespace: left in l targets l and m, right in r
// targets m and r. The operators of both own the same definition.
type groupConflict struct {
	*world

	l, m, r string
	left    *operatorsv1.OperatorGroup
	crd     string
	seen    *sightings
}

// newGroupConflict creates the namespaces, and watches m and r.
func newGroupConflict(t *testing.T) *groupConflict {
	t.Helper()
	c := &groupConflict{world: newWorld(t), m: controlplane.Namespace(t)}
	// Of groups that are created in the same second, the one whose namespace comes first in the
	// alphabet keeps the APIs: left.
	c.l, c.r = c.Namespace, controlplane.Namespace(t)
	c.l, c.r = min(c.l, c.r), max(c.l, c.r)
	c.Namespace = c.l
	crd := fixtures.CRD("field"+c.l+".example.com", "Cup")
	c.crd = crd.Name
	c.Create(crd)
	c.left = c.groupIn(c.l, "left", c.l, c.m)
	c.seen = watchVersions(t, c.m, c.r)
	return c
}

func (c *groupConflict) groupIn(namespace, name string, targets ...string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	}
}

// provider returns an operator that owns the definition.
func (c *groupConflict) provider(namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := c.kettle(name, owns(c.crd))
	csv.Namespace = namespace
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = name[:len(name)-3]
	return csv
}

// install creates the older operator, and waits until it works and has a copy in m.
func (c *groupConflict) install() {
	c.T.Helper()
	c.Create(c.left, c.provider(c.l, winner))
	c.succeeds(winner)
	c.copied(winner, c.m)
}

// processed waits until a group has a status.
func (c *groupConflict) processed(group *operatorsv1.OperatorGroup) {
	c.T.Helper()
	c.Eventually(func(g gomega.Gomega) {
		g.Expect(c.Get(c.T.Context(), client.ObjectKeyFromObject(group), group)).To(gomega.Succeed())
		g.Expect(group.Status.LastUpdated).NotTo(gomega.BeNil())
	}).Should(gomega.Succeed())
}

func (c *groupConflict) inR() *groupConflict {
	there, world := *c.World, *c.world
	there.Namespace, world.World = c.r, &there
	other := *c
	other.world = &world
	return &other
}

// copied waits for a copy, and returns it.
func (c *groupConflict) copied(name, namespace string) *operatorsv1alpha1.ClusterServiceVersion {
	c.T.Helper()
	found := &operatorsv1alpha1.ClusterServiceVersion{}
	c.Eventually(func(g gomega.Gomega) {
		g.Expect(c.Get(c.T.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found)).To(gomega.Succeed())
		g.Expect(found.Labels).To(gomega.HaveKey(api.LabelCopiedFrom))
	}).Should(gomega.Succeed())
	return found
}

// fails waits until the version in r has failed, and checks that it failed at once and was never
// copied.
func (c *groupConflict) fails(reason operatorsv1alpha1.ConditionReason) {
	c.T.Helper()
	csv := c.inR().reaches(loser, operatorsv1alpha1.CSVPhaseFailed, reason)
	if got, want := phases(csv), []operatorsv1alpha1.ClusterServiceVersionPhase{operatorsv1alpha1.CSVPhaseFailed}; !slices.Equal(got, want) {
		c.T.Errorf("phases in the conditions of %s: %v, want %v", loser, got, want)
	}
	c.seen.upTo(c.T, c.world)
	want := []operatorsv1alpha1.ClusterServiceVersionPhase{operatorsv1alpha1.CSVPhaseNone, operatorsv1alpha1.CSVPhaseFailed}
	if got := c.seen.phases(c.r, loser); !slices.Equal(got, want) {
		c.T.Errorf("phases of %s that were seen: %q, want %q", loser, got, want)
	}
	c.neverCopied()
	events := &eventsv1.EventList{}
	c.Expect(c.List(c.T.Context(), events, client.InNamespace(c.r))).To(gomega.Succeed())
	for _, e := range events.Items {
		if e.Regarding.Name == loser && e.Regarding.Kind == operatorsv1alpha1.ClusterServiceVersionKind && e.Reason != string(reason) && e.Reason != api.ReasonBlocked {
			c.T.Errorf("Event %s: %s", e.Reason, e.Note)
		}
	}
}

func (c *groupConflict) neverCopied() {
	c.T.Helper()
	if got := c.seen.phases(c.m, loser); len(got) > 0 {
		c.T.Errorf("there was a copy of %s in phases %q", loser, got)
	}
}

// sightings holds the versions that watches have returned, in their order.
type sightings struct {
	mu   sync.Mutex
	list []*operatorsv1alpha1.ClusterServiceVersion
	in   []string
}

// watchVersions records every change of ClusterServiceVersions in namespaces until the test ends.
func watchVersions(t *testing.T, namespaces ...string) *sightings {
	t.Helper()
	c := controlplane.Client(t)
	s := &sightings{in: namespaces}
	for _, namespace := range namespaces {
		w, err := c.Watch(t.Context(), &operatorsv1alpha1.ClusterServiceVersionList{}, client.InNamespace(namespace))
		if err != nil {
			t.Fatalf("watching ClusterServiceVersions: %v", err)
		}
		t.Cleanup(w.Stop)
		go s.follow(w)
	}
	return s
}

func (s *sightings) follow(w watch.Interface) {
	for event := range w.ResultChan() {
		if csv, is := event.Object.(*operatorsv1alpha1.ClusterServiceVersion); is {
			s.mu.Lock()
			s.list = append(s.list, csv)
			s.mu.Unlock()
		}
	}
}

// phases returns the phases of the versions of a name, without repetitions.
func (s *sightings) phases(namespace, name string) []operatorsv1alpha1.ClusterServiceVersionPhase {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []operatorsv1alpha1.ClusterServiceVersionPhase
	for _, csv := range s.list {
		if csv.Namespace == namespace && csv.Name == name {
			out = append(out, csv.Status.Phase)
		}
	}
	return slices.Compact(out)
}

// upTo waits until the watches have returned the present state.
func (s *sightings) upTo(t *testing.T, w *world) {
	t.Helper()
	for _, namespace := range s.in {
		marker := w.kettle(fmt.Sprint("marker.v", time.Now().UnixNano()))
		marker.Namespace = namespace
		marker.Labels = map[string]string{api.LabelCopiedFrom: "kube-system"}
		w.Create(marker)
		w.Eventually(func() bool {
			return len(s.phases(namespace, marker.Name)) > 0
		}).Should(gomega.BeTrue())
		w.Expect(client.IgnoreNotFound(w.Delete(t.Context(), marker))).To(gomega.Succeed())
	}
}

// superviseCopies runs the controllers of versions, groups and copies.
func (w *world) superviseCopies(change ...func(*copiedcsv.Options)) (stop func()) {
	w.T.Helper()
	o := copiedcsv.Options{}
	for _, c := range change {
		c(&o)
	}
	return w.superviseAt(nil, func(mgr ctrl.Manager) error { return copiedcsv.Setup(mgr, o) })
}

// TestGroupConflict runs group K of the compatibility scenarios.
func TestGroupConflict(t *testing.T) {
	newWorld(t).superviseCopies()
	scenarios := conflictsAndCopies()
	maps.Copy(scenarios, refusedGroups())
	for name, scenario := range testenv.Sample(t, scenarios) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(newGroupConflict(t))
		})
	}
}

// conflictsAndCopies returns scenarios in which versions are copied.
func conflictsAndCopies() map[string]func(*groupConflict) {
	return map[string]func(*groupConflict){
		"K1 K10 the loser is never Pending and never copied": func(c *groupConflict) {
			c.install()
			right := c.groupIn(c.r, "right", c.m, c.r)
			c.Create(right)
			c.processed(right)
			pot := c.provider(c.r, loser)
			c.Create(pot)
			c.fails(conflicts)
			c.Expect(c.Delete(c.T.Context(), pot)).To(gomega.Succeed())
			c.EventuallyGone(pot)
			c.seen.upTo(c.T, c.world)
			c.neverCopied()
			c.copied(winner, c.m)
		},
		"K2 the loser is installed and copied when it may": func(c *groupConflict) {
			c.install()
			right := c.groupIn(c.r, "right", c.m, c.r)
			c.Create(right)
			c.processed(right)
			c.Create(c.provider(c.r, loser))
			c.fails(conflicts)
			c.change(c.left, func() { c.left.Spec.TargetNamespaces = []string{c.l} })
			csv := c.inR().succeeds(loser)
			var said []string
			for _, condition := range csv.Status.Conditions {
				said = append(said, condition.Message)
			}
			c.Expect(said).To(gomega.ContainElement("OperatorGroup no longer intersecting with conflicting owner"))
			c.copied(loser, c.m)
		},
		"K3 the younger one loses its copies and copied roles": func(c *groupConflict) {
			n := controlplane.Namespace(c.T)
			c.install()
			right := c.groupIn(c.r, "right", n, c.r)
			pot := c.provider(c.r, loser)
			asks(pot)
			sa, role, binding := c.inR().permissions("pot.v1-role")
			role.Labels, binding.Labels = c.inR().owner(loser), c.inR().owner(loser)
			c.Create(right, sa, role, binding, pot)
			c.inR().succeeds(loser)
			c.copied(loser, n)
			copiedRole := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: role.Name}}
			copiedBinding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: role.Name}}
			c.Eventually(func() error {
				return c.Get(c.T.Context(), client.ObjectKeyFromObject(copiedBinding), copiedBinding)
			}).Should(gomega.Succeed())
			kettle := c.copied(winner, c.m)

			c.change(right, func() { right.Spec.TargetNamespaces = []string{c.m, n, c.r} })
			c.inR().reaches(loser, operatorsv1alpha1.CSVPhaseFailed, conflicts)
			c.EventuallyGone(copiedBinding)
			c.EventuallyGone(copiedRole)
			c.EventuallyGone(&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: n, Name: loser}})
			c.seen.upTo(c.T, c.world)
			c.neverCopied()
			c.Expect(c.copied(winner, c.m).UID).To(gomega.Equal(kettle.UID))
		},
		"K12 a version without a conflict": func(c *groupConflict) {
			right := c.groupIn(c.r, "right", c.m, c.r)
			c.Create(right)
			c.processed(right)
			c.Create(c.provider(c.r, loser))
			csv := c.inR().succeeds(loser)
			c.Expect(csv.Status.Conditions[0].Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhasePending))
			c.Expect(csv.Status.Conditions[0].Message).To(gomega.Equal("requirements not yet checked"))
			c.copied(loser, c.m)
		},
	}
}

// refusedGroups returns scenarios in which a version fails because of its OperatorGroup.
func refusedGroups() map[string]func(*groupConflict) {
	return map[string]func(*groupConflict){
		"K4 a fixed list": func(c *groupConflict) {
			right := c.groupIn(c.r, "right", c.m, c.r)
			right.Spec.StaticProvidedAPIs = true
			c.Create(right)
			c.processed(right)
			c.Create(c.provider(c.r, loser))
			c.fails(isFixed)
			deployments := &appsv1.DeploymentList{}
			c.Expect(c.List(c.T.Context(), deployments, client.InNamespace(c.r))).To(gomega.Succeed())
			c.Expect(deployments.Items).To(gomega.BeEmpty())
		},
		"K5 a copy of the loser goes": func(c *groupConflict) {
			c.install()
			right := c.groupIn(c.r, "right", c.m, c.r)
			c.Create(right)
			c.processed(right)
			c.Create(c.provider(c.r, loser))
			c.fails(conflicts)
			left := c.provider(c.m, loser)
			left.Labels = map[string]string{api.LabelCopiedFrom: c.r}
			c.Create(left)
			c.EventuallyGone(left)
		},
		"K8 an install mode that is not supported": func(c *groupConflict) {
			right := c.groupIn(c.r, "right", c.m, c.r)
			c.Create(right)
			c.processed(right)
			pot := c.provider(c.r, loser)
			pot.Spec.InstallModes = pot.Spec.InstallModes[:1]
			c.Create(pot)
			c.fails(operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup)
		},
		"K9 no group": func(c *groupConflict) {
			c.Create(c.provider(c.r, loser))
			c.fails(operatorsv1alpha1.CSVReasonNoOperatorGroup)
		},
		"K9 two groups": func(c *groupConflict) {
			one, two := c.groupIn(c.r, "one", c.m, c.r), c.groupIn(c.r, "two", c.m, c.r)
			c.Create(one, two)
			c.processed(one)
			c.processed(two)
			c.Create(c.provider(c.r, loser))
			c.fails(operatorsv1alpha1.CSVReasonTooManyOperatorGroups)
		},
	}
}

// TestGroupConflictBeforeAStart has a copy of the loser from an earlier release, of a version that
// it left Pending (K5).
func TestGroupConflictBeforeAStart(t *testing.T) {
	c := newGroupConflict(t)
	stop := c.superviseCopies()
	c.install()
	right := c.groupIn(c.r, "right", c.m, c.r)
	c.Create(right)
	c.processed(right)
	stop()
	pot, copied := c.provider(c.r, loser), c.provider(c.m, loser)
	c.Create(pot)
	pot.Status.Phase, pot.Status.Reason = operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown
	c.Expect(c.Status().Update(t.Context(), pot)).To(gomega.Succeed())
	copied.Labels = map[string]string{api.LabelCopiedFrom: c.r}
	c.Create(copied)
	kettle := c.copied(winner, c.m)
	c.superviseCopies()
	c.EventuallyGone(copied)
	c.inR().reaches(loser, operatorsv1alpha1.CSVPhaseFailed, conflicts)
	c.Expect(c.copied(winner, c.m).UID).To(gomega.Equal(kettle.UID))
	// Another operator of that name can be installed.
	c.Create(c.provider(c.m, loser))
}

// TestGroupConflictBeforeTheGroupIsProcessed runs no controller of groups at first (K7).
func TestGroupConflictBeforeTheGroupIsProcessed(t *testing.T) {
	c := newGroupConflict(t)
	c.superviseWith(nil, func(mgr ctrl.Manager) error { return copiedcsv.Setup(mgr, copiedcsv.Options{}) })
	right := c.groupIn(c.r, "right", c.m, c.r)
	annotations := map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: fmt.Sprintf("Cup.v1.field%s.example.com", c.l)}
	c.left.Annotations = annotations
	c.Create(c.left, right, c.provider(c.r, loser))
	c.Consistently(func() operatorsv1alpha1.ClusterServiceVersionPhase { return c.inR().csv(loser).Status.Phase }).
		WithTimeout(5 * time.Second).Should(gomega.Or(gomega.BeEmpty(), gomega.Equal(operatorsv1alpha1.CSVPhasePending)))
	// The winner's group is first: without a controller of groups, nothing wakes the loser after its own group.
	for _, one := range []struct {
		group   *operatorsv1.OperatorGroup
		targets []string
	}{{c.left, []string{c.l, c.m}}, {right, []string{c.m, c.r}}} {
		group, targets := one.group, one.targets
		slices.Sort(targets)
		c.Eventually(func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
				return err
			}
			group.Status.Namespaces, group.Status.LastUpdated = targets, new(metav1.Now())
			return c.Status().Update(t.Context(), group)
		}).Should(gomega.Succeed())
	}
	c.inR().reaches(loser, operatorsv1alpha1.CSVPhaseFailed, conflicts)
	c.seen.upTo(t, c.world)
	c.neverCopied()
}

// TestGroupConflictWithoutCopies disables copies except for a protected namespace (K11).
func TestGroupConflictWithoutCopies(t *testing.T) {
	c := newGroupConflict(t)
	config := &operatorsv1.OLMConfig{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	config.Spec.Features = &operatorsv1.Features{DisableCopiedCSVs: new(true)}
	c.Create(config)
	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), config) })
	c.superviseCopies(func(o *copiedcsv.Options) { o.ProtectedNamespaces = []string{c.m} })
	c.left.Spec.TargetNamespaces = nil
	right := c.groupIn(c.r, "right")
	c.Create(c.left, right, c.provider(c.l, winner))
	c.succeeds(winner)
	c.copied(winner, c.m)
	c.processed(right)
	c.Create(c.provider(c.r, loser))
	c.fails(conflicts)
	c.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: winner}, &operatorsv1alpha1.ClusterServiceVersion{})).NotTo(gomega.Succeed())
}
