package operatorgroup

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// ForeignRoleReason is the reason of the Event for a cluster role of another owner that has the
// name of a role for an API.
const ForeignRoleReason = "ForeignClusterRole"

// apiRolesReconciler creates the cluster roles for the APIs that ClusterServiceVersions provide.
// The object that serves an API owns its roles. Users therefore have access to custom resources as
// long as these exist.
type apiRolesReconciler struct {
	client client.Client
	live   client.Reader
	roles  roleWriter
	events events.EventRecorder
}

// Reconcile creates and updates the roles for the APIs of one ClusterServiceVersion.
func (r *apiRolesReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := r.client.Get(ctx, req.NamespacedName, csv, readOnly); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if isCopied(csv) || !csv.DeletionTimestamp.IsZero() || !isVerified(csv) {
		return ctrl.Result{}, nil
	}
	var problems []error
	for _, s := range providedAPIs(csv) {
		problems = append(problems, r.ensure(ctx, csv, s))
	}
	return apply.RequeueConflict(errors.Join(problems...))
}

// isVerified reports whether the phase of a ClusterServiceVersion implies that its APIs have been
// verified.
func isVerified(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	switch csv.Status.Phase {
	case operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVPhaseInstalling,
		operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVPhaseReplacing:
		return true
	default:
		return false
	}
}

// ensure creates and updates the roles for one API. It reads the owner only if a write is
// necessary.
func (r *apiRolesReconciler) ensure(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, s providedAPI) error {
	var owner *metav1.OwnerReference
	for _, want := range s.roles() {
		have, err := r.roles.get(ctx, want.Name)
		switch {
		case err != nil:
			return err
		case have == nil:
		case r.roles.isStale(have), s.sameAPIRole(want, have):
			continue
		case s.isOwnedByOther(have):
			r.reportOtherOwner(ctx, csv, s, want.Name)
			continue
		}
		if owner == nil {
			if owner, err = r.servingObject(ctx, s); err != nil {
				return err
			}
			if owner == nil {
				return nil
			}
		}
		want.OwnerReferences = []metav1.OwnerReference{*owner}
		result, err := r.roles.createOrUpdate(ctx, want, have)
		if err != nil {
			return fmt.Errorf("writing the roles for API %s: %w", s.API, err)
		}
		logf.FromContext(ctx).Info("Wrote a ClusterRole for an API", "clusterRole", want.Name, "api", s.API.String(), "result", result)
	}
	return nil
}

func (r *apiRolesReconciler) reportOtherOwner(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, s providedAPI, name string) {
	message := fmt.Sprintf("ClusterRole %s is needed for users of API %s and has another owner; the supervisor does not change it: "+
		"rename or delete it, or grant access to the API in another way", name, s.API)
	logf.FromContext(ctx).Info("Kept a ClusterRole of another owner", "clusterRole", name, "api", s.API.String())
	r.events.Eventf(csv.DeepCopy(), nil, corev1.EventTypeWarning, ForeignRoleReason, "ProvideRoles", "%s", message)
}

// servingObject returns the owner reference to the object that serves an API. It returns nil if the object
// does not exist or does not match the ClusterServiceVersion. In that case, the operator's
// installation waits, and its next phase triggers another reconciliation.
func (r *apiRolesReconciler) servingObject(ctx context.Context, s providedAPI) (*metav1.OwnerReference, error) {
	if s.ServerKind == kindCRD {
		return r.crdOwner(ctx, s)
	}
	gvk := schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: kindAPIService}
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(gvk)
	err := r.live.Get(ctx, client.ObjectKey{Name: s.Server}, service)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	if err != nil {
		return nil, fmt.Errorf("getting APIService %s: %w", s.Server, err)
	}
	return reference(gvk, service), nil
}

func (r *apiRolesReconciler) crdOwner(ctx context.Context, s providedAPI) (*metav1.OwnerReference, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: s.Server}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Absence is an answer here, and documented.
	}
	if err != nil {
		return nil, fmt.Errorf("getting CustomResourceDefinition %s: %w", s.Server, err)
	}
	if problem := s.mismatch(crd); problem != "" {
		logf.FromContext(ctx).Info("Created no roles for an API that its ClusterServiceVersion declares incorrectly", "crd", s.Server, "problem", problem)
		return nil, nil //nolint:nilnil // The same.
	}
	return reference(apiextensionsv1.SchemeGroupVersion.WithKind(kindCRD), crd), nil
}

// reference returns an owner reference that does not block the owner's deletion.
func reference(gvk schema.GroupVersionKind, owner metav1.Object) *metav1.OwnerReference {
	return &metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
}
