package takeover_test

import (
	"context"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/testenv"
)

// proposes takes over while OLM has an InstallPlan that waits for approval and one in progress.
// Both are recreated. The waiting one still waits and can be approved.
func (s *scene) proposes() *process.Process {
	s.t.Helper()
	w := olmobjects.New(s.Client)
	for _, pkg := range []string{"horn", "bell"} {
		s.publish(pkg, "1.0.0")
		approval := operatorsv1alpha1.ApprovalAutomatic
		if pkg == "horn" {
			approval = operatorsv1alpha1.ApprovalManual
		}
		if err := w.Propose(s.t.Context(), olmobjects.Operator{
			Namespace: pkg + "s", Package: pkg, Channel: "stable", Catalog: "shop",
			Version: csv(pkg, "1.0.0", false), Semver: "1.0.0", Approval: approval,
			Definitions: []*apiextensionsv1.CustomResourceDefinition{crd(pkg)},
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	waits := s.waitingOf("horns")
	s.shows("takeover", "with the same content and other names: horns/"+waits)
	running := s.supervise("again", "--takeover")
	s.installed("bells", "bell.v1.0.0")
	plan := s.waits("horns")
	s.shows("handback", "horns/"+waits)
	before := plan.DeepCopy()
	plan.Spec.Approved = true
	if err := s.Patch(s.t.Context(), plan, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
	s.installed("horns", "horn.v1.0.0")
	return running
}

// waitingOf returns the name of OLM's InstallPlan that waits in a namespace.
func (s *scene) waitingOf(namespace string) string {
	s.t.Helper()
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := s.List(s.t.Context(), plans, client.InNamespace(namespace)); err != nil {
		s.t.Fatal(err)
	}
	if len(plans.Items) != 1 {
		s.t.Fatalf("%d plans, want that which waits", len(plans.Items))
	}
	return plans.Items[0].Name
}

// waits returns the InstallPlan of the namespace's Subscription when it waits for approval and is the
// only one that does.
func (s *scene) waits(namespace string) *operatorsv1alpha1.InstallPlan {
	s.t.Helper()
	var found *operatorsv1alpha1.InstallPlan
	testenv.Until(s.t, patience, "one plan to wait for approval", func(ctx context.Context) string {
		sub := &operatorsv1alpha1.Subscription{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: strings.TrimSuffix(namespace, "s")}, sub); err != nil {
			return err.Error()
		}
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := s.List(ctx, plans, client.InNamespace(namespace)); err != nil {
			return err.Error()
		}
		var waiting []string
		for i := range plans.Items {
			if p := &plans.Items[i]; p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
				waiting, found = append(waiting, p.Name), p
			}
		}
		// OLM's InstallPlan names the ConfigMap of the unpacked bundle, which is not read here.
		if len(waiting) != 1 || sub.Status.InstallPlanRef == nil || sub.Status.InstallPlanRef.Name != waiting[0] ||
			strings.Contains(found.Status.Plan[0].Resource.Manifest, "catalogSourceNamespace") {
			return fmt.Sprintf("plans %v wait, the Subscription names %v", waiting, sub.Status.InstallPlanRef)
		}
		return ""
	})
	return found
}
