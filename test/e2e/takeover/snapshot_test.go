package takeover_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/controlplane"
)

// snapshot holds every object of the cluster by kind and name.
type snapshot map[string]*unstructured.Unstructured

// passing are kinds whose objects are created and deleted continuously.
var passing = []string{"events", "componentstatuses", "leases", "endpoints", "endpointslices", "nodes"}

// config returns an access to a cluster without a limit of requests.
func config(plane *controlplane.ControlPlane) *rest.Config {
	cfg := plane.Config()
	cfg.QPS = -1
	return cfg
}

// take reads every object of a cluster that can be listed. Definitions have only metadata, because they are large. Their generation
// changes with their specification.
func take(t *testing.T, plane *controlplane.ControlPlane) snapshot {
	t.Helper()
	c, err := dynamic.NewForConfig(config(plane))
	if err != nil {
		t.Fatal(err)
	}
	all := snapshot{}
	for _, r := range listed(t, plane) {
		if r.kind == definition {
			maps.Copy(all, definitions(t, plane, r))
			continue
		}
		objects, err := c.Resource(r.GroupVersionResource).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range objects.Items {
			o := &objects.Items[i]
			all[r.kind+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = o
		}
	}
	return all
}

// definition is the kind of definitions.
const definition = "CustomResourceDefinition"

// definitions reads the metadata of definitions.
func definitions(t *testing.T, plane *controlplane.ControlPlane, r resource) snapshot {
	t.Helper()
	c, err := metadata.NewForConfig(config(plane))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := c.Resource(r.GroupVersionResource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := snapshot{}
	for i := range objects.Items {
		objects.Items[i].SetGroupVersionKind(r.GroupVersion().WithKind(r.kind))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&objects.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: content}
		all[r.kind+" "+o.GetName()] = o
	}
	return all
}

// revisions reads the UID and the resource version of every object of a cluster that can be listed. It costs the API server
// much less than take.
func revisions(t *testing.T, plane *controlplane.ControlPlane) map[string]string {
	t.Helper()
	c, err := metadata.NewForConfig(config(plane))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range listed(t, plane) {
		objects, err := c.Resource(r.GroupVersionResource).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range objects.Items {
			o := &objects.Items[i]
			all[r.kind+" "+strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")] = string(o.GetUID()) + " " + o.GetResourceVersion()
		}
	}
	return all
}

// resource is a resource of a cluster with its kind.
type resource struct {
	schema.GroupVersionResource

	kind string
}

// listed returns the resources of a cluster that can be listed.
func listed(t *testing.T, plane *controlplane.ControlPlane) []resource {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config(plane))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	var stale *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &stale) {
		t.Fatal(err)
	}
	var all []resource
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !slices.Contains(passing, r.Name) {
				all = append(all, resource{version.WithResource(r.Name), r.Kind})
			}
		}
	}
	return all
}

// sameVersion reports whether two objects are one that was not written in between.
func sameVersion(before, after *unstructured.Unstructured) bool {
	return before.GetResourceVersion() != "" && before.GetResourceVersion() == after.GetResourceVersion() && before.GetUID() == after.GetUID()
}

// content returns the compared part of an object.
func content(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	return o.Object
}

// text formats values for comparison.
func text(t *testing.T, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// differences returns the fields that differ between two snapshots, one per line.
func differences(t *testing.T, before, after snapshot, expected func(line string) bool) []string {
	t.Helper()
	var lines []string
	add := func(line string) {
		if expected == nil || !expected(line) {
			lines = append(lines, line)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if after[key] == nil {
			add("gone: " + key)
			continue
		}
		if sameVersion(before[key], after[key]) {
			continue
		}
		for _, line := range compare(t, key, content(before[key]), content(after[key])) {
			add(line)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] == nil {
			add("new: " + key)
		}
	}
	return lines
}

// compare compares values recursively.
func compare(t *testing.T, path string, before, after any) []string {
	t.Helper()
	b, isMap := before.(map[string]any)
	a, areMaps := after.(map[string]any)
	if isMap && areMaps {
		keys := map[string]bool{}
		for key := range b {
			keys[key] = true
		}
		for key := range a {
			keys[key] = true
		}
		var lines []string
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			lines = append(lines, compare(t, path+" "+key, b[key], a[key])...)
		}
		return lines
	}
	was, is := text(t, before), text(t, after)
	if was == is {
		return nil
	}
	const longest = 300
	return []string{path + ": " + was[:min(len(was), longest)] + " -> " + is[:min(len(is), longest)]}
}
