package clusterserviceversion

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/groupindex"
	"github.com/chandlery/chandlery/supervisor/informer"
)

// scope holds the data of one reconcile: the observation for Next, and what actions need in
// addition.
type scope struct {
	Observation

	deployments []*appsv1.Deployment // as desired
	settings    settings             // with which they were derived
	lift        lifted               // as desired
	rbac        rbac                 // as read
	webhooks    *webhook.State       // nil when it has none
}

// observe reads everything that a transition of csv may depend on.
func (r *reconciler) observe(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (*scope, error) {
	s := &scope{Observation: Observation{CSV: csv, Now: r.clock.Now()}}
	if err := r.observeGroups(ctx, s); err != nil {
		return nil, err
	}
	var list operatorsv1alpha1.ClusterServiceVersionList
	if err := r.client.List(ctx, &list, client.InNamespace(csv.Namespace), readOnly); err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions in namespace %s: %w", csv.Namespace, err)
	}
	others := versions.Originals(list.Items)
	s.Replacement = replacementOf(csv, others)
	if csv.Status.Phase == operatorsv1alpha1.CSVPhaseReplacing || csv.Status.Phase == operatorsv1alpha1.CSVPhaseDeleting {
		s.Requirements.Statuses = csv.Status.RequirementStatus
		var err error
		s.webhooks, s.Webhooks, err = r.webhooks.ObserveRotation(ctx, webhookVersion(s, others))
		return s, err
	}
	if err := r.observePin(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeConditions(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeNeeds(ctx, s, others); err != nil {
		return nil, err
	}
	disrupted := s.Webhooks.Disrupted
	var err error
	if s.webhooks, s.Webhooks, err = r.webhooks.Observe(ctx, webhookVersion(s, others)); err != nil {
		return nil, err
	}
	s.Webhooks.Disrupted = cmp.Or(disrupted, s.Webhooks.Disrupted)
	if err := r.observeComponents(ctx, s, others); err != nil {
		return nil, err
	}
	s.Components.Foreign = cmp.Or(s.Components.Foreign, s.webhooks.Foreign())
	s.Webhooks, err = r.webhooks.ObserveSwitch(ctx, s.webhooks, s.Webhooks, s.Components.Healthy())
	return s, err
}

// webhookVersion returns the version of a scope as its webhooks need it.
func webhookVersion(s *scope, others versions.List) webhook.Version {
	v := webhook.Version{CSV: s.CSV, Others: others, Now: s.Now}
	if len(s.Groups) == 1 {
		v.Group = &s.Groups[0]
	}
	return v
}

// observeGroups reads the OperatorGroups of the namespace, and the claims of groups for the same
// namespaces.
func (r *reconciler) observeGroups(ctx context.Context, s *scope) error {
	var own operatorsv1.OperatorGroupList
	if err := r.client.List(ctx, &own, client.InNamespace(s.CSV.Namespace), readOnly); err != nil {
		return fmt.Errorf("listing OperatorGroups in namespace %s: %w", s.CSV.Namespace, err)
	}
	s.Groups = own.Items
	if len(s.Groups) != 1 {
		return nil
	}
	contenders, err := groupindex.Contenders(ctx, r.client, &s.Groups[0])
	if err != nil {
		return err //nolint:wrapcheck // says what was listed
	}
	s.Claims = claims(s.CSV, s.Groups, contenders)
	return nil
}

// readOnly saves copies of objects that observe does not change.
const readOnly = client.UnsafeDisableDeepCopy

func (r *reconciler) observeNeeds(ctx context.Context, s *scope, others versions.List) error {
	found := cluster{Others: others}
	var err error
	if found.CRDs, err = r.readCRDs(ctx, s.CSV); err != nil {
		return err
	}
	if found.APIs, err = r.observeAPIs(ctx, s); err != nil {
		return err
	}
	if found.Accounts, err = r.readAccounts(ctx, s.CSV); err != nil {
		return err
	}
	if found.RBAC, err = (rbacReader{cached: r.client, live: r.live}).read(ctx, s.CSV.Namespace); err != nil {
		return err
	}
	if s.CSV.Spec.MinKubeVersion != "" {
		if found.Version, err = r.serverVersion(); err != nil {
			return fmt.Errorf("asking the API server for its version: %w", err)
		}
	}
	s.Requirements = requirements(s.CSV, found)
	s.rbac = found.RBAC
	s.lift = desiredLift(s.CSV, isGlobal(s.Groups), found.RBAC)
	var lookup error
	s.ClusterRBAC = liftState(s.CSV, s.lift, found.RBAC, func(labels map[string]string) bool {
		lives, err := r.ownerLives(ctx, labels)
		if err != nil {
			lookup = err
		}
		return lives
	})
	return lookup
}

// ownerLives reports whether the owner in an object's labels exists. It returns true for an object
// without such labels, whose owner is unknown.
func (r *reconciler) ownerLives(ctx context.Context, labels map[string]string) (bool, error) {
	owner, ok := ownership.Of(labels)
	if !ok {
		return true, nil
	}
	var csv operatorsv1alpha1.ClusterServiceVersion
	err := r.client.Get(ctx, owner, &csv)
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

func (r *reconciler) readCRDs(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (crdsByName, error) {
	out := crdsByName{}
	for _, d := range csv.GetAllCRDDescriptions() {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.crds.Get(ctx, client.ObjectKey{Name: d.Name}, crd, readOnly)
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

func (r *reconciler) readAccounts(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (accountsByName, error) {
	out := accountsByName{}
	for name := range accountNeeds(csv) {
		account := accountMetadata()
		err := r.client.Get(ctx, client.ObjectKey{Namespace: csv.Namespace, Name: name}, account)
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

// observeComponents reads the Deployments. When the desired ones cannot be derived, it reads those
// of the declared names.
func (r *reconciler) observeComponents(ctx context.Context, s *scope, others versions.List) error {
	config, invalid, err := r.readSettings(ctx, s.CSV)
	if err != nil {
		return err
	}
	s.settings = config
	live, err := r.deriveDeployments(ctx, s)
	if err != nil {
		return err
	}
	s.Components = components(s.CSV, s.deployments, live, others, cmp.Or(invalid, s.webhooks.Withheld()))
	return r.observeRefusal(ctx, s)
}

// deriveDeployments derives the desired Deployments and returns the existing ones by name. An
// equivalent Deployment of another lifecycle manager stays in its form.
func (r *reconciler) deriveDeployments(ctx context.Context, s *scope) (live map[string]*appsv1.Deployment, err error) {
	if s.deployments, err = s.derive(s.settings); err != nil {
		return nil, err
	}
	live = map[string]*appsv1.Deployment{}
	for i, want := range s.deployments {
		have, err := r.readDeployment(ctx, want, hasBegun(s.CSV))
		if err != nil {
			return nil, err
		}
		if have == nil {
			continue
		}
		live[want.Name] = have
		same, err := s.inherited(want, have)
		if err != nil {
			return nil, err
		}
		if same != nil {
			s.deployments[i] = same
		}
	}
	return live, nil
}

// observePin reads whether a Subscription is pinned to the successor of a version.
func (r *reconciler) observePin(ctx context.Context, s *scope) error {
	if s.Replacement.Successor == nil {
		return nil
	}
	var subs operatorsv1alpha1.SubscriptionList
	if err := r.client.List(ctx, &subs, client.InNamespace(s.CSV.Namespace), readOnly); err != nil {
		return fmt.Errorf("listing Subscriptions in namespace %s: %w", s.CSV.Namespace, err)
	}
	s.Replacement.Pinned = slices.ContainsFunc(subs.Items, func(sub operatorsv1alpha1.Subscription) bool {
		return api.PinnedVersion(sub.Annotations) == s.Replacement.Successor.Name
	})
	return nil
}

// readSettings returns the settings of a Subscription for the Deployments, or why they are invalid.
func (r *reconciler) readSettings(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (s settings, invalid string, err error) {
	var subs operatorsv1alpha1.SubscriptionList
	if err := r.client.List(ctx, &subs, client.InNamespace(csv.Namespace), readOnly); err != nil {
		return settings{}, "", fmt.Errorf("listing Subscriptions in namespace %s: %w", csv.Namespace, err)
	}
	sub := subscriptionOf(csv, subs.Items)
	if sub != nil && informer.Trimmed(sub) {
		// The cache lacks a large configuration, which the Deployments need.
		key := client.ObjectKeyFromObject(sub)
		sub = &operatorsv1alpha1.Subscription{}
		if err := r.live.Get(ctx, key, sub); err != nil {
			return settings{}, "", fmt.Errorf("reading the whole of Subscription %s: %w", key, err)
		}
	}
	s, err = settingsOf(sub)
	if err != nil {
		return settings{}, err.Error(), nil //nolint:nilerr // It is what is wrong with the Subscription, and said as such.
	}
	s, err = r.withProxies(s)
	return s, "", err
}

// hasBegun reports whether Deployments of a version may have been written after the cache read
// them. Before its installation begins, the version writes none.
func hasBegun(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	switch csv.Status.Phase {
	case operatorsv1alpha1.CSVPhaseNone, operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstallReady:
		return false
	default:
		return true
	}
}

// readDeployment returns the existing Deployment for a desired one, nil when there is none. Where
// the version has begun to install, it reads the API if the cache has no Deployment, or one with
// another hash. Right after an installation, the cache still has the former state, which would
// cause another installation.
func (r *reconciler) readDeployment(ctx context.Context, want *appsv1.Deployment, begun bool) (*appsv1.Deployment, error) {
	have := &appsv1.Deployment{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(want), have) // is whole: see package informer
	if err == nil && (!begun || have.Labels[api.LabelDeploymentHash] == want.Labels[api.LabelDeploymentHash]) {
		return have, nil
	}
	if apierrors.IsNotFound(err) && !begun {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	have = &appsv1.Deployment{}
	err = r.live.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	if err != nil {
		return nil, fmt.Errorf("getting Deployment %s/%s: %w", want.Namespace, want.Name, err)
	}
	return have, nil
}
