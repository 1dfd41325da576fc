package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// Options select what is read.
type Options struct {
	// Namespaces are the namespaces to read; empty for all.
	Namespaces []string
	// Fallback is the namespace to read if the user may not read all of them; empty for none.
	Fallback string
	// GlobalNamespace holds the catalogs that serve every namespace; empty for none.
	GlobalNamespace string
	// SupervisorNamespaces may contain the Lease of the supervisor. They are read if the user may not read the Leases of
	// all namespaces.
	SupervisorNamespaces []string
	// Access reviews the permissions of Deployments that look like OLM's. If it is nil, they count as OLM's.
	Access *competing.AccessReviewer
}

// NewClient returns a client for the kinds that [Read] reads.
func NewClient(config *rest.Config) (client.Client, error) {
	kinds, err := scheme.New()
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it was doing
	}
	c, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return c, nil
}

// Read returns the state of a cluster. It returns an [explain.UnreachableError] if the API server answers no request, and an
// [explain.MissingNamespaceError] if a requested namespace does not exist. Other failures are recorded as unreadable objects.
func Read(ctx context.Context, reader client.Reader, o Options) (*explain.ClusterState, error) {
	c := &collector{reader: reader, state: &explain.ClusterState{
		ReadAt: time.Now(), Namespaces: slices.Clone(o.Namespaces), GlobalNamespace: o.GlobalNamespace,
	}}
	scope := c.operators(ctx, o)
	if !c.answered {
		return nil, &explain.UnreachableError{Err: c.failure}
	}
	if err := c.checkNamespaces(ctx, scope); err != nil {
		return nil, err
	}
	c.catalogs(ctx, o, scope)
	c.terminating(ctx)
	c.leases(ctx, o)
	c.packages(ctx)
	namespaces := c.workloadNamespaces(scope)
	if len(scope) == 0 && len(c.state.Leases) == 0 {
		// Supervisors that wait beside OLM have no Lease before one leads for the first time.
		namespaces = slices.Compact(slices.Sorted(slices.Values(append(namespaces, o.SupervisorNamespaces...))))
	}
	c.workloads(ctx, namespaces)
	if len(scope) == 0 {
		c.managers(ctx)
	}
	if o.Access != nil {
		// Without the permission to review, or after an error, all of them count as OLM's.
		c.state.ManagerAccess, _ = o.Access.Review(ctx, competing.Accounts(competing.WorkloadsAmong(c.state.Deployments)))
	}
	c.state.Nodes = trimmed(list(ctx, c, nil, nodes))
	c.definitions(ctx)
	return c.state, nil
}

// collector reads the state of a cluster.
type collector struct {
	reader client.Reader
	state  *explain.ClusterState
	// answered is true once the API server has answered a request. failure is the error of the first request without an
	// answer.
	answered bool
	failure  error
}

// operators reads the objects of package management, and returns the namespaces that were read; none for all.
func (c *collector) operators(ctx context.Context, o Options) []string {
	scope, found := o.Namespaces, c.state
	if len(scope) == 0 && o.Fallback != "" && !c.canListAllNamespaces(ctx) {
		scope = []string{o.Fallback}
		found.Namespaces = scope
	}
	found.Subscriptions = list(ctx, c, scope, subscriptions)
	found.InstallPlans = list(ctx, c, scope, installPlans)
	found.Versions = list(ctx, c, scope, versions, originals)
	found.OperatorGroups = list(ctx, c, scope, operatorGroups)
	found.OperatorConditions = list(ctx, c, scope, operatorConditions)
	return scope
}

// checkNamespaces returns an error for a namespace that does not exist, since nothing in it would seem wrong. A
// namespace that the user may not read counts as existing. It records namespaces that are being deleted: no other
// object in them may show that.
func (c *collector) checkNamespaces(ctx context.Context, namespaces []string) error {
	for _, name := range namespaces {
		var namespace corev1.Namespace
		err := c.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		if apierrors.IsNotFound(err) {
			return &explain.MissingNamespaceError{Name: name}
		}
		if err == nil && !namespace.DeletionTimestamp.IsZero() {
			c.state.Terminating = append(c.state.Terminating, namespace)
		}
	}
	return nil
}

// canListAllNamespaces reports whether the user may read the Subscriptions of all namespaces.
func (c *collector) canListAllNamespaces(ctx context.Context) bool {
	var one operatorsv1alpha1.SubscriptionList
	err := c.reader.List(ctx, &one, client.Limit(1))
	return err == nil || reasonOf(err) != explain.UnreadableForbidden
}

// catalogs reads the catalogs of the requested namespaces, and those that their Subscriptions name.
func (c *collector) catalogs(ctx context.Context, o Options, scope []string) {
	if len(scope) == 0 {
		c.state.CatalogSources = list(ctx, c, nil, catalogSources)
		return
	}
	from := map[string]bool{}
	for _, namespace := range append(slices.Clone(scope), o.GlobalNamespace) {
		from[namespace] = true
	}
	for i := range c.state.Subscriptions {
		if spec := c.state.Subscriptions[i].Spec; spec != nil {
			from[spec.CatalogSourceNamespace] = true
		}
	}
	delete(from, "")
	c.state.CatalogSources = list(ctx, c, slices.Sorted(maps.Keys(from)), catalogSources)
}

// maxNamespaceLists is the maximum number of namespaces that are read one by one. If there are more, the whole cluster
// is read at once.
const maxNamespaceLists = 16

// workloadNamespaces returns the namespaces where the objects found so far have pods.
func (c *collector) workloadNamespaces(scope []string) []string {
	in := map[string]bool{}
	for _, namespace := range scope {
		in[namespace] = true
	}
	found := c.state
	for i := range found.CatalogSources {
		in[found.CatalogSources[i].Namespace] = true
	}
	for i := range found.Versions {
		in[found.Versions[i].Namespace] = true
	}
	for i := range found.Leases {
		in[found.Leases[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(in))
}

// managers reads the Deployments of all namespaces that may be of another lifecycle manager. If the user may not read
// them, only those of the requested namespaces are known.
func (c *collector) managers(ctx context.Context) {
	known := map[types.NamespacedName]bool{}
	for i := range c.state.Deployments {
		known[client.ObjectKeyFromObject(&c.state.Deployments[i])] = true
	}
	for _, program := range []string{"olm-operator", "catalog-operator"} {
		for _, called := range []client.ListOption{client.MatchingLabels{"app": program}, client.MatchingFields{"metadata.name": program}} {
			items, err := listAll(ctx, c.reader, deployments, []client.ListOption{called})
			c.recordAnswer(err)
			for i := range items {
				if key := client.ObjectKeyFromObject(&items[i]); !known[key] {
					known[key] = true
					c.state.Deployments = append(c.state.Deployments, items[i])
				}
			}
		}
	}
}

// workloads reads the Deployments, pods and warnings of namespaces.
func (c *collector) workloads(ctx context.Context, namespaces []string) {
	if len(namespaces) == 0 {
		return
	}
	if len(namespaces) > maxNamespaceLists {
		namespaces = nil
	}
	found := c.state
	found.Deployments = list(ctx, c, namespaces, deployments)
	found.Pods = list(ctx, c, namespaces, pods)
	found.Events = list(ctx, c, namespaces, events, client.MatchingFields{"type": "Warning"})
	if limited := namespacesWithLimits(found.Deployments); len(limited) > 0 {
		found.LimitRanges = list(ctx, c, limited, limitRanges)
	}
}

// namespacesWithLimits returns the namespaces where a LimitRange refuses pods.
func namespacesWithLimits(deployments []appsv1.Deployment) []string {
	in := map[string]bool{}
	for i := range deployments {
		for _, c := range deployments[i].Status.Conditions {
			if _, names := refusal.LimitOf(c.Message); names && c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
				in[deployments[i].Namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}
