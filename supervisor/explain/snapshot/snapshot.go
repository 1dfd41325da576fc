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

// Options say what to look at.
type Options struct {
	// Namespaces are those to look at; none for all.
	Namespaces []string
	// Fallback is the namespace to look at where one may not look at all of them; empty
	// for none.
	Fallback string
	// GlobalNamespace holds the catalogs that serve every namespace; empty for none.
	GlobalNamespace string
	// SupervisorNamespaces are where the Lease of the supervisor is looked for when one
	// may not look everywhere.
	SupervisorNamespaces []string
	// Access reviews what Deployments that look like OLM's may do; nil to take them for
	// what they look like.
	Access *competing.AccessReviewer
}

// NewClient makes a client that can read everything that [Take] reads.
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

// Take reads what there is. It fails only when the API server gives no answer at all, with
// an [UnreachableError], and when a namespace that is asked about does not exist; whatever
// else cannot be read is noted as unseen.
func Take(ctx context.Context, reader client.Reader, o Options) (*explain.Observation, error) {
	t := &taking{reader: reader, observation: &explain.Observation{
		Taken: time.Now(), Namespaces: slices.Clone(o.Namespaces), GlobalNamespace: o.GlobalNamespace,
	}}
	scope := t.operators(ctx, o)
	if !t.answered {
		return nil, &UnreachableError{Err: t.failure}
	}
	if err := t.exist(ctx, scope); err != nil {
		return nil, err
	}
	t.catalogs(ctx, o, scope)
	t.terminating(ctx)
	t.leases(ctx, o)
	t.workloads(ctx, t.places(scope))
	if len(scope) == 0 {
		t.managers(ctx)
	}
	if o.Access != nil {
		// Without the right, or with an error, all are taken for what they look like.
		t.observation.ManagerAccess, _ = o.Access.Review(ctx, competing.Accounts(competing.WorkloadsAmong(t.observation.Deployments)))
	}
	t.observation.Nodes = trimmed(list(ctx, t, nil, nodes))
	t.definitions(ctx)
	return t.observation, nil
}

// taking is an observation that is being made.
type taking struct {
	reader      client.Reader
	observation *explain.Observation
	// answered says whether the API server has given any answer, and failure is the
	// first time that it gave none.
	answered bool
	failure  error
}

// operators reads what says which operators are wanted and which are there, and gives
// the namespaces that were looked at; none for all.
func (t *taking) operators(ctx context.Context, o Options) []string {
	scope, found := o.Namespaces, t.observation
	if len(scope) == 0 && o.Fallback != "" && !t.mayLookEverywhere(ctx) {
		scope = []string{o.Fallback}
		found.Namespaces = scope
	}
	found.Subscriptions = list(ctx, t, scope, subscriptions)
	found.InstallPlans = list(ctx, t, scope, installPlans)
	found.Versions = list(ctx, t, scope, versions, originals)
	found.OperatorGroups = list(ctx, t, scope, operatorGroups)
	found.OperatorConditions = list(ctx, t, scope, operatorConditions)
	return scope
}

// exist refuses namespaces that are not there: in them all would seem to be well. Whoever
// may not read namespaces has them taken for there. Those that are being deleted are noted:
// there may be nothing else in them to tell of it.
func (t *taking) exist(ctx context.Context, namespaces []string) error {
	for _, name := range namespaces {
		var namespace corev1.Namespace
		err := t.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("namespace %s does not exist; --namespace (-n) names another", name)
		}
		if err == nil && !namespace.DeletionTimestamp.IsZero() {
			t.observation.Terminating = append(t.observation.Terminating, namespace)
		}
	}
	return nil
}

// mayLookEverywhere says whether the Subscriptions of all namespaces may be read.
func (t *taking) mayLookEverywhere(ctx context.Context) bool {
	var one operatorsv1alpha1.SubscriptionList
	err := t.reader.List(ctx, &one, client.Limit(1))
	return err == nil || why(err) != explain.WhyForbidden
}

// catalogs reads the catalogs of the namespaces that are looked at, and those that
// their Subscriptions draw from.
func (t *taking) catalogs(ctx context.Context, o Options, scope []string) {
	if len(scope) == 0 {
		t.observation.CatalogSources = list(ctx, t, nil, catalogSources)
		return
	}
	from := map[string]bool{}
	for _, namespace := range append(slices.Clone(scope), o.GlobalNamespace) {
		from[namespace] = true
	}
	for i := range t.observation.Subscriptions {
		if spec := t.observation.Subscriptions[i].Spec; spec != nil {
			from[spec.CatalogSourceNamespace] = true
		}
	}
	delete(from, "")
	t.observation.CatalogSources = list(ctx, t, slices.Sorted(maps.Keys(from)), catalogSources)
}

// maxApart is how many namespaces are read one by one. Where there are more, all of the
// cluster are read at once.
const maxApart = 16

// places are the namespaces where what was found so far runs.
func (t *taking) places(scope []string) []string {
	in := map[string]bool{}
	for _, namespace := range scope {
		in[namespace] = true
	}
	found := t.observation
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

// managers reads the Deployments that may be another lifecycle manager's, wherever they
// are. Who may not read those of all namespaces sees what is in those that were looked at.
func (t *taking) managers(ctx context.Context) {
	known := map[types.NamespacedName]bool{}
	for i := range t.observation.Deployments {
		known[client.ObjectKeyFromObject(&t.observation.Deployments[i])] = true
	}
	for _, program := range []string{"olm-operator", "catalog-operator"} {
		for _, called := range []client.ListOption{client.MatchingLabels{"app": program}, client.MatchingFields{"metadata.name": program}} {
			items, err := pagesOf(ctx, t.reader, deployments, []client.ListOption{called})
			t.heard(err)
			for i := range items {
				if key := client.ObjectKeyFromObject(&items[i]); !known[key] {
					known[key] = true
					t.observation.Deployments = append(t.observation.Deployments, items[i])
				}
			}
		}
	}
}

// workloads reads what runs in namespaces.
func (t *taking) workloads(ctx context.Context, places []string) {
	if len(places) == 0 {
		return
	}
	if len(places) > maxApart {
		places = nil
	}
	found := t.observation
	found.Deployments = list(ctx, t, places, deployments)
	found.Pods = list(ctx, t, places, pods)
	found.Events = list(ctx, t, places, events, client.MatchingFields{"type": "Warning"})
	if limited := limitedIn(found.Deployments); len(limited) > 0 {
		found.LimitRanges = list(ctx, t, limited, limitRanges)
	}
}

// limitedIn are the namespaces where a LimitRange refuses pods.
func limitedIn(deployments []appsv1.Deployment) []string {
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
