package webhook

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// Options are the dependencies of an Observer and a Writer.
type Options struct {
	// Client reads from the manager's cache and writes.
	Client client.Client
	// Live reads past the caches.
	Live client.Reader
	// CRDs has the CustomResourceDefinitions without schemas.
	CRDs client.Reader
	// Cache has the Services, webhook configurations and API services of operators.
	Cache client.Reader
	// Accounts act for the service accounts of OperatorGroups.
	Accounts *impersonate.Accounts
	// Events records what users should know.
	Events events.EventRecorder
	// Namespace is the namespace of the supervisor. No webhook is called for its objects.
	Namespace string
}

// New returns an Observer and a Writer that belong together.
func New(o Options) (*Observer, *Writer) {
	c := &conversions{client: o.Client, live: o.Live, crds: o.CRDs}
	s := newSwitchCounter()
	observer := &Observer{
		manager: o.Client, live: o.Live, crds: o.CRDs, objects: reader{manager: o.Client, cache: o.Cache, live: o.Live},
		accounts: o.Accounts, namespace: o.Namespace, conversions: c, switches: s,
	}
	writer := &Writer{
		client: o.Client, live: o.Live, cache: o.Cache, conversions: c, switches: s,
		former: formerObjects{client: o.Client, live: o.Live, events: o.Events}, requests: requestSettler{client: o.Client, live: o.Live},
	}
	return observer, writer
}

// Writer brings the objects through which the API server calls versions to their desired state.
type Writer struct {
	client      client.Client
	live        client.Reader // reads past the caches
	cache       client.Reader // of Services, webhook configurations and API services
	conversions *conversions
	switches    *switchCounter
	former      formerObjects
	requests    requestSettler
}

// Prepare applies what Deployments that serve the API server need to start: first certificates, then
// Services and RBAC. Callers trust a new certificate before it is used.
func (w *Writer) Prepare(ctx context.Context, s *State) error {
	if err := w.requests.settle(ctx, s); err != nil {
		return err
	}
	if err := w.renew(ctx, s); err != nil {
		return err
	}
	objects, err := s.desired()
	if err != nil {
		return err
	}
	for i, service := range objects.Services {
		if objects.Services[i], err = w.serviceDuringRollout(ctx, service); err != nil {
			return err
		}
	}
	if err := w.put(ctx, s, prerequisites(objects)...); err != nil {
		return err
	}
	return w.conversions.apply(ctx, s)
}

// serviceDuringRollout returns the Service that leads to the existing pods until the new ones serve.
func (w *Writer) serviceDuringRollout(ctx context.Context, want *corev1.Service) (*corev1.Service, error) {
	live := &corev1.Service{}
	err := w.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		return want, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting Service %s/%s: %w", want.Namespace, want.Name, err)
	}
	return webhook.ServiceDuringRollout(live, want), nil
}

// Switch makes the API server use what the Deployments serve. Then it removes what is no longer
// used: former authorities, configurations and bindings.
func (w *Writer) Switch(ctx context.Context, s *State) error {
	for deployment, cert := range s.certs.current {
		s.certs.current[deployment] = cert.DropPreviousCA()
	}
	objects, err := s.desired()
	if err != nil {
		return err
	}
	// Read past the cache: it lacks objects without their labels, and they would be created twice.
	surplus, err := adopt(ctx, w.live, s, objects)
	if err != nil {
		return err
	}
	if err := w.put(ctx, s, slices.Concat(prerequisites(objects), registrations(objects))...); err != nil {
		return err
	}
	if err := w.conversions.apply(ctx, s); err != nil {
		return err
	}
	if err := w.putSecrets(ctx, s); err != nil {
		return err
	}
	for _, extra := range surplus {
		if err := apply.Delete(ctx, w.client, extra); err != nil {
			return err
		}
	}
	if err := w.former.removeOLMBindings(ctx, s); err != nil {
		return err
	}
	if err := w.RemoveOldestNames(ctx, s); err != nil {
		return err
	}
	w.switches.Fail(generationOf(s.version.CSV), struct{}{}, s.version.Now)
	return nil
}

// RemoveOldestNames removes the objects of a version that OLM's oldest releases named after its APIs. The API server
// must use the present objects.
func (w *Writer) RemoveOldestNames(ctx context.Context, s *State) error {
	return w.former.removeOldestNames(ctx, s)
}

// Remove removes the objects that make the API server call a version.
func (w *Writer) Remove(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) error {
	for _, gvk := range []schema.GroupVersionKind{validatingKind(), mutatingKind(), webhook.APIServiceKind()} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := w.cache.List(ctx, list, ownership.Labels(csv)); err != nil {
			return fmt.Errorf("listing the %ss of ClusterServiceVersion %s/%s: %w", gvk.Kind, csv.Namespace, csv.Name, err)
		}
		for i := range list.Items {
			if err := apply.Delete(ctx, w.client, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// put applies objects that differ from the live ones.
func (w *Writer) put(ctx context.Context, s *State, objects ...client.Object) error {
	for _, obj := range objects {
		want, err := webhook.Manifest(obj)
		if err != nil {
			return err
		}
		live, err := apply.Live(ctx, w.live, want)
		if err != nil {
			return err
		}
		if live == nil {
			err = w.create(ctx, s, want)
		} else {
			err = w.update(ctx, s, want, live)
		}
		if err != nil {
			return err
		}
	}
	return s.lookupErr
}

// create creates an object. It returns apply.ErrStale for a Secret that was deleted since this
// pass read it or wrote it, and for an object that was created since.
func (w *Writer) create(ctx context.Context, s *State, want *unstructured.Unstructured) error {
	if want.GetKind() == "Secret" && s.certs.stored[want.GetName()] {
		return apply.ErrStale
	}
	_, absent, err := apply.CreateIfAbsent(ctx, w.client, want)
	if err == nil && !absent {
		return apply.ErrStale
	}
	return err
}

// update updates an object that differs. It leaves an object of another owner as it is, and
// returns apply.ErrStale for a Secret that another manager has begun to provide.
func (w *Writer) update(ctx context.Context, s *State, want, live *unstructured.Unstructured) error {
	if webhook.ServesPackages(live) || !webhook.NeedsUpdate(want, live) {
		return nil
	}
	if want.GetKind() == "Secret" && webhook.IsProvided(live) {
		return apply.ErrStale
	}
	if owner := s.owners.OtherOwner(live); owner != "" {
		return fmt.Errorf("applying what ClusterServiceVersion %s/%s serves: %s", s.version.CSV.Namespace, s.version.CSV.Name,
			webhook.LiveConflictMessage(live, owner))
	}
	_, _, err := apply.Update(ctx, w.client, want, live)
	return err
}
