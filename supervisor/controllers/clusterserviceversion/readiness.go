package clusterserviceversion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

// progressDeadlineExceeded is the reason with which the Deployment controller reports that a
// rollout has failed.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

// components compares the desired Deployments with the existing ones. For each kind of problem, the
// first Deployment in declared order counts. invalid states why the desired Deployments are
// unknown; empty when they are known.
func components(csv *operatorsv1alpha1.ClusterServiceVersion, desired []*appsv1.Deployment,
	live map[string]*appsv1.Deployment, others versions.List, invalid string,
) phase.Components {
	c := phase.Components{Invalid: invalid}
	for _, want := range desired {
		have := live[want.Name]
		if have == nil {
			c.Stale = cmp.Or(c.Stale, olmtext.DeploymentMissing(want.Name))
			continue
		}
		c.Present = c.Present || ownership.Names(have.Labels, csv)
		if owner := foreignOwner(csv, have, others); owner != "" {
			c.OwnerConflict = cmp.Or(c.OwnerConflict, fmt.Sprintf("deployment %q exists and belongs to %s; delete or rename one of the two", want.Name, owner))
			continue
		}
		if stale := staleHash(csv, have, want); stale != "" && invalid == "" {
			c.Changed = c.Changed || c.Stale == ""
			c.Stale = cmp.Or(c.Stale, stale)
			continue
		}
		c = withRollout(c, have)
	}
	return c
}

// staleHash returns how a Deployment of a version is not the wanted one; empty if it is.
func staleHash(csv *operatorsv1alpha1.ClusterServiceVersion, have, want *appsv1.Deployment) string {
	switch before, after := have.Labels[api.LabelDeploymentHash], want.Labels[api.LabelDeploymentHash]; before {
	case after:
		return ""
	case "":
		return olmtext.DeploymentWithoutHash(have.Name)
	default:
		return cmp.Or(staleAnnotation(csv, have.Spec.Template.Annotations, want.Spec.Template.Annotations), olmtext.DeploymentChanged(before, after))
	}
}

// staleAnnotation returns how the annotations of pods differ from those of their version; empty if they do not.
func staleAnnotation(csv *operatorsv1alpha1.ClusterServiceVersion, have, want map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(csv.Annotations)) {
		value, wanted := want[key]
		if !wanted || value != csv.Annotations[key] {
			continue
		}
		switch found, has := have[key]; {
		case len(have) == 0:
			return olmtext.NoAnnotations
		case !has:
			return olmtext.AnnotationMissing(key)
		case found != value:
			return olmtext.AnnotationChanged(key, value, found)
		}
	}
	return ""
}

// withRollout returns the state of components with that of one more Deployment.
func withRollout(c phase.Components, d *appsv1.Deployment) phase.Components {
	waiting, exhausted := rollout(d)
	switch {
	case exhausted:
		c.DeadlineExceeded = cmp.Or(c.DeadlineExceeded, olmtext.DeploymentTimedOut(d.Name, waiting))
	case waiting != "":
		c.Waiting = cmp.Or(c.Waiting, olmtext.DeploymentNotReady(d.Name, waiting))
	}
	return c
}

// foreignOwner returns the owner of a Deployment that csv must not take over. It returns "" for its
// own, for one of a related version, and for one whose owner is gone.
func foreignOwner(csv *operatorsv1alpha1.ClusterServiceVersion, d *appsv1.Deployment, others versions.List) string {
	if slices.ContainsFunc(d.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == csv.UID }) {
		return ""
	}
	owner, ok := ownership.Of(d.Labels)
	if !ok {
		return "no ClusterServiceVersion"
	}
	if owner.Name == csv.Name || others.Named(owner.Name) == nil {
		return ""
	}
	for _, relative := range others.Adoptable(csv) {
		if relative.Name == owner.Name {
			return ""
		}
	}
	return "csv " + owner.Name
}

// rollout returns what a Deployment waits for; empty when it is ready. exhausted is true when the
// Deployment controller has given up.
func rollout(d *appsv1.Deployment) (waiting string, exhausted bool) {
	if d.Generation > d.Status.ObservedGeneration {
		return olmtext.NotObserved(d.Name), false
	}
	if c := deploymentCondition(d, appsv1.DeploymentProgressing); c != nil && c.Reason == progressDeadlineExceeded {
		return olmtext.DeadlineExceeded(d.Name), true
	}
	if n := d.Status.Replicas - d.Status.UpdatedReplicas; n > 0 {
		return olmtext.OutdatedReplicas(d.Name, n), false
	}
	c := deploymentCondition(d, appsv1.DeploymentAvailable)
	switch {
	case c == nil:
		return olmtext.NoAvailability(d.Name), false
	case c.Status != corev1.ConditionTrue:
		return olmtext.NotAvailable(d.Name, c.Message), false
	}
	return "", false
}

func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}
