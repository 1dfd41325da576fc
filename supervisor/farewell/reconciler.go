package farewell

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// reconciler changes definitions whose pods are terminating.
type reconciler struct {
	client client.Client
	live   client.Reader
	slices client.Reader
	clock  clock.PassiveClock
	leaves departures
}

// Reconcile handles the pods behind one Service.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var endpoints discoveryv1.EndpointSliceList
	err := r.slices.List(ctx, &endpoints, client.InNamespace(req.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: req.Name})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the endpoints of Service %s: %w", req.NamespacedName, err)
	}
	leaving, stay := webhook.Leaving(endpoints.Items)
	due, after := r.leaves.due(req.NamespacedName, leaving, r.clock.Now())
	if !stay || len(due) == 0 {
		// A new pod of the Service causes an event.
		return reconcile.Result{RequeueAfter: after}, nil
	}
	definitions, err := r.converted(ctx, req.NamespacedName, endpoints.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, name := range definitions {
		err := r.part(ctx, name, req.NamespacedName, due)
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: conflictDelay}, nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// converted returns the names of the definitions that the owners of the endpoints convert through the Service.
func (r *reconciler) converted(ctx context.Context, service types.NamespacedName, endpoints []discoveryv1.EndpointSlice) ([]string, error) {
	var names []string
	for i := range endpoints {
		labels := endpoints[i].Labels
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}, csv)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting the owner of EndpointSlice %s/%s: %w", endpoints[i].Namespace, endpoints[i].Name, err)
		}
		for j := range csv.Spec.WebhookDefinitions {
			d := &csv.Spec.WebhookDefinitions[j]
			if d.Type == operatorsv1alpha1.ConversionWebhook && csv.Namespace == service.Namespace {
				names = append(names, d.ConversionCRDs...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// part changes one definition, if the Service converts it.
func (r *reconciler) part(ctx context.Context, name string, service types.NamespacedName, pods []string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	}
	change := webhook.Part(crd, service, pods)
	if change == nil {
		return nil
	}
	body, err := change.Patch(crd)
	if err != nil {
		return err
	}
	if err := r.client.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("changing the conversion of CustomResourceDefinition %s: %w", name, err)
	}
	logf.FromContext(ctx).Info("Let API servers part with pods that are about to go", "definition", name, "pods", pods)
	return nil
}

// departures holds the times since when pods are terminating. After a change of leader, these times start
// again, for which there is time.
type departures map[types.NamespacedName]map[types.UID]time.Time

// due returns the names of the pods behind a Service that receive no new connections any more. after is the
// time until there are more of them; zero for never.
func (d departures) due(service types.NamespacedName, leaving map[types.UID]string, now time.Time) (pods []string, after time.Duration) {
	seen := d[service]
	delete(d, service)
	if len(leaving) == 0 {
		return nil, 0
	}
	d[service] = map[types.UID]time.Time{}
	for uid, name := range leaving {
		since, known := seen[uid]
		if !known {
			since = now
		}
		d[service][uid] = since
		left := webhook.Rerouting - now.Sub(since)
		switch {
		case left <= 0:
			pods = append(pods, name)
		case after == 0 || left < after:
			after = left
		}
	}
	return pods, after
}
