package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// ourManager is the prefix of the field managers of this project's programs.
	ourManager = "chandlery"
	// labelManagedBy identifies the replicas of a catalog that this project created.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "chandlery-supervisor"
	// keyAuthorities is the key in the ConfigMap with the authorities of a catalog that serves TLS.
	keyAuthorities = "ca.crt"
)

// objectsByKey holds the live objects, by kind, namespace and name.
type objectsByKey map[string]*unstructured.Unstructured

func (i objectsByKey) add(objects []*unstructured.Unstructured) {
	for _, o := range objects {
		i[objectKey(o)] = o
	}
}

func objectKey(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// restoration returns the operations that restore the cluster to the state in which OLM left it. Recorded
// objects that this project has changed or deleted are restored. Objects that it created in their place are
// deleted, and its marks on all other objects are removed. An object whose version or catalog no longer exists
// remains as it is.
func restoration(recorded []*unstructured.Unstructured, live objectsByKey) []Operation {
	created, replaced, restored := restoreRecorded(recorded, live)
	var removed, stripped, cleared []Operation
	for _, key := range slices.Sorted(maps.Keys(live)) {
		o := live[key]
		switch {
		case restored[key], isOfRecord(o):
		case o.GetDeletionTimestamp() != nil:
			if addedFinalizers(o) != nil {
				stripped = append(stripped, removal(o, apply.MetadataKeys{Finalizers: addedFinalizers(o)}))
			}
		case isForCatalog(o), isUnplanned(o), replacesBinding(o, recorded, live), servesPackages(o):
			removed = append(removed, newOperation(Delete, o, nil))
		default:
			if keys := addedKeys(o); !keys.Empty() {
				stripped = append(stripped, removal(o, keys))
			}
			if want := withoutConditions(o); want != nil {
				cleared = append(cleared, newOperation(RemoveConditions, o, want))
			}
		}
	}
	// Pods come early: they take time to serve.
	early := []string{"Pod", "ServiceAccount"}
	slices.SortStableFunc(created, func(a, b Operation) int { return slices.Index(early, b.Kind) - slices.Index(early, a.Kind) })
	return slices.Concat(created, replaced, removed, stripped, cleared)
}

// restoreRecorded returns the operations for recorded objects. restored are the keys of those whose owner still
// exists.
func restoreRecorded(recorded []*unstructured.Unstructured, live objectsByKey) (created, replaced []Operation, restored map[string]bool) {
	restored = map[string]bool{}
	for _, before := range recorded {
		if !isOwned(before, live) {
			continue
		}
		restored[objectKey(before)] = true
		now := live[objectKey(before)]
		switch {
		case now == nil:
			created = append(created, newOperation(Create, nil, recreated(before)))
		case before.GetKind() != "Pod" && isWrittenByUs(now):
			if want := withAuthorities(before, now); !isEqual(want, now) {
				replaced = append(replaced, newOperation(ReplaceContent, now, replacement(want, now)))
			}
		}
	}
	return created, replaced, restored
}

// isOwned reports whether an owner of a recorded object still exists. An owner reference is compared by its UID, and a
// version in labels by its name.
func isOwned(recorded *unstructured.Unstructured, live objectsByKey) bool {
	uids := map[string]bool{}
	for _, ref := range recorded.GetOwnerReferences() {
		key := ref.Kind + " " + recorded.GetNamespace() + "/" + ref.Name
		if recorded.GetNamespace() == "" {
			key = ref.Kind + " /" + ref.Name
		}
		if o := live[key]; o != nil && o.GetUID() == ref.UID {
			uids[string(ref.UID)] = true
		}
	}
	if len(recorded.GetOwnerReferences()) > 0 {
		return len(uids) > 0
	}
	labels := recorded.GetLabels()
	if labels[api.LabelOwner] == "" {
		return true
	}
	return live[labels[api.LabelOwnerKind]+" "+labels[api.LabelOwnerNamespace]+"/"+labels[api.LabelOwner]] != nil
}

// isCopy reports whether a ConfigMap is a copy that this project created: it made it immutable. The ConfigMap of a user has the
// CatalogSource as owner, too, and this project may have written that.
func isCopy(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(f.Manager, ourManager) && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:immutable":`)
	})
}

// isWrittenByUs reports whether this project has written to an object.
func isWrittenByUs(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(f.Manager, ourManager) && f.Subresource == ""
	})
}

// isEqual reports whether an object equals its recorded form.
func isEqual(recorded, now *unstructured.Unstructured) bool {
	return reflect.DeepEqual(comparedForm(recorded), comparedForm(now))
}

func comparedForm(o *unstructured.Unstructured) map[string]any {
	i := recordedForm(o)
	unstructured.RemoveNestedField(i.Object, "metadata", "uid")
	if o.GetKind() == "ClusterRole" {
		// The cluster writes the rules of an aggregated role.
		if _, gathers := i.Object["aggregationRule"]; gathers {
			delete(i.Object, "rules")
		}
	}
	return i.Object
}

// recreated returns a recorded object in the form in which it is created again.
func recreated(recorded *unstructured.Unstructured) *unstructured.Unstructured {
	o := recorded.DeepCopy()
	o.SetUID("")
	if o.GetKind() != "Service" {
		return o
	}
	// Another Service may have the address.
	if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); ip != "None" {
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
	}
	return o
}

// replacement returns a recorded object in the form in which it replaces the live object.
func replacement(recorded, now *unstructured.Unstructured) *unstructured.Unstructured {
	o := recorded.DeepCopy()
	o.SetUID(now.GetUID())
	o.SetResourceVersion(now.GetResourceVersion())
	if o.GetKind() == "Service" {
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			if value, found, _ := unstructured.NestedFieldCopy(now.Object, "spec", field); found {
				_ = unstructured.SetNestedField(o.Object, value, "spec", field)
			}
		}
	}
	if _, gathers := o.Object["aggregationRule"]; gathers {
		o.Object["rules"] = now.Object["rules"]
	}
	return o
}

// isOfRecord reports whether an object is a part of the record, which is deleted at the end.
func isOfRecord(o *unstructured.Unstructured) bool { return o.GetLabels()[api.LabelRecord] != "" }

// servesPackages reports whether an object is the APIService with which the supervisors serve PackageManifests. Without a server,
// it would block the deletion of namespaces.
func servesPackages(o *unstructured.Unstructured) bool {
	return o.GetKind() == kindAPIService && o.GetLabels()["app.kubernetes.io/part-of"] == "chandlery"
}

// leadsElsewhere reports whether an APIService leads to another Service than its recorded form. The supervisors took it over
// with their own authority.
func leadsElsewhere(recorded, now *unstructured.Unstructured) bool {
	before, _, _ := unstructured.NestedStringMap(recorded.Object, "spec", "service")
	service, _, _ := unstructured.NestedStringMap(now.Object, "spec", "service")
	return before["name"] != service["name"] || before["namespace"] != service["namespace"]
}

// withAuthorities returns a recorded object with the certificate authorities of the live object. A certificate may have been
// renewed, and its Secret is not restored.
func withAuthorities(recorded, now *unstructured.Unstructured) *unstructured.Unstructured {
	o := recorded.DeepCopy()
	if o.GetKind() == kindAPIService {
		if leadsElsewhere(recorded, now) {
			return o
		}
		if ca, found, _ := unstructured.NestedString(now.Object, "spec", "caBundle"); found {
			_ = unstructured.SetNestedField(o.Object, ca, "spec", "caBundle")
		}
		return o
	}
	live := map[string]string{}
	webhooks, _, _ := unstructured.NestedSlice(now.Object, "webhooks")
	for _, one := range webhooks {
		if w, is := one.(map[string]any); is {
			ca, _, _ := unstructured.NestedString(w, "clientConfig", "caBundle")
			live[fmt.Sprint(w["name"])] = ca
		}
	}
	webhooks, found, _ := unstructured.NestedSlice(o.Object, "webhooks")
	if !found {
		return o
	}
	for _, one := range webhooks {
		if w, is := one.(map[string]any); is && live[fmt.Sprint(w["name"])] != "" {
			_ = unstructured.SetNestedField(w, live[fmt.Sprint(w["name"])], "clientConfig", "caBundle")
		}
	}
	_ = unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
	return o
}

// isForCatalog reports whether this project creates an object for a catalog and OLM does not.
func isForCatalog(o *unstructured.Unstructured) bool {
	if ownerOf(o, "CatalogSource") == nil {
		return false
	}
	switch o.GetKind() {
	case "Deployment":
		return o.GetLabels()[labelManagedBy] == managedBy
	case "PodDisruptionBudget", "Secret":
		return isWrittenByUs(o)
	case "ConfigMap":
		return isCopy(o) || wroteField(o, "f:data", "f:"+keyAuthorities)
	default:
		return false
	}
}

// isUnplanned reports whether an object is an InstallPlan of this project without steps. OLM does not continue it.
func isUnplanned(o *unstructured.Unstructured) bool {
	if o.GetKind() != operatorsv1alpha1.InstallPlanKind || !isWrittenByUs(o) {
		return false
	}
	steps, _, _ := unstructured.NestedSlice(o.Object, "status", "plan")
	switch operatorsv1alpha1.InstallPlanPhase(field("status", "phase")(o)) {
	case operatorsv1alpha1.InstallPlanPhaseNone, operatorsv1alpha1.InstallPlanPhasePlanning:
		return len(steps) == 0
	default:
		return false
	}
}

// deleteObject deletes an object that was not recreated, after its dependents. An InstallPlan that was changed stays.
func deleteObject(ctx context.Context, c client.Client, o *unstructured.Unstructured) error {
	if o.GetKind() == operatorsv1alpha1.InstallPlanKind {
		return apply.DeleteIf(ctx, c, o, apply.SameVersion(o))
	}
	return apply.DeleteIf(ctx, c, o, apply.SameUID(o), client.PropagationPolicy("Foreground"))
}

// isBinding reports whether a kind grants a role.
func isBinding(kind string) bool { return kind == "ClusterRoleBinding" || kind == "RoleBinding" }

// replacesBinding reports whether an object is a binding that this project created in place of one that is restored.
func replacesBinding(o *unstructured.Unstructured, recorded []*unstructured.Unstructured, live objectsByKey) bool {
	if !isBinding(o.GetKind()) || !isWrittenByUs(o) {
		return false
	}
	namespace := o.GetLabels()[api.LabelOwnerNamespace]
	before := strings.Replace(o.GetName(), "-service."+namespace+"-", "-service-", 1)
	if namespace == "" || before == o.GetName() {
		return false
	}
	return slices.ContainsFunc(recorded, func(r *unstructured.Unstructured) bool {
		return r.GetKind() == o.GetKind() && r.GetNamespace() == o.GetNamespace() && r.GetName() == before &&
			reflect.DeepEqual(r.Object["subjects"], o.Object["subjects"]) && isOwned(r, live)
	})
}

// addedKeys returns the labels, annotations and finalizers that this project set on an object. Those of users remain. The
// number of OLM's replicas is removed when OLM is scaled up again.
func addedKeys(o *unstructured.Unstructured) apply.MetadataKeys {
	added := func(field string, values map[string]string) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(key string) bool {
			return !isUnknownToOLM(o.GetKind(), key) || !isSetByUs(o, field, key)
		})
	}
	return apply.MetadataKeys{
		Labels: added("labels", o.GetLabels()), Annotations: added("annotations", o.GetAnnotations()), Finalizers: addedFinalizers(o),
	}
}

// addedFinalizers returns the finalizers of an object that OLM does not know. Without supervisors, they would block its
// deletion forever.
func addedFinalizers(o *unstructured.Unstructured) []string {
	if slices.Contains(o.GetFinalizers(), api.FinalizerUninstall) {
		return []string{api.FinalizerUninstall}
	}
	return nil
}

// isUnknownToOLM reports whether OLM does not set a label or annotation on objects of a kind.
func isUnknownToOLM(kind, key string) bool {
	switch {
	case strings.HasPrefix(key, api.Prefix):
		return key != api.LabelTakenOver
	case kind == operatorsv1alpha1.ClusterServiceVersionKind:
		return strings.HasPrefix(key, api.PrefixAPI)
	case kind == "Secret":
		return key == api.LabelOwner || key == api.LabelOwnerKind || key == api.LabelOwnerNamespace
	default:
		return kind == "OperatorCondition" && key == api.LabelManaged
	}
}

// isSetByUs reports whether this project set a label or annotation.
func isSetByUs(o *unstructured.Unstructured, field, key string) bool {
	return wroteField(o, "f:metadata", "f:"+field, "f:"+key)
}

// wroteField reports whether this project wrote a field, by its path in managed fields.
func wroteField(o *unstructured.Unstructured, path ...string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		if !strings.HasPrefix(f.Manager, ourManager) || f.FieldsV1 == nil {
			return false
		}
		var fields map[string]any
		if json.Unmarshal([]byte(f.FieldsV1.GetRawString()), &fields) != nil {
			return false
		}
		_, found, _ := unstructured.NestedFieldNoCopy(fields, path...)
		return found
	})
}

// addedConditions returns the types of conditions of a kind that OLM neither writes nor removes.
func addedConditions(kind string) []string {
	switch kind {
	case operatorsv1alpha1.CatalogSourceKind:
		return []string{
			api.ConditionAvailable, api.ConditionProgressing, api.ConditionContentWarnings, api.ConditionImageSettingsInvalid, api.ConditionConnectionSecured,
			api.ConditionPackageManifestsIncomplete,
		}
	case operatorsv1alpha1.SubscriptionKind:
		return []string{
			api.ConditionVersionUnhealthy, api.ConditionNewerVersionHeld, api.ConditionConfigInvalid, api.ConditionBlocked, api.ConditionUninstalling,
		}
	case operatorsv1.OperatorGroupKind:
		return []string{api.ConditionTargetsResolved}
	case "OLMConfig":
		return []string{api.ConditionIneffectiveSettings}
	default:
		return nil
	}
}

// withoutConditions returns an object without the conditions that OLM does not know; nil if it has none of them.
func withoutConditions(o *unstructured.Unstructured) *unstructured.Unstructured {
	added := addedConditions(o.GetKind())
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	kept := slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
		condition, _ := c.(map[string]any)
		kind, _ := condition["type"].(string)
		return slices.Contains(added, kind)
	})
	if len(kept) == len(conditions) {
		return nil
	}
	out := o.DeepCopy()
	if len(kept) == 0 {
		unstructured.RemoveNestedField(out.Object, "status", "conditions")
		return out
	}
	_ = unstructured.SetNestedSlice(out.Object, kept, "status", "conditions")
	return out
}
