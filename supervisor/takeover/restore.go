package takeover

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// ourManager is the prefix of the field managers of this project's programs.
	ourManager = "chandlery"
	// labelManagedBy identifies the replicas of a catalog that this project created.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "chandlery-supervisor"
)

// Verb is what a handback does to an object.
type Verb string

// The verbs.
const (
	// Make creates a deleted object again.
	Make Verb = "Make"
	// Replace restores the recorded content of an object.
	Replace Verb = "Replace"
	// Remove deletes an object that OLM does not create.
	Remove Verb = "Remove"
	// Strip removes labels and annotations that OLM does not know.
	Strip Verb = "Strip"
)

// Operation is the change of a handback to one object.
type Operation struct {
	Verb      Verb   `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// live is the live object, and want the object to write: nil for Make and Remove respectively.
	live, want *unstructured.Unstructured
}

// inventory holds the live objects, by kind, namespace and name.
type inventory map[string]*unstructured.Unstructured

func keyOf(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

func newOperation(verb Verb, live, want *unstructured.Unstructured) Operation {
	o := live
	if o == nil {
		o = want
	}
	return Operation{Verb: verb, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), live: live, want: want}
}

// restoration returns the operations that restore the cluster to the state in which OLM left it. Recorded
// objects that this project has changed or deleted are restored. Objects that it created in their place are
// deleted, and its marks on all other objects are removed. An object whose version or catalog no longer exists
// remains as it is.
func restoration(images []*unstructured.Unstructured, live inventory) []Operation {
	made, replaced, recorded := putBack(images, live)
	var removed, stripped []Operation
	for _, key := range slices.Sorted(maps.Keys(live)) {
		o := live[key]
		switch {
		case o.GetDeletionTimestamp() != nil, recorded[key]:
		case forCatalog(o), superseded(o, images, live):
			removed = append(removed, newOperation(Remove, o, nil))
		default:
			if keys := marks(o); len(keys) > 0 {
				stripped = append(stripped, newOperation(Strip, o, without(o, keys)))
			}
		}
	}
	// Pods come early: they take time to serve, and the replicas of this project serve until then.
	early := []string{"Pod", "ServiceAccount"}
	slices.SortStableFunc(made, func(a, b Operation) int { return slices.Index(early, b.Kind) - slices.Index(early, a.Kind) })
	return slices.Concat(made, replaced, removed, stripped)
}

// putBack returns which recorded objects are created again, and which are restored. recorded are those whose
// owner still exists.
func putBack(images []*unstructured.Unstructured, live inventory) (made, replaced []Operation, recorded map[string]bool) {
	recorded = map[string]bool{}
	for _, image := range images {
		if !owned(image, live) {
			continue
		}
		recorded[keyOf(image)] = true
		now := live[keyOf(image)]
		switch {
		case now == nil:
			made = append(made, newOperation(Make, nil, fresh(image)))
		case image.GetKind() != "Pod" && touched(now) && !alike(image, now):
			replaced = append(replaced, newOperation(Replace, now, over(image, now)))
		}
	}
	return made, replaced, recorded
}

// owned reports whether an owner of an image still exists. An owner reference is compared by its UID, and a
// version in labels by its name.
func owned(image *unstructured.Unstructured, live inventory) bool {
	uids := map[string]bool{}
	for _, ref := range image.GetOwnerReferences() {
		key := ref.Kind + " " + image.GetNamespace() + "/" + ref.Name
		if image.GetNamespace() == "" {
			key = ref.Kind + " /" + ref.Name
		}
		if o := live[key]; o != nil && o.GetUID() == ref.UID {
			uids[string(ref.UID)] = true
		}
	}
	if len(image.GetOwnerReferences()) > 0 {
		return len(uids) > 0
	}
	labels := image.GetLabels()
	if labels[api.LabelOwner] == "" {
		return true
	}
	return live[labels[api.LabelOwnerKind]+" "+labels[api.LabelOwnerNamespace]+"/"+labels[api.LabelOwner]] != nil
}

// touched reports whether this project has written to an object.
func touched(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(f.Manager, ourManager) && f.Subresource == ""
	})
}

// alike reports whether an object equals its image.
func alike(image, now *unstructured.Unstructured) bool {
	return reflect.DeepEqual(compared(image), compared(now))
}

func compared(o *unstructured.Unstructured) map[string]any {
	i := snapshot(o)
	unstructured.RemoveNestedField(i.Object, "metadata", "uid")
	if o.GetKind() == "ClusterRole" {
		// The cluster writes the rules of an aggregated role.
		if _, gathers := i.Object["aggregationRule"]; gathers {
			delete(i.Object, "rules")
		}
	}
	return i.Object
}

// fresh returns an image in the form in which it is created again.
func fresh(image *unstructured.Unstructured) *unstructured.Unstructured {
	o := image.DeepCopy()
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

// over returns an image in the form in which it replaces the live object.
func over(image, now *unstructured.Unstructured) *unstructured.Unstructured {
	o := image.DeepCopy()
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

// forCatalog reports whether this project creates an object for a catalog and OLM does not.
func forCatalog(o *unstructured.Unstructured) bool {
	if ownerOf(o, "CatalogSource") == nil {
		return false
	}
	switch o.GetKind() {
	case "Deployment":
		return o.GetLabels()[labelManagedBy] == managedBy
	case "PodDisruptionBudget":
		return touched(o)
	default:
		return false
	}
}

// superseded reports whether an object is a binding that this project created in place of one that is restored.
func superseded(o *unstructured.Unstructured, images []*unstructured.Unstructured, live inventory) bool {
	if o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" || !touched(o) {
		return false
	}
	namespace := o.GetLabels()[api.LabelOwnerNamespace]
	before := strings.Replace(o.GetName(), "-service."+namespace+"-", "-service-", 1)
	if namespace == "" || before == o.GetName() {
		return false
	}
	return slices.ContainsFunc(images, func(image *unstructured.Unstructured) bool {
		return image.GetKind() == o.GetKind() && image.GetNamespace() == o.GetNamespace() && image.GetName() == before &&
			reflect.DeepEqual(image.Object["subjects"], o.Object["subjects"]) && owned(image, live)
	})
}

// marks returns the labels and annotations that this project set on an object. Those of users remain. The
// number of OLM's replicas is removed when OLM is scaled up again.
func marks(o *unstructured.Unstructured) [][]string {
	var found [][]string
	for field, values := range map[string]map[string]string{"labels": o.GetLabels(), "annotations": o.GetAnnotations()} {
		for key := range values {
			if strings.HasPrefix(key, api.Prefix) && key != api.LabelTakenOver && byUs(o, field, key) {
				found = append(found, []string{"metadata", field, key})
			}
		}
	}
	slices.SortFunc(found, func(a, b []string) int { return strings.Compare(a[1]+a[2], b[1]+b[2]) })
	return found
}

// byUs reports whether this project set a label or annotation.
func byUs(o *unstructured.Unstructured, field, key string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		if !strings.HasPrefix(f.Manager, ourManager) || f.FieldsV1 == nil {
			return false
		}
		var fields map[string]any
		if json.Unmarshal([]byte(f.FieldsV1.GetRawString()), &fields) != nil {
			return false
		}
		_, found, _ := unstructured.NestedFieldNoCopy(fields, "f:metadata", "f:"+field, "f:"+key)
		return found
	})
}

func without(o *unstructured.Unstructured, keys [][]string) *unstructured.Unstructured {
	out := o.DeepCopy()
	for _, key := range keys {
		unstructured.RemoveNestedField(out.Object, key...)
	}
	return out
}
