package takeover_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/test/oracle/olmpeer"
)

// variable are the fields of statuses that differ between two runs with the same result.
var variable = []string{
	"lastTransitionTime", "lastUpdateTime", "lastUpdated", "lastConnect", "lastProbeTime", "lastHeartbeatTime", "lastSyncTime", "startTime", "createdAt",
	"certsLastUpdated", "certsRotateAt", "resourceVersion", "uid", "observedGeneration",
}

// reduce returns a snapshot without what differs between two runs with the same result: times, versions, and the identity of
// objects that a takeover or a handback recreates. Objects of OLM's pods and of the supervisors' are left out.
func reduce(all snapshot) snapshot {
	out := snapshot{}
	pods := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		o := all[key]
		switch kind, namespace := o.GetKind(), o.GetNamespace(); {
		case namespace == home && kind != "Deployment", kind == "PodMetrics", kind == "ControllerRevision":
			continue
		case (kind == "Pod" || kind == "ReplicaSet") && (namespace == olmpeer.Namespace || namespace == shelf):
			// Their names are random. Those of catalogs are counted.
			name := o.GetLabels()["olm.catalogSource"]
			if kind == "ReplicaSet" || name == "" {
				continue
			}
			key = fmt.Sprintf("Pod %s/%s %d", namespace, name, pods[name])
			pods[name]++
			o = &unstructured.Unstructured{Object: map[string]any{"kind": kind, "ofSupervisor": isOfSupervisor(o.GetLabels())}}
			out[key] = o
			continue
		}
		out[key] = &unstructured.Unstructured{Object: reduced(o)}
	}
	return out
}

func reduced(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	metadata := []string{"managedFields", "resourceVersion", "creationTimestamp"}
	if !isKept(o) {
		metadata = append(metadata, "uid", "generation")
	}
	for _, field := range metadata {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GetKind() != "Deployment" && o.GetKind() != definition || o.GetNamespace() == home || o.GetNamespace() == olmpeer.Namespace && o.GetName() != packageServer {
		unstructured.RemoveNestedField(o.Object, "metadata", "generation")
	}
	// Simulated pods serve no catalog, so connections to them come and go.
	if !strings.HasPrefix(o.GetAPIVersion(), "operators.coreos.com/") || o.GetNamespace() == shelf {
		delete(o.Object, "status")
	}
	var refs []any
	for _, ref := range o.GetOwnerReferences() {
		refs = append(refs, ref.Kind+" "+ref.Name)
	}
	unstructured.RemoveNestedField(o.Object, "metadata", "ownerReferences")
	o.Object["owners"] = refs
	prune(o.Object["status"])
	return o.Object
}

// isKept reports whether an object keeps its UID in every takeover and handback.
func isKept(o *unstructured.Unstructured) bool {
	switch o.GetKind() {
	case "NetworkPolicy", "PodDisruptionBudget", "ClusterRoleBinding", "RoleBinding":
		return false
	case "Deployment", "ConfigMap", "Pod":
		return o.GetNamespace() != shelf
	default:
		return true
	}
}

// prune removes variable fields.
func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			if slices.Contains(variable, key) {
				delete(value, key)
				continue
			}
			prune(one)
		}
	case []any:
		for _, one := range value {
			prune(one)
		}
	}
}
