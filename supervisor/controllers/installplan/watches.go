package installplan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// indexUnfinished is the field index of plans that may continue.
const indexUnfinished = "installplan/unfinished"

// The values of indexUnfinished. A cluster-scoped role or binding concerns only plans with an account. Many
// change while an operator is installed in many namespaces, where most plans have no account.
const (
	indexedPlan    = "any"      // of each plan that may continue
	indexedAccount = "account"  // also of a plan that is executed with the permissions of an account
	indexedWaiting = "approval" // of each plan that waits for approval
)

// addIndex adds the index by which events find the plans that they concern.
func addIndex(to client.FieldIndexer) error {
	ctx := context.Background() //nolint:forbidigo // Indexes are added before anything runs, and adding them waits for nothing.
	if err := to.IndexField(ctx, &operatorsv1alpha1.InstallPlan{}, indexUnfinished, unfinished); err != nil {
		return fmt.Errorf("indexing unfinished InstallPlans: %w", err)
	}
	return nil
}

func unfinished(o client.Object) []string {
	p, is := o.(*operatorsv1alpha1.InstallPlan)
	switch {
	case is && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		return []string{indexedWaiting}
	case !is, p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseInstalling && !mayRecover(p):
		return nil
	case p.Status.AttenuatedServiceAccountRef == nil:
		return []string{indexedPlan}
	default:
		return []string{indexedPlan, indexedAccount}
	}
}

// definitionChanged accepts the creation and deletion of a definition, and changes of its specification or
// status.
func definitionChanged() predicate.TypedPredicate[*apiextensionsv1.CustomResourceDefinition] {
	return predicate.TypedFuncs[*apiextensionsv1.CustomResourceDefinition]{
		UpdateFunc: func(e event.TypedUpdateEvent[*apiextensionsv1.CustomResourceDefinition]) bool {
			return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation ||
				!equality.Semantic.DeepEqual(e.ObjectOld.Status, e.ObjectNew.Status)
		},
	}
}

// planOfSubscription returns the plan that a Subscription refers to. The plan may wait until the
// Subscription shows its phase.
func planOfSubscription(_ context.Context, o client.Object) []reconcile.Request {
	sub, ok := o.(*operatorsv1alpha1.Subscription)
	if !ok || sub.Status.InstallPlanRef == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: sub.Namespace, Name: sub.Status.InstallPlanRef.Name}}}
}

// planMapper maps changed objects to the plans that may continue.
type planMapper struct {
	client  client.Reader
	records *planRecords
}

// inNamespace returns the plans that may wait for a change of the OperatorGroups of their
// namespace.
func (m *planMapper) inNamespace(ctx context.Context, group client.Object) []reconcile.Request {
	all := func(*operatorsv1alpha1.InstallPlan) bool { return true }
	return append(m.requests(ctx, group.GetNamespace(), indexedPlan, all), m.requests(ctx, group.GetNamespace(), indexedWaiting, all)...)
}

// withAccount returns the plans that are executed with the permissions of a ServiceAccount, or may wait
// for its creation.
func (m *planMapper) withAccount(ctx context.Context, o client.Object) []reconcile.Request {
	executed := m.requests(ctx, o.GetNamespace(), indexedAccount, func(p *operatorsv1alpha1.InstallPlan) bool {
		ref := p.Status.AttenuatedServiceAccountRef
		return ref != nil && ref.Name == o.GetName()
	})
	return append(executed, m.requests(ctx, o.GetNamespace(), indexedWaiting, func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Reason == operatorsv1alpha1.InstallPlanReasonInstallCheckFailed
	})...)
}

// withPermissions returns the plans that are executed with the permissions of an account which a role or
// binding may have changed.
func (m *planMapper) withPermissions(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[api.LabelGrant] != "" {
		// The supervisor creates and deletes such objects for itself only.
		return nil
	}
	subjects, bound := impersonate.Subjects(o)
	return m.requests(ctx, o.GetNamespace(), indexedAccount, func(p *operatorsv1alpha1.InstallPlan) bool {
		ref := p.Status.AttenuatedServiceAccountRef
		return ref != nil && (!bound || impersonate.IsBound(subjects, ref.Namespace, ref.Name))
	})
}

// awaitingKind returns the plans with a remaining step that a CustomResourceDefinition may
// unblock. Such a step is of its API group, or defines another kind of that group whose names may
// be free now.
func (m *planMapper) awaitingKind(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) []reconcile.Request {
	plural, group, ok := strings.Cut(crd.GetName(), ".")
	if !ok {
		return nil
	}
	return m.requests(ctx, "", indexedPlan, func(p *operatorsv1alpha1.InstallPlan) bool {
		return slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
			defines := s.Resource.Kind == kindCRD && strings.HasSuffix(s.Resource.Name, "."+group) && s.Resource.Name != plural+"."+group
			return !plansteps.IsApplied(s.Status) && (s.Resource.Group == group || defines)
		})
	})
}

// requests returns the unfinished plans of a namespace, or of all, that have a value in the index and that the
// function selects. It also removes their pause.
func (m *planMapper) requests(ctx context.Context, namespace, value string, concerned func(*operatorsv1alpha1.InstallPlan) bool) []reconcile.Request {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := m.client.List(ctx, plans, client.InNamespace(namespace), client.MatchingFields{indexUnfinished: value}, readOnly); err != nil {
		log.FromContext(ctx).Error(err, "Listing unfinished InstallPlans", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range plans.Items {
		p := &plans.Items[i]
		if !concerned(p) {
			continue
		}
		key := client.ObjectKeyFromObject(p)
		m.records.trigger(key)
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}
