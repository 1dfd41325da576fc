package installplan

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// applyCRD applies a CustomResourceDefinition and waits, over passes, until the
// API server serves it. before is the step's status so far: one that this plan
// has been waiting for was not there when the plan began, and is only read.
func (e *execution) applyCRD(ctx context.Context, u *unstructured.Unstructured, before operatorsv1alpha1.StepStatus) (operatorsv1alpha1.StepStatus, error) {
	if before == operatorsv1alpha1.StepStatusWaitingForAPI {
		live, err := e.readCRD(ctx, u)
		if !apierrors.IsNotFound(err) {
			return crdStatus(live, operatorsv1alpha1.StepStatusCreated, err)
		}
	}
	result, err := apply.Object(ctx, e.client, u)
	if err != nil {
		return "", err
	}
	live, err := e.readCRD(ctx, u)
	return crdStatus(live, statusOf(result), err)
}

func (e *execution) readCRD(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(u.GroupVersionKind())
	if err := e.client.Get(ctx, client.ObjectKeyFromObject(u), live); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s back: %w", u.GetName(), err)
	}
	return live, nil
}

// crdStatus is what has become of a CustomResourceDefinition as it was read:
// done once it is served.
func crdStatus(live *unstructured.Unstructured, done operatorsv1alpha1.StepStatus, err error) (operatorsv1alpha1.StepStatus, error) {
	if err != nil {
		return "", err
	}
	if message, refused := namesRefused(live); refused {
		return "", fmt.Errorf("%w: %s; remove the CustomResourceDefinition that has them, or ask for a bundle whose CustomResourceDefinition %s has other names",
			errNamesRefused, message, live.GetName())
	}
	if !established(live) {
		return operatorsv1alpha1.StepStatusWaitingForAPI, nil
	}
	return done, nil
}

// namesRefused says whether another CustomResourceDefinition has the names of
// this one, and which.
func namesRefused(crd *unstructured.Unstructured) (message string, refused bool) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "NamesAccepted" && condition["status"] == string(metav1.ConditionFalse) {
			message, _ = condition["message"].(string)
			return message, true
		}
	}
	return "", false
}

// established says whether the API server serves a CustomResourceDefinition.
func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	met := 0
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["status"] != string(metav1.ConditionTrue) {
			continue
		}
		if condition["type"] == "Established" || condition["type"] == "NamesAccepted" {
			met++
		}
	}
	return met == 2
}
