package apply_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/test/controlplane"
)

// patience is the longest time that a test waits for the API server, which it polls at every polling.
const (
	patience = 30 * time.Second
	polling  = 50 * time.Millisecond
)

// witness records the warnings and the methods of the writes of a client.
type witness struct {
	mu       sync.Mutex
	warnings []string
	writes   []string
}

// HandleWarningHeader records one warning.
func (w *witness) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

func (w *witness) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.writes = append(w.writes, r.Method)
			w.mu.Unlock()
		}
		return next.RoundTrip(r) //nolint:wrapcheck // it stands for the other
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// take returns what was recorded since the last call.
func (w *witness) take() (warnings, writes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	warnings, writes = w.warnings, w.writes
	w.warnings, w.writes = nil, nil
	slices.Sort(warnings)
	return warnings, writes
}

// watched returns a client whose writes are recorded. as is the name of the user that it impersonates.
func watched(t *testing.T, as string) (client.Client, *witness) {
	t.Helper()
	w := &witness{}
	cfg := rest.CopyConfig(controlplane.Get(t).Config())
	cfg.WarningHandler = w
	cfg.Wrap(w.RoundTrip)
	cfg.Impersonate.UserName = as
	c, err := client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

func manifestOf(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	return u
}

func read(t *testing.T, c client.Client, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(u.GroupVersionKind())
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), found); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestUnknownFieldsAreDropped writes manifests with fields that the API server does not know, first as new
// objects and then over existing ones. The API server drops the fields and warns.
func TestUnknownFieldsAreDropped(t *testing.T) {
	c, seen := watched(t, "")
	namespace := controlplane.Namespace(t)
	for name, tt := range map[string]struct {
		first, second string
		warnings      []string
	}{
		"Role": {
			first:    `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"x"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"nonsense":"x"}]}`,
			second:   `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"x"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["list"],"nonsense":"x"}]}`,
			warnings: []string{`unknown field "rules[0].nonsense"`},
		},
		"Service": {
			first:    `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","bogus":1},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81,"colour":"red"}]}}`,
			second:   `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","bogus":1},"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":82,"colour":"red"}]}}`,
			warnings: []string{`unknown field "metadata.bogus"`, `unknown field "spec.ports[1].colour"`},
		},
		"exported from a cluster": {
			first: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","uid":"1","resourceVersion":"1","generation":1,"creationTimestamp":null,"selfLink":"/x",
				"managedFields":[{"manager":"x","operation":"Apply"}]},"data":{"a":"1"},"status":{}}`,
			second: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","creationTimestamp":null},"data":{"a":"2"},"status":{}}`,
		},
		"a variable and a port twice": {
			first:    deploymentWith(`{"name":"a","image":"i","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}],"ports":[{"containerPort":80},{"containerPort":80}]}`),
			second:   deploymentWith(`{"name":"a","image":"j","env":[{"name":"A","value":"1"},{"name":"A","value":"3"}],"ports":[{"containerPort":80},{"containerPort":80}]}`),
			warnings: []string{`spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`, `spec.template.spec.containers[0].ports[1]: duplicate port definition with spec.template.spec.containers[0].ports[0]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{tt.first, tt.second} {
				written(t, func() error {
					seen.take() // of an attempt that conflicted
					_, err := write(t.Context(), c, manifestOf(t, namespace, text))
					return err
				})
				warnings, _ := seen.take()
				if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func deploymentWith(container string) string {
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[` + container + `]}}}}`
}

// TestUnknownFieldLeavesWithTheKnownOne writes a second manifest that lacks a known and an unknown field of the
// first.
func TestUnknownFieldLeavesWithTheKnownOne(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	first := manifestOf(t, namespace, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"bogus":1,"sessionAffinity":"ClientIP","ports":[{"name":"a","port":80}]}}`)
	second := manifestOf(t, namespace, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"name":"a","port":80}]}}`)
	mustApply(t, c, first, apply.Created)
	address, _, _ := unstructured.NestedString(read(t, c, first).Object, "spec", "clusterIP")
	mustApply(t, c, second, apply.Updated)
	mustApply(t, c, second, apply.Unchanged)
	spec, _, _ := unstructured.NestedMap(read(t, c, first).Object, "spec")
	if spec["sessionAffinity"] != "None" || spec["bogus"] != nil || spec["clusterIP"] != address || address == "" {
		t.Errorf("spec %v, address before %q", spec, address)
	}
}

// TestWhatEarlierReleasesAppliedIsReplaced writes over objects that an earlier release wrote with server-side
// apply. Fields that the new manifest lacks are removed, and fields that others set remain.
func TestWhatEarlierReleasesAppliedIsReplaced(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	before := manifestOf(t, namespace, deploymentWith(`{"name":"a","image":"i","env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]},{"name":"old","image":"i"}`))
	before.SetOwnerReferences([]metav1.OwnerReference{owner("ClusterServiceVersion", "lamp.v1")})
	_ = unstructured.SetNestedSlice(before.Object, []any{map[string]any{"name": "v", "configMap": map[string]any{"name": "c"}}}, "spec", "template", "spec", "volumes")
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(before.DeepCopy()), client.FieldOwner(api.FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	live := &appsv1.Deployment{}
	key := client.ObjectKeyFromObject(before)
	written(t, func() error {
		if err := c.Get(t.Context(), key, live); err != nil {
			return err
		}
		live.Spec.Replicas = new(int32(3))
		live.Spec.Template.Spec.Containers = append(live.Spec.Template.Spec.Containers, corev1.Container{Name: "theirs", Image: "t"})
		return c.Update(t.Context(), live, client.FieldOwner("somebody"))
	})
	after := manifestOf(t, namespace, deploymentWith(`{"name":"a","image":"j","env":[{"name":"B","value":"2"}]}`))
	after.SetOwnerReferences([]metav1.OwnerReference{owner("ClusterServiceVersion", "lamp.v2")})
	_ = unstructured.SetNestedSlice(after.Object, []any{map[string]any{"name": "v", "secret": map[string]any{"secretName": "s"}}}, "spec", "template", "spec", "volumes")
	for range 2 { // the second changes nothing
		written(t, func() error {
			_, err := write(t.Context(), c, after)
			return err
		})
	}
	if err := c.Get(t.Context(), key, live); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, container := range live.Spec.Template.Spec.Containers {
		got = append(got, container.Name+" "+container.Image)
		for _, env := range container.Env {
			got = append(got, env.Name+"="+env.Value)
		}
	}
	if diff := cmp.Diff([]string{"a j", "B=2", "theirs t"}, got); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	if v := live.Spec.Template.Spec.Volumes[0]; *live.Spec.Replicas != 3 || v.ConfigMap != nil || v.Secret == nil || len(live.OwnerReferences) != 2 {
		t.Errorf("replicas %d, volume %+v, owners %v", *live.Spec.Replicas, v, live.OwnerReferences)
	}
}

// TestWritingNeedsNoPatch writes with the permissions to get, create and update. It checks the error that a client
// gets if one of these permissions is missing.
func TestWritingNeedsNoPatch(t *testing.T) {
	c, namespace := newClient(t), controlplane.Namespace(t)
	limited, seen := watched(t, "installer")
	service := func(port string) *unstructured.Unstructured {
		return manifestOf(t, namespace, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"ports":[{"port":`+port+`}]}}`)
	}
	if _, _, err := apply.CreateIfAbsent(t.Context(), limited, service("80")); err == nil || !strings.Contains(err.Error(), `cannot create resource "services" in API group ""`) {
		t.Errorf("error %v", err)
	}
	in := metav1.ObjectMeta{Namespace: namespace, Name: "installer"}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "create", "update"}}}},
		&rbacv1.RoleBinding{ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "installer"}, Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "installer"}}},
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	written(t, func() error {
		_, _, err := apply.CreateIfAbsent(t.Context(), limited, service("80"))
		return err
	})
	seen.take()
	if result, err := write(t.Context(), limited, service("81")); err != nil || result != apply.Updated {
		t.Errorf("result %s, error %v", result, err)
	}
	if _, writes := seen.take(); !slices.Equal(writes, []string{http.MethodPut}) {
		t.Errorf("writes %v", writes)
	}
}

// written repeats a write until no controller writes at the same time.
func written(t *testing.T, write func() error) {
	t.Helper()
	gomega.NewWithT(t).Eventually(write).WithTimeout(patience).WithPolling(polling).Should(gomega.Succeed())
}

// TestUnchangedObjectIsNotWritten writes a manifest again whose fields are all unchanged.
func TestUnchangedObjectIsNotWritten(t *testing.T) {
	c, seen := watched(t, "")
	namespace := controlplane.Namespace(t)
	mustApply(t, c, configMap(namespace, map[string]any{"a": "1"}), apply.Created)
	seen.take()
	mustApply(t, c, configMap(namespace, map[string]any{"a": "1"}), apply.Unchanged)
	if _, writes := seen.take(); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}
}
