package attack

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// probe holds the times of the changes of a plain client, from request to event.
type probe struct {
	took []time.Duration
	err  error
}

// median returns the median time, 0 if there was no change.
func (p *probe) median() time.Duration {
	if len(p.took) == 0 {
		return 0
	}
	slices.Sort(p.took)
	return p.took[len(p.took)/2]
}

// plainClient changes a Subscription that the supervisor does not act on.
type plainClient struct{ client client.WithWatch }

// observed creates the Subscription of the plain client if it does not exist, and watches it. Its
// namespace has no OperatorGroup, so the supervisor installs nothing there.
func (c *plainClient) observed(ctx context.Context) (*operatorsv1alpha1.Subscription, watch.Interface, error) {
	o := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: plain, Name: "plain"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{Package: "kettle", CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace},
	}
	if err := c.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, nil, fmt.Errorf("creating Subscription %s/%s: %w", plain, o.Name, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind + "List"))
	w, err := c.client.Watch(ctx, list, client.InNamespace(plain))
	if err != nil {
		return nil, nil, fmt.Errorf("watching Subscriptions in namespace %s: %w", plain, err)
	}
	return o, w, nil
}

// probe changes the Subscription of the plain client until ctx ends. An API server under load may end a watch: another one
// follows, as clients do it, and that change is not measured.
func (c *plainClient) probe(ctx context.Context) (p probe) {
	o, w, err := c.observed(ctx)
	if err != nil {
		return probe{err: err}
	}
	defer func() { w.Stop() }()
	tick := time.NewTicker(polling)
	defer tick.Stop()
	for ctx.Err() == nil {
		began := time.Now()
		shown, err := c.change(ctx, o, w, began.Format(time.RFC3339Nano))
		if shown {
			p.took = append(p.took, time.Since(began))
		} else if err == nil {
			var next watch.Interface
			if _, next, err = c.observed(ctx); err == nil {
				w.Stop()
				w = next
			}
		}
		if err != nil && ctx.Err() == nil && !passes(err) {
			p.err = err
			return p
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return p
}

// change changes the Subscription, and waits until a watch shows that. It returns false without an error if the watch ends.
func (c *plainClient) change(ctx context.Context, o *operatorsv1alpha1.Subscription, w watch.Interface, value string) (bool, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"plain":%q}}}`, value)
	if err := c.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return false, fmt.Errorf("changing Subscription %s/%s: %w", plain, o.Name, err)
	}
	return shows(w, value), nil
}

// shows waits until a watch shows a change. It returns false if the watch ends before.
func shows(w watch.Interface, value string) bool {
	for event := range w.ResultChan() {
		if o, is := event.Object.(metav1.Object); is && o.GetAnnotations()["plain"] == value {
			return true
		}
	}
	return false
}
