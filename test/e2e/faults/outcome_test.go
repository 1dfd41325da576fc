package faults_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// made lists the kinds of objects that an installation creates. Cluster-scoped objects are
// recognized by their names, which contain the namespace.
var made = []struct {
	gvk     schema.GroupVersionKind
	cluster bool
}{
	{gvk: schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"}},
	{gvk: schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "InstallPlan"}},
	{gvk: schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"}},
	{gvk: schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1", Kind: "OperatorGroup"}},
	{gvk: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, cluster: true},
	{gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}},
	{gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}},
	{gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, cluster: true},
	{gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, cluster: true},
	{gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
	{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}},
	{gvk: schema.GroupVersionKind{Version: "v1", Kind: "Service"}},
	{gvk: schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}},
}

// outcome returns the result of an installation as a text that is equal for all successful
// installations. It omits fields such as times and addresses.
func outcome(ctx context.Context, c client.Reader, namespace string) (string, error) {
	var objects []unstructured.Unstructured
	for _, m := range made {
		read := readNamespace
		if m.cluster {
			read = readCluster
		}
		found, err := read(ctx, c, m.gvk, namespace)
		if err != nil {
			return "", err
		}
		objects = append(objects, found...)
	}
	objects = withoutGarbage(objects)
	names := neutralNames(objects, namespace)
	var texts []string
	for i := range objects {
		prune(&objects[i])
		text, err := yaml.Marshal(objects[i].Object)
		if err != nil {
			return "", fmt.Errorf("writing %s %s: %w", objects[i].GetKind(), objects[i].GetName(), err)
		}
		title := fmt.Sprintf("# %s %s\n", objects[i].GetKind(), objects[i].GetName())
		texts = append(texts, hash.ReplaceAllString(names.Replace(title+string(text)), "HASH"))
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n"), nil
}

// readNamespace returns the objects of a kind in a namespace.
func readNamespace(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing every %s: %w", gvk.Kind, err)
	}
	return list.Items, nil
}

// readCluster returns the cluster-scoped objects of a kind whose names contain a namespace. It lists only metadata,
// because a list of all definitions has megabytes.
func readCluster(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing every %s: %w", gvk.Kind, err)
	}
	var found []unstructured.Unstructured
	for i := range list.Items {
		name := list.Items[i].Name
		if !strings.Contains(name, namespace) {
			continue
		}
		o := unstructured.Unstructured{}
		o.SetGroupVersionKind(gvk)
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &o); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, name, err)
		}
		found = append(found, o)
	}
	return found, nil
}

// withoutGarbage removes what the garbage collector will delete: deleted owners, and objects
// without other owners. The garbage collection of objects whose owner has a new kind begins half a
// minute late.
func withoutGarbage(objects []unstructured.Unstructured) []unstructured.Unstructured {
	present := map[types.UID]bool{}
	for i := range objects {
		present[objects[i].GetUID()] = true
	}
	return slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool {
		owners := o.GetOwnerReferences()
		left := slices.DeleteFunc(slices.Clone(owners), func(ref metav1.OwnerReference) bool { return !present[ref.UID] })
		o.SetOwnerReferences(left)
		return len(owners) > 0 && len(left) == 0
	})
}

// hash matches hashes of a namespace's name in the names of objects, and of an API in the labels of roles.
var hash = regexp.MustCompile(`\b[0-9A-Za-z]{30,64}\b|\b[0-9a-f]{13,16}\b`)

// neutralNames replaces names that differ between namespaces: UIDs by their owners, and names of
// InstallPlans by what they install.
func neutralNames(objects []unstructured.Unstructured, namespace string) *strings.Replacer {
	var pairs []string
	for i := range objects {
		o := &objects[i]
		name := o.GetName()
		if o.GetKind() == "InstallPlan" {
			versions, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "clusterServiceVersionNames")
			name = "plan for " + strings.Join(versions, " and ")
			pairs = append(pairs, o.GetName(), strings.ReplaceAll(name, namespace, "NS"))
		}
		pairs = append(pairs, string(o.GetUID()), strings.ReplaceAll("uid of "+o.GetKind()+" "+name, namespace, "NS"))
	}
	return strings.NewReplacer(append(pairs, namespace, "NS")...)
}

// leftOut are the fields that always differ.
var leftOut = [][]string{
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "creationTimestamp"},
	{"metadata", "managedFields"},
	{"metadata", "generation"},
	{"metadata", "annotations", "deployment.kubernetes.io/revision"},
	{"metadata", "annotations", "chandlery.dev/transitions"},
	{"status", "lastUpdated"},
	{"status", "startTime"},
	{"status", "catalogHealth"},
	{"status", "installPlanRef", "resourceVersion"},
	{"spec", "clusterIP"},
	{"spec", "clusterIPs"},
}

// prune removes fields from an object that always differ.
func prune(o *unstructured.Unstructured) {
	for _, path := range leftOut {
		unstructured.RemoveNestedField(o.Object, path...)
	}
	if annotations := o.GetAnnotations(); len(annotations) > 0 {
		o.SetAnnotations(unhashed(annotations))
	}
	refs := o.GetOwnerReferences()
	slices.SortFunc(refs, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	if len(refs) > 0 {
		o.SetOwnerReferences(refs)
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	switch o.GetKind() {
	case "Deployment", "Service", "CatalogSource":
		unstructured.RemoveNestedField(o.Object, "status")
	case "CustomResourceDefinition":
		o.Object["status"] = map[string]any{"storedVersions": status["storedVersions"]}
	case "ClusterServiceVersion":
		o.Object["status"] = map[string]any{"phase": status["phase"], "reason": status["reason"]}
	case "InstallPlan":
		steps, _, _ := unstructured.NestedSlice(status, "plan")
		for _, s := range steps {
			step := s.(map[string]any)
			// A step whose creation was carried out without an answer is Present.
			if step["status"] == "Created" || step["status"] == "Present" {
				step["status"] = "done"
			}
		}
		status["plan"] = steps
		o.Object["status"] = status
	}
	timeless(o.Object)
}

// alongside is the prefix, before a hash, of the keys for the versions that installed a CRD.
const alongside = "operatorframework.io/installed-alongside-"

// unhashed replaces the hashes in keys by numbers, in the order of the values.
func unhashed(annotations map[string]string) map[string]string {
	var values []string
	for key, value := range annotations {
		if strings.HasPrefix(key, alongside) {
			values = append(values, value)
			delete(annotations, key)
		}
	}
	slices.Sort(values)
	for i, value := range values {
		annotations[alongside+strconv.Itoa(i)] = value
	}
	return annotations
}

// timeless removes the times of conditions.
func timeless(o map[string]any) {
	conditions, _, _ := unstructured.NestedSlice(o, "status", "conditions")
	for _, c := range conditions {
		for _, field := range []string{"lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime"} {
			delete(c.(map[string]any), field)
		}
	}
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(o, conditions, "status", "conditions")
	}
}

// diff returns the lines in which texts differ.
func diff(want, got string) string {
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}
