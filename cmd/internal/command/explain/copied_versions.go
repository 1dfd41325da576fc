package explain

import (
	"context"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/explain"
)

// copiedVersions maps copied ClusterServiceVersions to the namespaces of their originals.
type copiedVersions map[explain.Ref]string

// findCopiedVersions returns the subjects that are copied ClusterServiceVersions. A subject that cannot be
// read is not among them.
func findCopiedVersions(ctx context.Context, reader client.Reader, subjects []explain.Ref) copiedVersions {
	found := copiedVersions{}
	for _, subject := range subjects {
		if subject.Kind != explain.KindVersion {
			continue
		}
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
		if err := reader.Get(ctx, client.ObjectKey{Namespace: subject.Namespace, Name: subject.Name}, meta); err != nil {
			continue
		}
		if from := meta.Labels[operatorsv1alpha1.CopiedLabelKey]; from != "" {
			found[subject] = from
		}
	}
	return found
}

// namespaces returns the namespaces of the originals.
func (c copiedVersions) namespaces() []string { return slices.Compact(slices.Sorted(maps.Values(c))) }

// explain explains a subject. In place of a copy it explains the original.
func (c copiedVersions) explain(o *explain.ClusterState, subject explain.Ref) explain.Explanation {
	from, copied := c[subject]
	if !copied {
		return explain.Object(o, subject)
	}
	original := subject
	original.Namespace = from
	e := explain.Object(o, original)
	e.Summary += " (" + subject.Namespace + "/" + subject.Name + " is a copy of it)"
	return e
}
