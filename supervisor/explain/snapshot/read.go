package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// pageSize is the maximum number of objects in one answer of the API server.
const pageSize = 500

// UnreachableError means that the API server answered no request.
type UnreachableError struct{ Err error }

// Error returns the message.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the API server does not answer: %v", e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// why returns the reason of an error in a word.
func why(err error) string {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return explain.WhyForbidden
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return explain.WhyNotInstalled
	default:
		return explain.WhyUnreachable
	}
}

// heard records whether the API server answered.
func (t *taking) heard(err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &status), apimeta.IsNoMatchError(err):
		t.answered = true
	case t.failure == nil:
		t.failure = err
	}
}

// unseen records what could not be read.
func (t *taking) unseen(resource, namespace string, err error) {
	t.observation.Unseen = append(t.observation.Unseen, explain.Unseen{
		Resource: resource, Namespace: namespace, Why: why(err), Message: err.Error(),
	})
}

// list reads the objects of a kind in some namespaces, or in all if none are given. It records namespaces that
// may not be read, and reads the others.
func list[T any](ctx context.Context, t *taking, namespaces []string, kind func() page[T], opts ...client.ListOption) []T {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []T
	for _, namespace := range namespaces {
		items, err := pagesOf(ctx, t.reader, kind, append(slices.Clip(opts), client.InNamespace(namespace)))
		t.heard(err)
		all = append(all, items...)
		if err == nil {
			continue
		}
		t.unseen(kind().resource, namespace, err)
		if why(err) == explain.WhyNotInstalled {
			break // nor is it installed in any other namespace
		}
	}
	return all
}

func pagesOf[T any](ctx context.Context, reader client.Reader, kind func() page[T], opts []client.ListOption) ([]T, error) {
	var all []T
	next := ""
	for {
		p := kind()
		err := reader.List(ctx, p.list, append(slices.Clip(opts), client.Limit(pageSize), client.Continue(next))...)
		if apierrors.IsResourceExpired(err) && next != "" {
			// The list took longer than the API server keeps its state.
			all, next = nil, ""
			continue
		}
		if err != nil {
			return all, err //nolint:wrapcheck // it is noted with the resource and the namespace
		}
		all = append(all, p.items()...)
		if next = p.list.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// notCopied selects objects that are not copies.
func notCopied() labels.Selector {
	original, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) //nolint:forbidigo // the key is a constant, and valid
	}
	return labels.NewSelector().Add(*original)
}

// terminating reads the namespaces that may be in deletion. These contain a Subscription or a version, or a
// Subscription without an OperatorGroup, which may have been deleted first. A namespace that may not be read is
// not recorded, since it would only clarify other findings.
func (t *taking) terminating(ctx context.Context) {
	grouped, names := map[string]bool{}, map[string]bool{}
	for i := range t.observation.OperatorGroups {
		if g := &t.observation.OperatorGroups[i]; g.DeletionTimestamp.IsZero() {
			grouped[g.Namespace] = true
		}
	}
	for i := range t.observation.Subscriptions {
		if sub := &t.observation.Subscriptions[i]; !sub.DeletionTimestamp.IsZero() || !grouped[sub.Namespace] {
			names[sub.Namespace] = true
		}
	}
	for i := range t.observation.Versions {
		if csv := &t.observation.Versions[i]; !csv.DeletionTimestamp.IsZero() {
			names[csv.Namespace] = true
		}
	}
	for i := range t.observation.Terminating {
		delete(names, t.observation.Terminating[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var namespace corev1.Namespace
		err := t.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		t.heard(err)
		if err == nil && !namespace.DeletionTimestamp.IsZero() {
			t.observation.Terminating = append(t.observation.Terminating, namespace)
		}
	}
}

// definitions reads the CustomResourceDefinitions that versions name and that are not healthy. In some
// clusters, all definitions take many megabytes.
func (t *taking) definitions(ctx context.Context) {
	const resource = "customresourcedefinitions.apiextensions.k8s.io"
	names := map[string]bool{}
	for i := range t.observation.Versions {
		csv := &t.observation.Versions[i]
		if csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded && csv.DeletionTimestamp == nil {
			continue
		}
		definitions := csv.Spec.CustomResourceDefinitions
		for _, d := range slices.Concat(definitions.Owned, definitions.Required) {
			names[d.Name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var definition apiextensionsv1.CustomResourceDefinition
		err := t.reader.Get(ctx, client.ObjectKey{Name: name}, &definition)
		t.heard(err)
		switch {
		case err == nil:
			t.observation.Definitions = append(t.observation.Definitions, definition)
		case apierrors.IsNotFound(err):
		default:
			t.unseen(resource, "", err)
			return
		}
	}
}

// leases reads the Leases of supervisors in all namespaces, or in the namespaces where they may be.
func (t *taking) leases(ctx context.Context, o Options) {
	const resource = "leases.coordination.k8s.io"
	everywhere, err := pagesOf(ctx, t.reader, leases, []client.ListOption{client.MatchingFields{"metadata.name": api.LeaseName}})
	t.heard(err)
	if err == nil {
		t.observation.Leases = everywhere
		return
	}
	for _, namespace := range o.SupervisorNamespaces {
		var lease coordinationv1.Lease
		err := t.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: api.LeaseName}, &lease)
		if err == nil {
			t.observation.Leases = append(t.observation.Leases, lease)
		}
	}
	if len(t.observation.Leases) == 0 {
		t.unseen(resource, "", err)
	}
}
