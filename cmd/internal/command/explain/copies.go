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

// copies are versions that are copies, with the namespaces of what they are copies of.
type copies map[explain.Ref]string

// originals finds out which of some subjects are copies. One that may not be read is
// explained as what it is called.
func originals(ctx context.Context, reader client.Reader, subjects []explain.Ref) copies {
	found := copies{}
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

// namespaces are those of the originals.
func (c copies) namespaces() []string { return slices.Compact(slices.Sorted(maps.Values(c))) }

// explain explains a subject, and the original in place of a copy.
func (c copies) explain(o *explain.Observation, subject explain.Ref) explain.Explanation {
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
