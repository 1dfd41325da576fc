package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// recorded are the kinds whose changes are recorded.
var recorded = []schema.GroupVersionKind{
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "Subscription"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "InstallPlan"},
	{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Service"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
}

// recordedOfCluster are the cluster-scoped kinds that are recorded if their label names the namespace.
var recordedOfCluster = []schema.GroupVersionKind{
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
}

// compared are the kinds whose contents must be equal in two runs.
var compared = []string{
	"Deployment", "ServiceAccount", "ConfigMap", "Service", "Role", "RoleBinding",
	"ClusterRole", "ClusterRoleBinding", "ClusterServiceVersion",
}

// recorder counts the changes in a namespace and stores every content of each object.
type recorder struct {
	changes chan struct{}

	mu       sync.Mutex
	total    int
	contents map[string][]string // by kind and name, in order, without repetitions
	phases   map[string][]string
}

// record records the changes in a namespace until the test ends.
func record(t *testing.T, c client.WithWatch, namespace string) *recorder {
	t.Helper()
	r := &recorder{changes: make(chan struct{}, 1), contents: map[string][]string{}, phases: map[string][]string{}}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	start := func(gvk schema.GroupVersionKind, where client.ListOption) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		w, err := c.Watch(t.Context(), list, where)
		if err != nil {
			t.Fatalf("watching %s: %v", gvk.Kind, err)
		}
		running.Go(func() {
			for event := range w.ResultChan() {
				r.add(event)
			}
		})
		t.Cleanup(w.Stop)
	}
	for _, gvk := range recorded {
		start(gvk, client.InNamespace(namespace))
	}
	for _, gvk := range recordedOfCluster {
		start(gvk, client.MatchingLabels{api.LabelOwnerNamespace: namespace})
	}
	return r
}

func (r *recorder) add(event watch.Event) {
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok || u.GetName() == "kube-root-ca.crt" || u.GetName() == "default" {
		return
	}
	r.mu.Lock()
	r.total++
	key := u.GetKind() + "/" + u.GetName()
	r.contents[key] = appendNew(r.contents[key], content(u))
	if phase, found, _ := unstructured.NestedString(u.Object, "status", "phase"); found {
		r.phases[key] = appendNew(r.phases[key], phase)
	}
	r.mu.Unlock()
	select {
	case r.changes <- struct{}{}:
	default:
	}
}

// appendNew appends a text unless it is the last one.
func appendNew(list []string, text string) []string {
	if len(list) > 0 && list[len(list)-1] == text {
		return list
	}
	return append(list, text)
}

// content returns the applied content of an object. It omits fields that the API server sets, the
// status, and the owners, which change with updates.
func content(u *unstructured.Unstructured) string {
	kept := map[string]any{}
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			kept[key] = value
		}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// after waits until there were n changes.
func (r *recorder) after(ctx context.Context, n int) error {
	for {
		if r.count() >= n {
			return nil
		}
		select {
		case <-r.changes:
		case <-ctx.Done():
			return fmt.Errorf("waiting for change %d, having seen %d: %w", n, r.count(), ctx.Err())
		}
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// history returns the contents of the objects of the compared kinds. It removes the name of the
// namespace, so two namespaces can be compared.
func (r *recorder) history(namespace string) map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := map[string][]string{}
	for key, contents := range r.contents {
		kind, _, _ := strings.Cut(key, "/")
		if !slices.Contains(compared, kind) {
			continue
		}
		// The names of cluster-scoped objects end with a digest that depends on the namespace.
		_, name, _ := strings.Cut(key, "/")
		common := name
		if end := strings.LastIndexByte(name, '-'); end > 0 && strings.HasPrefix(kind, "Cluster") && kind != "ClusterServiceVersion" {
			common = name[:end]
		}
		for _, c := range contents {
			c = strings.ReplaceAll(strings.ReplaceAll(c, name, common), namespace, "NAMESPACE")
			found[kind+"/"+common] = append(found[kind+"/"+common], c)
		}
	}
	return found
}

// phasesOf returns the phases of the objects of a kind.
func (r *recorder) phasesOf(kind string) map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := maps.Clone(r.phases)
	maps.DeleteFunc(found, func(key string, _ []string) bool { return !strings.HasPrefix(key, kind+"/") })
	return found
}
