package clusterserviceversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// discoveryAge is how long a discovery answer about a group is valid. Many versions ask for the
// same few groups, one after the other.
const discoveryAge = 10 * time.Second

// servedAPI is the state of an API that a version requires.
type servedAPI struct {
	// served is true when the API server answers requests for it.
	served bool
	// unavailable is true when the API exists and does not answer.
	unavailable bool
	// uid is that of the APIService; empty for native APIs.
	uid types.UID
}

// apis holds the APIs that a version names. An API that is not among them is not served.
type apis map[schema.GroupVersionKind]servedAPI

// discoveryCache caches the kinds that the API server serves, for discoveryAge. A REST mapper does not
// suffice: it keeps kinds that are no longer served.
type discoveryCache struct {
	list func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	// group reads an API group by its name.
	group func(ctx context.Context, name string) error
	clock clock.PassiveClock

	mu    sync.Mutex
	known map[string]discoveryAnswer
}

// discoveryAnswer is a discovery answer and its time.
type discoveryAnswer struct {
	kinds []string
	at    time.Time
}

// find reports whether a kind is served. If the API server has no answer about a group, a server
// behind it does not answer; the result then has unavailable set. It returns an error only for a failure
// of the API server.
func (d *discoveryCache) find(ctx context.Context, gvk schema.GroupVersionKind) (servedAPI, error) {
	kinds, err := d.kinds(ctx, gvk.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err):
		return servedAPI{}, nil
	case err != nil && isBackendError(err):
		return servedAPI{unavailable: true}, nil
	case err != nil:
		return servedAPI{}, fmt.Errorf("looking for the API %s: %w", gvk, err)
	}
	return servedAPI{served: slices.Contains(kinds, gvk.Kind)}, nil
}

// hasGroup reports whether the API server has an API group.
func (d *discoveryCache) hasGroup(ctx context.Context, name string) (bool, error) {
	err := d.group(ctx, name)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("looking for the API group %s: %w", name, err)
	}
	return err == nil, nil
}

// isBackendError reports whether an error is an answer of the API server about a server behind it. It
// returns false for a missing answer, and for one that asks to retry or to authenticate.
func isBackendError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

func (d *discoveryCache) kinds(ctx context.Context, groupVersion string) ([]string, error) {
	now := d.clock.Now()
	d.mu.Lock()
	last, known := d.known[groupVersion]
	d.mu.Unlock()
	if known && now.Sub(last.at) < discoveryAge {
		return last.kinds, nil
	}
	list, err := d.list(ctx, groupVersion)
	if err != nil {
		return nil, err
	}
	last = discoveryAnswer{at: now}
	for i := range list.APIResources {
		// Subresources have no kinds of their own.
		if !strings.Contains(list.APIResources[i].Name, "/") {
			last.kinds = append(last.kinds, list.APIResources[i].Kind)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[string]discoveryAnswer{}
	}
	d.known[groupVersion] = last
	return last.kinds, nil
}

// readAPIs looks up the APIs that a version names. For native APIs it uses discovery. For those of
// other operators it first reads the APIService. disrupted states which of these has just become
// unavailable.
func (o *observer) readAPIs(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, now time.Time) (found apis, disrupted string, err error) {
	found = apis{}
	for _, gvk := range nativeKinds(csv) {
		if found[gvk], err = o.discoveryCache.find(ctx, gvk); err != nil {
			return nil, "", err
		}
	}
	for _, d := range csv.GetRequiredAPIServiceDescriptions() {
		gvk := schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}
		want := &unstructured.Unstructured{}
		want.SetGroupVersionKind(webhook.APIServiceKind())
		want.SetName(d.GetName())
		live, err := apply.Live(ctx, o.live, want)
		if err != nil {
			return nil, "", err
		}
		if live == nil {
			found[gvk] = servedAPI{}
			continue
		}
		available, since, why := webhook.Available(live)
		moment := csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded && now.Sub(since) < phase.DisruptionTime
		switch {
		case !available && moment:
			found[gvk] = servedAPI{served: true, uid: live.GetUID()}
			disrupted = cmp.Or(disrupted, fmt.Sprintf("APIService %s is not available: %s", d.GetName(), why))
		case !available:
			found[gvk] = servedAPI{unavailable: true}
		default:
			served, err := o.discoveryCache.find(ctx, gvk)
			if err != nil {
				return nil, "", err
			}
			served.uid = live.GetUID()
			found[gvk] = served
		}
	}
	return found, disrupted, nil
}

// addUnlistedAPI returns an observation with the first API of a version whose API service is available, but does not
// list its kind yet. OLM completes no installation before. A running version keeps its phase.
func (o *observer) addUnlistedAPI(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, seen phase.Webhooks) (phase.Webhooks, error) {
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseInstalling || seen.Waiting.Text != "" {
		return seen, nil
	}
	for _, d := range csv.GetOwnedAPIServiceDescriptions() {
		found, err := o.discoveryCache.find(ctx, schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind})
		if err != nil {
			return seen, err
		}
		if !found.served {
			seen.Probing = true
			seen.Waiting = phase.Sentence{
				Text:   olmtext.APIServicesMissing,
				Detail: fmt.Sprintf("the server of APIService %s does not list kind %s, which spec.apiservicedefinitions.owned names", d.GetName(), d.Kind),
			}
			return seen, nil
		}
	}
	return seen, nil
}

// nativeKinds returns the kinds that csv requires of the API server.
func nativeKinds(csv *operatorsv1alpha1.ClusterServiceVersion) []schema.GroupVersionKind {
	out := make([]schema.GroupVersionKind, 0, len(csv.Spec.NativeAPIs))
	for _, native := range csv.Spec.NativeAPIs {
		out = append(out, schema.GroupVersionKind(native))
	}
	return out
}

// status returns the status of a requirement for the API.
func (a servedAPI) status() operatorsv1alpha1.StatusReason {
	switch {
	case a.served:
		return operatorsv1alpha1.RequirementStatusReasonPresent
	case a.unavailable:
		return operatorsv1alpha1.RequirementStatusReasonNotAvailable
	default:
		return operatorsv1alpha1.RequirementStatusReasonNotPresent
	}
}

func apiServices(csv *operatorsv1alpha1.ClusterServiceVersion, c cluster) []operatorsv1alpha1.RequirementStatus {
	var out []operatorsv1alpha1.RequirementStatus
	for _, d := range csv.GetRequiredAPIServiceDescriptions() {
		found := c.APIs[schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}]
		s := operatorsv1alpha1.RequirementStatus{
			Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: d.GetName(), Status: found.status(),
		}
		if found.served {
			s.UUID = string(found.uid)
		}
		out = append(out, s)
	}
	return out
}

func nativeAPIs(csv *operatorsv1alpha1.ClusterServiceVersion, c cluster) []operatorsv1alpha1.RequirementStatus {
	var out []operatorsv1alpha1.RequirementStatus
	for _, gvk := range nativeKinds(csv) {
		s := operatorsv1alpha1.RequirementStatus{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: gvk.Version + "." + gvk.Group,
			Status: c.APIs[gvk].status(), Message: olmtext.NativeAPIMissing,
		}
		if s.Status == operatorsv1alpha1.RequirementStatusReasonPresent {
			s.Message = olmtext.NativeAPIPresent
		}
		out = append(out, s)
	}
	return out
}
