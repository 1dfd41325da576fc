package migration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// kindAPIService is the kind of APIs that other servers serve.
const kindAPIService = "APIService"

// Inventory holds what a migration must not change, by kind, namespace and name: the operators with their pods, what calls
// them, and what users see of them.
type Inventory map[string]Item

// Item is the state of one object.
type Item struct {
	// Namespace is the namespace of the object or of its operator.
	Namespace string `json:"namespace,omitempty"`
	// State is what must stay.
	State string `json:"state"`
	// Own is true for the API that the supervisors serve. It comes and goes with them, unless OLM serves it.
	Own bool `json:"own,omitempty"`
	// UID identifies a ClusterServiceVersion or an APIService. Broken is true while it does not work.
	UID    types.UID `json:"uid,omitempty"`
	Broken bool      `json:"broken,omitempty"`
	// Version is the ClusterServiceVersion of the object, as NAMESPACE/NAME; empty for none.
	Version string `json:"version,omitempty"`
}

// Difference is an object that a migration has changed.
type Difference struct {
	Object string `json:"object"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Expected is true if the object is in a namespace whose InstallPlan was in progress.
	Expected bool `json:"expected,omitempty"`
	// Recovered is true if the object did not work before, and works now.
	Recovered bool `json:"recovered,omitempty"`
}

// ReadInventory reads the inventory of a cluster.
func ReadInventory(ctx context.Context, c client.Reader) (Inventory, error) {
	const admission = "admissionregistration.k8s.io"
	found := Inventory{}
	var missing missingPermissions
	for gvk, state := range map[schema.GroupVersionKind]func(*unstructured.Unstructured) string{
		operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind): inventoryOfVersion,
		operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.SubscriptionKind):          inventoryOfSubscription,
		appsv1.SchemeGroupVersion.WithKind("Deployment"):                                           inventoryOfDeployment,
		{Group: admission, Version: "v1", Kind: "ValidatingWebhookConfiguration"}:                  inventoryOfOwned,
		{Group: admission, Version: "v1", Kind: "MutatingWebhookConfiguration"}:                    inventoryOfOwned,
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: kindAPIService}:                     inventoryOfAPIService,
	} {
		list, err := listAll(ctx, c, gvk)
		if missing.collect(err) != nil {
			return nil, err
		}
		for _, o := range list {
			if text := state(o); text != "" {
				item := Item{Namespace: namespaceOf(o), State: text, Own: servesPackages(o), Version: versionOf(o)}
				if works, knows := working(o); knows {
					item.UID, item.Broken = o.GetUID(), !works
				}
				found[objectKey(o)] = item
			}
			if gvk.Kind == "Deployment" && isOfVersion(o) {
				pods, err := inventoryOfPods(ctx, c, o)
				if missing.collect(err) != nil {
					return nil, err
				}
				maps.Copy(found, pods)
			}
		}
	}
	return found, missing.err()
}

// Without returns the inventory without the objects of ClusterServiceVersions, which are NAMESPACE/NAME.
func (i Inventory) Without(versions []string) Inventory {
	rest := maps.Clone(i)
	maps.DeleteFunc(rest, func(_ string, item Item) bool { return slices.Contains(versions, item.Version) })
	return rest
}

// PlansInProgress returns the InstallPlans in progress, as NAMESPACE/NAME.
func PlansInProgress(ctx context.Context, c client.Reader) ([]string, error) {
	counts, err := count(ctx, c)
	return counts.InProgress, err
}

// Differences returns the objects that differ from those of an earlier inventory, in their order. inProgress are the
// InstallPlans, as NAMESPACE/NAME, that were in progress.
func (i Inventory) Differences(before Inventory, inProgress []string) []Difference {
	var all []Difference
	for _, key := range slices.Sorted(maps.Keys(before)) {
		_, remains := i[key]
		if before[key].State != i[key].State && (remains || !before[key].Own) {
			all = append(all, Difference{
				Object: key, Before: before[key].State, After: i[key].State,
				Expected: isExpected(before[key], inProgress), Recovered: remains && recovered(before[key], i[key]),
			})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(i)) {
		if _, found := before[key]; !found && !i[key].Own {
			all = append(all, Difference{Object: key, After: i[key].State, Expected: isExpected(i[key], inProgress)})
		}
	}
	return all
}

// recovered reports whether an object did not work before, and works now.
func recovered(before, after Item) bool {
	return before.Broken && !after.Broken && before.UID != "" && before.UID == after.UID
}

func isExpected(item Item, inProgress []string) bool {
	return slices.ContainsFunc(inProgress, func(plan string) bool { return strings.HasPrefix(plan, item.Namespace+"/") })
}

// namespaceOf returns the namespace of an object or, for a cluster-scoped one, of the version that owns it.
func namespaceOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() != "" {
		return o.GetNamespace()
	}
	return o.GetLabels()[api.LabelOwnerNamespace]
}

// isOfVersion reports whether an object belongs to a ClusterServiceVersion.
func isOfVersion(o *unstructured.Unstructured) bool {
	return o.GetLabels()[api.LabelOwnerKind] == operatorsv1alpha1.ClusterServiceVersionKind
}

// versionOf returns the ClusterServiceVersion of an object, as NAMESPACE/NAME; empty for none.
func versionOf(o *unstructured.Unstructured) string {
	switch {
	case o.GetKind() == operatorsv1alpha1.ClusterServiceVersionKind:
		return o.GetNamespace() + "/" + o.GetName()
	case isOfVersion(o):
		return o.GetLabels()[api.LabelOwnerNamespace] + "/" + o.GetLabels()[api.LabelOwner]
	default:
		return ""
	}
}

func inventoryOfVersion(o *unstructured.Unstructured) string {
	if o.GetLabels()[operatorsv1alpha1.CopiedLabelKey] != "" {
		return ""
	}
	return fmt.Sprintf("%s, UID %s", field("status", "phase")(o), o.GetUID())
}

// working reports whether a ClusterServiceVersion or an APIService works. The second result is false for other kinds. A
// version that is replaced works.
func working(o *unstructured.Unstructured) (works, knows bool) {
	switch o.GetKind() {
	case operatorsv1alpha1.ClusterServiceVersionKind:
		phase := operatorsv1alpha1.ClusterServiceVersionPhase(field("status", "phase")(o))
		return phase == operatorsv1alpha1.CSVPhaseSucceeded || phase == operatorsv1alpha1.CSVPhaseReplacing, true
	case kindAPIService:
		return availability(o) == string(metav1.ConditionTrue), true
	}
	return false, false
}

func inventoryOfSubscription(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s of %s", field("status", "state")(o), field("status", "installedCSV")(o))
}

func inventoryOfDeployment(o *unstructured.Unstructured) string {
	if !isOfVersion(o) {
		return ""
	}
	return fmt.Sprintf("generation %d, UID %s", o.GetGeneration(), o.GetUID())
}

func inventoryOfOwned(o *unstructured.Unstructured) string {
	if !isOfVersion(o) {
		return ""
	}
	return "UID " + string(o.GetUID())
}

// inventoryOfAPIService returns whether an API of an operator or of the supervisors is served.
func inventoryOfAPIService(o *unstructured.Unstructured) string {
	if !isOfVersion(o) && !servesPackages(o) {
		return ""
	}
	if status := availability(o); status != "" {
		return fmt.Sprintf("Available %s, UID %s", status, o.GetUID())
	}
	return "UID " + string(o.GetUID())
}

// availability returns the status of the condition Available; empty if there is none.
func availability(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if c, is := one.(map[string]any); is && c["type"] == "Available" {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}

// inventoryOfPods returns the pods of the Deployment of an operator.
func inventoryOfPods(ctx context.Context, c client.Reader, d *unstructured.Unstructured) (Inventory, error) {
	labels, _, _ := unstructured.NestedStringMap(d.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 {
		return Inventory{}, nil
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(d.GetNamespace()), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing the pods of Deployment %s: %w", client.ObjectKeyFromObject(d), err)
	}
	found := Inventory{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "ReplicaSet" || pod.DeletionTimestamp != nil {
			continue
		}
		var restarts int32
		for j := range pod.Status.ContainerStatuses {
			restarts += pod.Status.ContainerStatuses[j].RestartCount
		}
		found["Pod "+pod.Namespace+"/"+pod.Name] = Item{Namespace: pod.Namespace, State: fmt.Sprintf("%d restarts, UID %s", restarts, pod.UID), Version: versionOf(d)}
	}
	return found, nil
}
