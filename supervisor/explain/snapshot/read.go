package snapshot

import (
	"context"
	"errors"
	"maps"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// pageSize is the maximum number of objects in one answer of the API server.
const pageSize = 500

// reasonOf returns the reason of an error in a word.
func reasonOf(err error) string {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return explain.UnreadableForbidden
	case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return explain.UnreadableNotInstalled
	default:
		return explain.UnreadableUnreachable
	}
}

// recordAnswer records whether the API server answered.
func (c *collector) recordAnswer(err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil, errors.As(err, &status), apimeta.IsNoMatchError(err):
		c.answered = true
	case c.failure == nil:
		c.failure = err
	}
}

// recordUnreadable records what could not be read.
func (c *collector) recordUnreadable(resource, namespace string, err error) {
	c.state.Unreadable = append(c.state.Unreadable, explain.Unreadable{
		Resource: resource, Namespace: namespace, Reason: reasonOf(err), Message: err.Error(),
	})
}

// list reads the objects of a kind in some namespaces, or in all if none are given. It records namespaces that
// may not be read, and reads the others.
func list[T any](ctx context.Context, c *collector, namespaces []string, kind func() objectList[T], opts ...client.ListOption) []T {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []T
	for _, namespace := range namespaces {
		items, err := listAll(ctx, c.reader, kind, append(slices.Clip(opts), client.InNamespace(namespace)))
		c.recordAnswer(err)
		all = append(all, items...)
		if err == nil {
			continue
		}
		c.recordUnreadable(kind().resource, namespace, err)
		if reasonOf(err) == explain.UnreadableNotInstalled {
			break // nor is it installed in any other namespace
		}
	}
	return all
}

func listAll[T any](ctx context.Context, reader client.Reader, kind func() objectList[T], opts []client.ListOption) ([]T, error) {
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
func (c *collector) terminating(ctx context.Context) {
	grouped, names := map[string]bool{}, map[string]bool{}
	for i := range c.state.OperatorGroups {
		if g := &c.state.OperatorGroups[i]; g.DeletionTimestamp.IsZero() {
			grouped[g.Namespace] = true
		}
	}
	for i := range c.state.Subscriptions {
		if sub := &c.state.Subscriptions[i]; !sub.DeletionTimestamp.IsZero() || !grouped[sub.Namespace] {
			names[sub.Namespace] = true
		}
	}
	for i := range c.state.Versions {
		if csv := &c.state.Versions[i]; !csv.DeletionTimestamp.IsZero() {
			names[csv.Namespace] = true
		}
	}
	for i := range c.state.Terminating {
		delete(names, c.state.Terminating[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var namespace corev1.Namespace
		err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		c.recordAnswer(err)
		if err == nil && !namespace.DeletionTimestamp.IsZero() {
			c.state.Terminating = append(c.state.Terminating, namespace)
		}
	}
}

// definitions reads the CustomResourceDefinitions that versions name and that are not healthy. In some
// clusters, all definitions take many megabytes.
func (c *collector) definitions(ctx context.Context) {
	const resource = "customresourcedefinitions.apiextensions.k8s.io"
	names := map[string]bool{}
	for i := range c.state.Versions {
		csv := &c.state.Versions[i]
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
		err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &definition)
		c.recordAnswer(err)
		switch {
		case err == nil:
			c.state.Definitions = append(c.state.Definitions, definition)
		case apierrors.IsNotFound(err):
		default:
			c.recordUnreadable(resource, "", err)
			return
		}
	}
}

// packages reads whether the API of PackageManifests is available. Users who may not read APIServices do not miss it.
func (c *collector) packages(ctx context.Context) {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(webhook.APIServiceKind())
	if err := c.reader.Get(ctx, client.ObjectKey{Name: explain.PackagesService}, service); err != nil {
		return
	}
	if ok, _, why := webhook.Available(service); !ok {
		c.state.PackagesProblem = why
	}
}

// leases reads the Leases of supervisors in all namespaces, or in the namespaces where they may be.
func (c *collector) leases(ctx context.Context, o Options) {
	const resource = "leases.coordination.k8s.io"
	everywhere, err := listAll(ctx, c.reader, leases, []client.ListOption{client.MatchingFields{"metadata.name": api.LeaseName}})
	c.recordAnswer(err)
	if err == nil {
		c.state.Leases = everywhere
		return
	}
	for _, namespace := range o.SupervisorNamespaces {
		var lease coordinationv1.Lease
		err := c.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: api.LeaseName}, &lease)
		if err == nil {
			c.state.Leases = append(c.state.Leases, lease)
		}
	}
	if len(c.state.Leases) == 0 {
		c.recordUnreadable(resource, "", err)
	}
}
