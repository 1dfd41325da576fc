package clusterserviceversion

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
)

// readOnly saves copies of objects that are not changed.
const readOnly = client.UnsafeDisableDeepCopy

// state is what one reconcile has read: the observation for phase.Next, and what actions need in
// addition.
type state struct {
	phase.Input

	deployments []*appsv1.Deployment // as desired
	settings    settings             // with which they were derived
	copies      clusterRBAC          // as desired
	rbac        rbac                 // as read
	webhooks    *webhook.State       // nil when it has none
}

// observer reads everything that a transition may depend on.
type observer struct {
	client          client.Client          // reads from the cache
	live            client.Reader          // reads past the cache
	crds            client.Reader          // CustomResourceDefinitions without schemas
	discoveryCache  *discoveryCache        // which APIs are served
	serverVersion   func() (string, error) // of the API server
	clock           clock.PassiveClock
	deployments     deploymentReader
	webhooks        *webhook.Observer
	refusedAttempts *refusedAttempts
}

// observe reads everything that a transition of csv may depend on.
func (o *observer) observe(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (*state, error) {
	s := &state{Input: phase.Input{CSV: csv, Now: o.clock.Now()}}
	var err error
	if s.Groups, s.Claims, err = o.groups(ctx, csv); err != nil {
		return nil, err
	}
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := o.client.List(ctx, &list, client.InNamespace(csv.Namespace), readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions in namespace %s: %w", csv.Namespace, err)
	}
	others := versions.Originals(list.Items)
	s.Replacement = phase.ReplacementOf(csv, others)
	if csv.Status.Phase == operatorsv1alpha1.CSVPhaseReplacing || csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting {
		s.Requirements.Statuses = csv.Status.RequirementStatus
		s.webhooks, s.Webhooks, err = o.webhooks.ObserveRotation(ctx, webhookVersion(s, others))
		return s, err
	}
	if s.Replacement.Pinned, err = o.pinned(ctx, csv.Namespace, s.Replacement.Successor); err != nil {
		return nil, err
	}
	if s.Replacement.PredecessorNotUpgradeable, s.Replacement.NotUpgradeable, err = o.notUpgradeable(ctx, csv, s.Replacement); err != nil {
		return nil, err
	}
	return o.observeInstallation(ctx, s, others)
}

// observeInstallation adds the state of the objects of a version, and of those that it requires.
func (o *observer) observeInstallation(ctx context.Context, s *state, others versions.List) (*state, error) {
	found, disrupted, err := o.readCluster(ctx, s.CSV, s.Now)
	if err != nil {
		return nil, err
	}
	found.Others = others
	s.Requirements, s.rbac = requirements(s.CSV, found), found.RBAC
	s.copies = desiredClusterRBAC(s.CSV, isGlobal(s.Groups), found.RBAC)
	if s.ClusterRBAC, err = o.clusterRBAC(ctx, s.CSV, s.copies, found.RBAC); err != nil {
		return nil, err
	}
	config, invalid, err := o.deployments.settings(ctx, s.CSV)
	if err != nil {
		return nil, err
	}
	version := webhookVersion(s, others)
	version.Issuer = webhook.Issuer{Reference: config.overrides.CertificateIssuer, Unknown: invalid != ""}
	if s.webhooks, s.Webhooks, err = o.webhooks.Observe(ctx, version); err != nil {
		return nil, err
	}
	if s.Webhooks, err = o.addUnlistedAPI(ctx, s.CSV, s.Webhooks); err != nil {
		return nil, err
	}
	s.Webhooks.Disrupted = cmp.Or(disrupted, s.Webhooks.Disrupted)
	desired, live, err := o.deployments.derive(ctx, s.CSV, config, s.webhooks)
	if err != nil {
		return nil, err
	}
	s.settings, s.deployments = config, desired
	s.Components = components(s.CSV, desired, live, others, cmp.Or(invalid, s.webhooks.UnreadableCertificate()))
	s.Components.OwnerConflict = cmp.Or(s.Components.OwnerConflict, s.webhooks.OwnerConflict())
	if s.Components.Corrected, s.Access, err = o.compareRefusal(ctx, s); err != nil {
		return nil, err
	}
	s.Webhooks, err = o.webhooks.ObserveSwitch(ctx, s.webhooks, s.Webhooks, s.Components.Healthy())
	return s, err
}

// webhookVersion returns the version as its webhooks need it.
func webhookVersion(s *state, others versions.List) webhook.Version {
	v := webhook.Version{CSV: s.CSV, Others: others, Now: s.Now}
	if len(s.Groups) == 1 {
		v.Group = &s.Groups[0]
	}
	return v
}

// groups returns the OperatorGroups of the namespace of csv, and whether the only one may claim the
// APIs that csv provides.
func (o *observer) groups(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) ([]operatorsv1.OperatorGroup, providedapis.Finding, error) {
	var own operatorsv1.OperatorGroupList
	if err := o.client.List(ctx, &own, client.InNamespace(csv.Namespace), readOnly); err != nil {
		return nil, providedapis.Finding{}, fmt.Errorf("listing OperatorGroups in namespace %s: %w", csv.Namespace, err)
	}
	if len(own.Items) != 1 {
		return own.Items, providedapis.Finding{}, nil
	}
	competing, err := groupindex.Competing(ctx, o.client, &own.Items[0])
	if err != nil {
		return nil, providedapis.Finding{}, err //nolint:wrapcheck // says what was listed
	}
	return own.Items, claims(csv, own.Items, competing), nil
}

// claims reports whether the OperatorGroup may claim the APIs that csv provides, against the claims
// of groups in other namespaces.
func claims(csv *operatorsv1alpha1.ClusterServiceVersion, groups, everywhere []operatorsv1.OperatorGroup) providedapis.Finding {
	if len(groups) != 1 || groups[0].Status.LastUpdated == nil {
		return providedapis.Finding{}
	}
	return providedapis.Evaluate(&groups[0], everywhere, csv)
}

// pinned reports whether a Subscription is pinned to the successor of a version; false without a
// successor.
func (o *observer) pinned(ctx context.Context, namespace string, successor *phase.Neighbour) (bool, error) {
	if successor == nil {
		return false, nil
	}
	var subs operatorsv1alpha1.SubscriptionList
	if err := o.client.List(ctx, &subs, client.InNamespace(namespace), readOnly); err != nil {
		return false, fmt.Errorf("listing Subscriptions in namespace %s: %w", namespace, err)
	}
	return slices.ContainsFunc(subs.Items, func(sub operatorsv1alpha1.Subscription) bool {
		return api.PinnedVersion(sub.Annotations) == successor.Name
	}), nil
}

// readCluster returns the state against which the requirements of csv are checked, without other
// versions. disrupted names a required API service that has just become unavailable.
func (o *observer) readCluster(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, now time.Time) (found cluster, disrupted string, err error) {
	if found.CRDs, err = o.readCRDs(ctx, csv); err != nil {
		return found, "", err
	}
	if found.APIs, disrupted, err = o.readAPIs(ctx, csv, now); err != nil {
		return found, "", err
	}
	if found.Accounts, err = o.readAccounts(ctx, csv); err != nil {
		return found, "", err
	}
	if found.RBAC, err = (rbacReader{cached: o.client, live: o.live}).read(ctx, csv.Namespace); err != nil {
		return found, "", err
	}
	if csv.Spec.MinKubeVersion != "" {
		if found.Version, err = o.serverVersion(); err != nil {
			return found, "", fmt.Errorf("asking the API server for its version: %w", err)
		}
	}
	return found, disrupted, nil
}

// clusterRBAC returns the state of the cluster-scoped copies of RBAC.
func (o *observer) clusterRBAC(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, want clusterRBAC, have rbac) (phase.ClusterRBAC, error) {
	var lookup error
	state := clusterRBACState(csv, want, have, func(labels map[string]string) bool {
		lives, err := o.ownerExists(ctx, labels)
		if err != nil {
			lookup = err
		}
		return lives
	})
	return state, lookup
}

// ownerExists reports whether the owner in an object's labels exists. It returns true for an object
// without such labels, whose owner is unknown.
func (o *observer) ownerExists(ctx context.Context, labels map[string]string) (bool, error) {
	owner, ok := ownership.Of(labels)
	if !ok {
		return true, nil
	}
	var csv operatorsv1alpha1.ClusterServiceVersion
	err := o.client.Get(ctx, owner, &csv)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("getting ClusterServiceVersion %s: %w", owner, err)
	}
	return true, nil
}

// crdsByName and accountsByName hold the existing objects that a ClusterServiceVersion names.
type (
	crdsByName     map[string]*apiextensionsv1.CustomResourceDefinition
	accountsByName map[string]*metav1.PartialObjectMetadata
)

func (o *observer) readCRDs(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (crdsByName, error) {
	out := crdsByName{}
	for _, d := range csv.GetAllCRDDescriptions() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := o.crds.Get(ctx, client.ObjectKey{Name: d.Name}, crd, readOnly)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting CustomResourceDefinition %s: %w", d.Name, err)
		}
		out[d.Name] = crd
	}
	return out, nil
}

func (o *observer) readAccounts(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (accountsByName, error) {
	out := accountsByName{}
	for name := range accountNeeds(csv) {
		account := accountMetadata()
		err := o.client.Get(ctx, client.ObjectKey{Namespace: csv.Namespace, Name: name}, account)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting ServiceAccount %s/%s: %w", csv.Namespace, name, err)
		}
		out[name] = account
	}
	return out, nil
}

func accountMetadata() *metav1.PartialObjectMetadata {
	account := &metav1.PartialObjectMetadata{}
	account.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceAccount"))
	return account
}
