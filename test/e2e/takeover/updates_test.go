package takeover_test

import (
	"context"
	"errors"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv"
)

// beginsUpdates subscribes to two operators in one namespace, and waits until OLM has installed them and begun to
// update both with one InstallPlan.
func beginsUpdates(s *olmScene) {
	s.t.Helper()
	s.subscribe("gong", nil, "gongs")
	s.follow("chime", nil)
	for _, pkg := range []string{"gong", "chime"} {
		s.reaches(pkg, pkg+".v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
		s.shown(pkg, "the installation", isAtLatest(pkg+".v1.0.0"))
	}
	s.serve("gong", "chime")
	// OLM reads the catalog again when the connection is back.
	s.server.Stop()
	s.server.Restart()
	for _, pkg := range []string{"gong", "chime"} {
		s.unpacks(pkg, "1.1.0")
	}
	testenv.Until(s.t, patience, "OLM to begin the updates", func(ctx context.Context) string {
		plans, versions := &operatorsv1alpha1.InstallPlanList{}, &operatorsv1alpha1.ClusterServiceVersionList{}
		if err := errors.Join(s.List(ctx, plans, client.InNamespace("gongs")), s.List(ctx, versions, client.InNamespace("gongs"))); err != nil {
			return err.Error()
		}
		// OLM writes the states of steps only when none fails.
		begun := slices.ContainsFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
			return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling && len(p.Spec.ClusterServiceVersionNames) == 2
		})
		if !begun || !slices.ContainsFunc(versions.Items, func(v operatorsv1alpha1.ClusterServiceVersion) bool { return v.Spec.Replaces != "" }) {
			return text(s.t, plans.Items)
		}
		return ""
	})
}

// finishesUpdates waits until the supervisor has finished the updates that OLM began.
func finishesUpdates(s *olmScene) {
	s.t.Helper()
	for _, pkg := range []string{"gong", "chime"} {
		s.reaches(pkg, pkg+".v1.1.0", operatorsv1alpha1.CSVPhaseSucceeded)
		s.shown(pkg, "the update that OLM began", isAtLatest(pkg+".v1.1.0"))
		testenv.Until(s.t, patience, "the former version of "+pkg+" to be deleted", func(ctx context.Context) string {
			v := &operatorsv1alpha1.ClusterServiceVersion{}
			if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespaceOf(pkg), Name: pkg + ".v1.0.0"}, v); !apierrors.IsNotFound(err) {
				return string(v.Status.Phase)
			}
			return ""
		})
	}
}
