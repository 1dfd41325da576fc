package migration

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// Verb is what a handback does to an object.
type Verb string

// The verbs.
const (
	// Create creates a deleted object again.
	Create Verb = "Recreate"
	// ReplaceContent restores the recorded content of an object.
	ReplaceContent Verb = "Restore"
	// Delete deletes an object that OLM does not create.
	Delete Verb = "Delete"
	// RemoveMetadata removes labels, annotations and finalizers that OLM does not know.
	RemoveMetadata Verb = "RemoveLabels"
	// RemoveConditions removes conditions that OLM does not know.
	RemoveConditions Verb = "RemoveConditions"
)

// Text returns the verb in words, for users.
func (v Verb) Text() string {
	switch v {
	case Create:
		return "recreate"
	case ReplaceContent:
		return "restore content"
	case RemoveMetadata:
		return "remove labels"
	case RemoveConditions:
		return "remove conditions"
	case Delete:
		return "delete"
	default:
		return string(v)
	}
}

// Operation is the change of a handback to one object.
type Operation struct {
	Verb      Verb   `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// live is the live object, and want the object to write: nil for Create and Delete respectively.
	live, want *unstructured.Unstructured
	// keys are the labels, annotations and finalizers to remove.
	keys apply.MetadataKeys
}

// isOfCatalog reports whether an operation deletes what serves a catalog until the pod of OLM is ready.
func (op Operation) isOfCatalog() bool { return op.Verb == Delete && isForCatalog(op.live) }

// deletesReplicas reports whether an operation deletes the replicas of a catalog.
func (op Operation) deletesReplicas() bool { return op.isOfCatalog() && op.Kind == "Deployment" }

// followsStart reports whether an operation is done while OLM starts, because its object does not change what OLM does:
// OLM also restores the roles of OperatorConditions. It does not use bindings of other names. It copies annotations of versions
// and catalogs to pods, and no other metadata. A finalizer is removed before, since a write of OLM would be a conflict.
func (op Operation) followsStart() bool {
	switch op.Verb {
	case ReplaceContent:
		return ownerOf(op.want, "OperatorCondition") != nil
	case Delete:
		return isBinding(op.Kind)
	case RemoveMetadata:
		return len(op.keys.Finalizers) == 0 && !op.changesPods()
	case Create, RemoveConditions:
		return false
	default:
		return false
	}
}

// changesPods reports whether an operation removes annotations that OLM copies to pods.
func (op Operation) changesPods() bool {
	if op.live.GroupVersionKind().Group != operatorsv1alpha1.GroupName || op.live.GetLabels()[api.LabelCopiedFrom] != "" {
		return false
	}
	copied := op.Kind == operatorsv1alpha1.ClusterServiceVersionKind || op.Kind == operatorsv1alpha1.CatalogSourceKind
	return copied && len(op.keys.Annotations) > 0
}

// precedesStart reports whether an operation is done before OLM starts.
func (op Operation) precedesStart() bool { return op.Step() == RestoreObjects }

// Step returns the step of a handback that does the operation.
func (op Operation) Step() Action {
	switch {
	case op.isOfCatalog():
		return DeleteReplicas
	case op.followsStart():
		return RemoveLabels
	default:
		return RestoreObjects
	}
}

// batches divides operations into those that are done at the same time. The pods of catalogs need their accounts. What
// replaces an object is there before that is deleted. A catalog may lose both labels and conditions.
func batches(operations []Operation) [][]Operation {
	const accounts, content, metadata, conditions = 0, 1, 2, 3
	all := make([][]Operation, conditions+1)
	for _, op := range operations {
		at := content
		switch {
		case op.Verb == Create && op.Kind == "ServiceAccount":
			at = accounts
		case op.Verb == Delete, op.Verb == RemoveMetadata:
			at = metadata
		case op.Verb == RemoveConditions:
			at = conditions
		}
		all[at] = append(all[at], op)
	}
	return all
}

func (op Operation) write(ctx context.Context, c client.Client) error {
	switch op.Verb {
	case Create:
		err := apply.Create(ctx, c, op.want, fieldOwner)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	case ReplaceContent:
		return apply.Replace(ctx, c, op.want, fieldOwner)
	case RemoveMetadata:
		return client.IgnoreNotFound(apply.RemoveMetadata(ctx, c, op.live, op.keys))
	case RemoveConditions:
		return client.IgnoreNotFound(apply.PatchStatus(ctx, c, op.want, client.MergeFrom(op.live), fieldOwner))
	case Delete:
		return client.IgnoreNotFound(deleteObject(ctx, c, op.live))
	default:
		return fmt.Errorf("unknown verb %q", op.Verb)
	}
}

func newOperation(verb Verb, live, want *unstructured.Unstructured) Operation {
	o := live
	if o == nil {
		o = want
	}
	return Operation{Verb: verb, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), live: live, want: want}
}

// removal returns the operation that removes metadata from an object.
func removal(live *unstructured.Unstructured, keys apply.MetadataKeys) Operation {
	op := newOperation(RemoveMetadata, live, nil)
	op.keys = keys
	return op
}
