package suite_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
)

// inventory maps all objects of a cluster, by kind, namespace and name, to their contents.
type inventory map[string]string

// volatile returns the kinds that the cluster itself writes all the time.
func volatile() []string {
	return []string{"Event", "Lease", "Node", "Pod", "ReplicaSet", "Endpoints", "EndpointSlice", "ComponentStatus", "IPAddress", "CSINode", "PodMetrics", "NodeMetrics"}
}

// takeInventory reads all objects but those of volatile kinds.
func takeInventory(t *testing.T, c client.Client) inventory {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(controlplane.Get(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := inventory{}
	for _, resources := range lists {
		version, err := schema.ParseGroupVersion(resources.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for i := range resources.APIResources {
			resource := &resources.APIResources[i]
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(volatile(), resource.Kind) {
				all.add(t, c, version.WithKind(resource.Kind))
			}
		}
	}
	return all
}

func (all inventory) add(t *testing.T, c client.Client, gvk schema.GroupVersionKind) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := c.List(t.Context(), list)
	if apierrors.IsNotFound(err) {
		return // its definition has just been deleted
	}
	if err != nil {
		t.Fatalf("listing %v: %v", gvk, err)
	}
	for i := range list.Items {
		u := &list.Items[i]
		key := fmt.Sprintf("%s %s", gvk.Kind, strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"))
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		// A supervisor repeats the poll of an image while its registry cannot be reached.
		unstructured.RemoveNestedField(u.Object, "status", "latestImageRegistryPoll")
		text, err := json.MarshalIndent(u.Object, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		all[key] = string(text)
	}
}

// gone returns the keys that after lacks.
func (all inventory) gone(after inventory) []string {
	var lost []string
	for key := range all {
		if _, is := after[key]; !is {
			lost = append(lost, key)
		}
	}
	slices.Sort(lost)
	return lost
}

// keys returns all keys, sorted.
func (all inventory) keys() []string { return slices.Sorted(maps.Keys(all)) }

// of returns the keys of a kind.
func (all inventory) of(kind string) []string {
	return slices.DeleteFunc(all.keys(), func(key string) bool { return !strings.HasPrefix(key, kind+" ") })
}
