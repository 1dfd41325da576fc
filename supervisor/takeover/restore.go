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
	// ourManager begins the names of the field managers of this project's programs.
	ourManager = "chandlery"
	// labelManagedBy tells our replicas of a catalog from anybody else's.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "chandlery-supervisor"
)

// Verb is what handing back does to an object.
type Verb string

// The verbs.
const (
	// Make says that an object that was there is made again.
	Make Verb = "Make"
	// Replace says that an object becomes what it was.
	Replace Verb = "Replace"
	// Remove says that an object goes that OLM does not make.
	Remove Verb = "Remove"
	// Strip says that an object loses labels and annotations that OLM does not know.
	Strip Verb = "Strip"
)

// Operation is what handing back does to one object.
type Operation struct {
	Verb      Verb   `json:"verb"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// live is what is there, want what is written: nil for Make and Remove respectively.
	live, want *unstructured.Unstructured
}

// inventory is what there is, by kind, namespace and name.
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

// restoration says what has to be done to objects for the cluster to be as OLM left it:
// what was written down and has been changed or deleted by us is put back, what we made in
// its place goes, and so do our marks on everything else. What belongs to a version or
// catalog that is no longer there has nothing to go back to, and stays as it is.
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
	// Pods come early: they take their time to serve, and ours serve meanwhile.
	early := []string{"Pod", "ServiceAccount"}
	slices.SortStableFunc(made, func(a, b Operation) int { return slices.Index(early, b.Kind) - slices.Index(early, a.Kind) })
	return slices.Concat(made, replaced, removed, stripped)
}

// putBack says which objects that were written down are made again, and which become what
// they were. recorded are those that have something to go back to.
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

// owned says whether what an image belonged to is still there: every owner in a namespace
// by its UID, a version that is named by labels by its name.
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

// touched says whether we have written to an object.
func touched(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(f.Manager, ourManager) && f.Subresource == ""
	})
}

// alike says whether an object is as its image has it.
func alike(image, now *unstructured.Unstructured) bool {
	return reflect.DeepEqual(compared(image), compared(now))
}

func compared(o *unstructured.Unstructured) map[string]any {
	i := snapshot(o)
	unstructured.RemoveNestedField(i.Object, "metadata", "uid")
	if o.GetKind() == "ClusterRole" {
		// What is gathered is the cluster's to write.
		if _, gathers := i.Object["aggregationRule"]; gathers {
			delete(i.Object, "rules")
		}
	}
	return i.Object
}

// fresh is an image as it is made again.
func fresh(image *unstructured.Unstructured) *unstructured.Unstructured {
	o := image.DeepCopy()
	o.SetUID("")
	if o.GetKind() != "Service" {
		return o
	}
	// The address may have been given to somebody else.
	if ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP"); ip != "None" {
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(o.Object, "spec", "clusterIPs")
	}
	return o
}

// over is an image as it is written over what is there now.
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

// forCatalog says whether an object is one that we make for a catalog and OLM does not.
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

// superseded says whether an object is a binding that we made in place of one that is put
// back.
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

// marks finds what we have put on an object: what people have put there stays theirs. How
// many replicas OLM had is taken off when it has them again.
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

// byUs says whether a label or annotation is one that we set.
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
