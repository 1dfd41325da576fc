package olmobjects

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Propose creates an operator in the state after OLM has planned and not yet installed it. The
// InstallPlan waits for approval if the Subscription requires it, and is in progress otherwise. Its
// manifests are in the ConfigMap of an unpacked bundle.
func (w Writer) Propose(ctx context.Context, o Operator) error {
	if err := w.MakeNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	if _, err := w.group(ctx, &o); err != nil {
		return err
	}
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Package, Labels: o.component()},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.Package, Channel: o.Channel, CatalogSource: o.Catalog, CatalogSourceNamespace: Namespace, InstallPlanApproval: o.Approval,
		},
	}
	if err := w.Client.Create(ctx, sub, byPerson); err != nil {
		return fmt.Errorf("making Subscription %s: %w", o.Package, err)
	}
	if err := w.unpacked(ctx, &o); err != nil {
		return err
	}
	plan := o.plan(sub)
	plan.Status.Phase, plan.Status.Conditions = operatorsv1alpha1.InstallPlanPhaseInstalling, nil
	if o.Approval == operatorsv1alpha1.ApprovalManual {
		plan.Status.Phase, plan.Spec.Approved, plan.Status.StartTime = operatorsv1alpha1.InstallPlanPhaseRequiresApproval, false, nil
	}
	for _, step := range plan.Status.Plan {
		step.Status = operatorsv1alpha1.StepStatusUnknown
	}
	if err := w.create(ctx, byCatalog, plan); err != nil {
		return err
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	sub.Status = operatorsv1alpha1.SubscriptionStatus{
		CurrentCSV: o.Version.Name, State: operatorsv1alpha1.SubscriptionStateUpgradePending, LastUpdated: now, InstallPlanGeneration: 1,
		InstallPlanRef: &corev1.ObjectReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.InstallPlanKind,
			Namespace: plan.Namespace, Name: plan.Name, UID: plan.UID, ResourceVersion: plan.ResourceVersion,
		},
		Install: &operatorsv1alpha1.InstallPlanReference{
			APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.InstallPlanKind, Name: plan.Name, UID: plan.UID,
		},
		Conditions: []operatorsv1alpha1.SubscriptionCondition{{
			Type: operatorsv1alpha1.SubscriptionInstallPlanPending, Status: corev1.ConditionTrue, Reason: string(plan.Status.Phase), LastTransitionTime: &now,
		}},
	}
	if err := w.Client.Status().Update(ctx, sub, byCatalog); err != nil {
		return fmt.Errorf("writing the status of Subscription %s: %w", sub.Name, err)
	}
	return nil
}

// unpacked creates the ConfigMap with the content of an operator's bundle.
func (w Writer) unpacked(ctx context.Context, o *Operator) error {
	source := &operatorsv1alpha1.CatalogSource{}
	if err := w.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: o.Catalog}, source); err != nil {
		return fmt.Errorf("reading a CatalogSource: %w", err)
	}
	content := map[string]string{}
	objects := []any{o.Version}
	for _, crd := range o.Definitions {
		objects = append(objects, crd)
	}
	for i, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return fmt.Errorf("encoding a manifest: %w", err)
		}
		content[fmt.Sprintf("manifest-%d.yaml", i)] = string(text)
	}
	return w.create(ctx, byCatalog, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: unpackName(o.Version.Name), Labels: map[string]string{"olm.managed": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.CatalogSourceKind,
				Name: source.Name, UID: source.UID, Controller: new(false), BlockOwnerDeletion: new(false),
			}},
		},
		Data: content,
	})
}
