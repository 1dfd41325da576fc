package operator

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// secretRefs is the set of Secrets that other objects refer to. Listing or watching Secrets requires
// permission to read all of them, which the supervisor does not request. An operator's Secrets are
// known by name, because its Deployments mount them or its InstallPlans contain them.
type secretRefs map[client.ObjectKey]bool

// add adds the Secrets that an object refers to.
func (m secretRefs) add(o client.Object) {
	var names []string
	switch o := o.(type) {
	case *appsv1.Deployment:
		// A Deployment that is too large for the cache has no volumes here. It is not read for
		// them: a user with permission to create Deployments in one namespace could otherwise cause
		// hundreds of reads.
		names = volumeSecrets(o.Spec.Template.Spec.Volumes)
	case *operatorsv1alpha1.InstallPlan:
		names = stepSecrets(o)
	}
	for _, name := range names {
		m[client.ObjectKey{Namespace: o.GetNamespace(), Name: name}] = true
	}
}

// volumeSecrets returns the names of the Secrets in volumes.
func volumeSecrets(volumes []corev1.Volume) []string {
	var names []string
	for i := range volumes {
		if secret := volumes[i].Secret; secret != nil {
			names = append(names, secret.SecretName)
		}
		if volumes[i].Projected == nil {
			continue
		}
		for _, part := range volumes[i].Projected.Sources {
			if part.Secret != nil {
				names = append(names, part.Secret.Name)
			}
		}
	}
	return names
}

// stepSecrets returns the names of the Secrets in the steps of a plan.
func stepSecrets(p *operatorsv1alpha1.InstallPlan) []string {
	var names []string
	for _, step := range p.Status.Plan {
		if step == nil {
			continue
		}
		kind := plansteps.ObjectKind(schema.GroupKind{Group: step.Resource.Group, Kind: step.Resource.Kind})
		if kind == (schema.GroupKind{Kind: "Secret"}) {
			names = append(names, step.Resource.Name)
		}
	}
	return names
}

// secrets reads the metadata of the Secrets that exist.
func (m readers) secrets(ctx context.Context, refs secretRefs) ([]*metav1.PartialObjectMetadata, error) {
	var found []*metav1.PartialObjectMetadata
	for key := range refs {
		secret := secretKind().metadata()
		err := m.live.Get(ctx, key, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the metadata of Secret %s: %w", key, err)
		}
		found = append(found, secret)
	}
	return found, nil
}

// secretsOf reads the metadata of the Secrets that the Deployments and plans of a version refer
// to.
func (m readers) secretsOf(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) ([]*metav1.PartialObjectMetadata, error) {
	refs := secretRefs{}
	for _, k := range kinds() {
		switch k.object().(type) {
		case *appsv1.Deployment, *operatorsv1alpha1.InstallPlan:
		default:
			continue
		}
		err := m.each(ctx, k, func(o client.Object) {
			p, isPlan := o.(*operatorsv1alpha1.InstallPlan)
			if (isPlan && slices.Contains(p.Spec.ClusterServiceVersionNames, csv.Name)) || owns(csv, o) {
				refs.add(o)
			}
		}, client.InNamespace(csv.Namespace))
		if err != nil {
			return nil, err
		}
	}
	return m.secrets(ctx, refs)
}
