package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/sampling"
)

// The tested installation: the first version, then two updates, one step each.
const (
	samplePackage = "lantern"
	firstCSV      = "lantern.v1.0.0"
	lastCSV       = "lantern.v1.2.0"
	versions      = 3
)

// defaultKills is the number of moments, spread evenly over the changes of an undisturbed run, at
// which a leader is killed without LEADER_KILLS.
const defaultKills = 12

// TestKilledLeader kills the leading supervisor at many moments of an installation with two
// updates. The standby must finish it with the same result as without the kill: no object may ever
// have a content that it did not have in the undisturbed run, and no InstallPlan may be created
// twice.
func TestKilledLeader(t *testing.T) {
	c := newClient(t)
	catalog, err := buildcache.SourceDir("examples/catalog")
	if err != nil {
		t.Fatal(err)
	}
	create(t, c, namespaceObject("olm"), catalogSource("olm", "sample", programs.Serve(t, filepath.Join(bin, "registry"), catalog)))

	crew := map[string]*process.Process{}
	for _, identity := range []string{"first-a", "first-b"} {
		crew[identity] = startSupervisor(t, identity)
	}
	undisturbed := install(t, c, "undisturbed")
	awaitInstalled(t, c, "undisturbed")
	undisturbed.awaitPlans(t)
	want := undisturbed.history("undisturbed")
	wantPhases := undisturbed.phasesOf("InstallPlan")
	t.Logf("an undisturbed run makes %d changes", undisturbed.count())

	kills := sampling.Number(t, "LEADER_KILLS", defaultKills, 1)
	for i := range kills {
		moment := 1 + i*undisturbed.count()/kills
		namespace := fmt.Sprintf("killed-at-%d", moment)
		t.Run(namespace, func(t *testing.T) {
			got := install(t, c, namespace)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := got.after(ctx, moment); err != nil {
				t.Fatal(err)
			}
			killed := leader(t, c)
			if err := crew[killed].Kill(); err != nil {
				t.Fatal(err)
			}
			delete(crew, killed)
			awaitInstalled(t, c, namespace)
			got.awaitPlans(t)
			if diff := cmp.Diff(want, got.history(namespace)); diff != "" {
				t.Errorf("contents that objects have had (-undisturbed +killed):\n%s", diff)
			}
			if diff := cmp.Diff(wantPhases, got.phasesOf("InstallPlan")); diff != "" {
				t.Errorf("plans and their phases (-undisturbed +killed):\n%s", diff)
			}
			checkPlans(t, c, namespace)
		})
		if t.Failed() {
			return
		}
		next := fmt.Sprintf("after-%d", moment)
		crew[next] = startSupervisor(t, next)
	}
}

// awaitPlans waits until every InstallPlan is recorded as complete. A version may succeed before a
// successor has checked the completed steps.
func (r *recorder) awaitPlans(t *testing.T) {
	t.Helper()
	eventually(t, "all plans to be complete", func(context.Context) (bool, string) {
		plans := r.phasesOf("InstallPlan")
		complete := 0
		for _, phases := range plans {
			if len(phases) > 0 && phases[len(phases)-1] == string(operatorsv1alpha1.InstallPlanPhaseComplete) {
				complete++
			}
		}
		return complete == versions && complete == len(plans), fmt.Sprint(plans)
	})
}

// install subscribes to the sample package in its own namespace.
func install(t *testing.T, c client.WithWatch, namespace string) *recorder {
	t.Helper()
	create(t, c, namespaceObject(namespace))
	r := record(t, c, namespace)
	create(t, c, operatorGroup(namespace), subscription(namespace, samplePackage, firstCSV, "sample", "olm"))
	return r
}

// checkPlans checks that every InstallPlan is complete, has one owner, the Subscription, and that
// each step is done.
func checkPlans(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := c.List(t.Context(), plans, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(plans.Items) != versions {
		t.Errorf("%d InstallPlans, want one for each of the three versions", len(plans.Items))
	}
	for _, p := range plans.Items {
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			t.Errorf("InstallPlan %s is in phase %q", p.Name, p.Status.Phase)
		}
		if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].Name != samplePackage {
			t.Errorf("InstallPlan %s has the owners %v, want the Subscription", p.Name, p.OwnerReferences)
		}
		for _, s := range p.Status.Plan {
			if s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent {
				t.Errorf("step %s %s of InstallPlan %s is %s", s.Resource.Kind, s.Resource.Name, p.Name, s.Status)
			}
		}
	}
}
