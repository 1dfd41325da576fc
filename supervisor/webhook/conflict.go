package webhook

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noOwner is the owner of an object without a ClusterServiceVersion, in messages.
const noOwner = "no ClusterServiceVersion"

// ConflictMessage returns a message about an existing object that blocks one of csv, and the remedy.
func ConflictMessage(kind, name, owner string) string {
	return fmt.Sprintf("%s %q exists and belongs to %s; delete or rename one of the two", kind, name, owner)
}

// LiveConflictMessage returns the same message about an object that was read. An API service without a
// ClusterServiceVersion has other users, so the message does not advise deleting it.
func LiveConflictMessage(live *unstructured.Unstructured, owner string) string {
	if live.GroupVersionKind() != APIServiceKind() || owner != noOwner {
		return ConflictMessage(live.GetKind(), live.GetName(), owner)
	}
	group, _, _ := unstructured.NestedString(live.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(live.Object, "spec", "version")
	name, _, _ := unstructured.NestedString(live.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(live.Object, "spec", "service", "namespace")
	const remedy = "the author of this version must choose another group or version in spec.apiservicedefinitions"
	if name == "" {
		return fmt.Sprintf("APIService %q is built in: the API server itself serves version %s of group %s; %s",
			live.GetName(), version, group, remedy)
	}
	return fmt.Sprintf("APIService %q exists, belongs to %s and points to Service %s/%s, which serves version %s of group %s; "+
		"if you keep that server, %s", live.GetName(), owner, namespace, name, version, group, remedy)
}
