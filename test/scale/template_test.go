package scale

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/test/audit"
)

func TestWritten(t *testing.T) {
	requests := []audit.Request{
		{Verb: "create", Resource: "roles.rbac.authorization.k8s.io", Namespace: "a", Name: "r", Code: 201},
		{Verb: "get", Resource: "configmaps", Namespace: "a", Name: "read", Code: 200},
		{Verb: "create", Resource: "events.events.k8s.io", Namespace: "a", Name: "e", Code: 201},
		{Verb: "patch", Resource: "rolebindings.rbac.authorization.k8s.io", Namespace: "a", Name: "applied", Code: 201},
		{Verb: "patch", Resource: "subscriptions.operators.coreos.com", Namespace: "a", Name: "s", Code: 200},
		{Verb: "patch", Resource: "subscriptions.operators.coreos.com/status", Namespace: "a", Name: "s", Code: 200},
		{Verb: "update", Resource: "roles.rbac.authorization.k8s.io", Namespace: "a", Name: "r", Code: 200},
		{Verb: "update", Resource: "roles.rbac.authorization.k8s.io", Namespace: "a", Name: "refused", Code: 409},
		{Verb: "delete", Resource: "roles.rbac.authorization.k8s.io", Namespace: "a", Name: "gone", Code: 200},
	}
	want := []writtenObject{
		{resource: "roles.rbac.authorization.k8s.io", namespace: "a", name: "r", created: true},
		{resource: "rolebindings.rbac.authorization.k8s.io", namespace: "a", name: "applied", created: true},
		{resource: "subscriptions.operators.coreos.com", namespace: "a", name: "s", status: true},
	}
	if diff := cmp.Diff(want, written(requests), cmp.AllowUnexported(writtenObject{})); diff != "" {
		t.Errorf("every object once: -want +got:\n%s", diff)
	}
}

func TestTemplate(t *testing.T) {
	cases := map[string]struct {
		reason, kind, name string
		annotations        map[string]any
		written            writtenObject
		// object and names are for namespace b, and patch is the patch.
		object, patch, renamed string
	}{
		"Created": {
			reason: "an object of the namespace is created in another", kind: "Role", name: "r",
			annotations: map[string]any{"in": "model"}, written: writtenObject{namespace: "model", created: true},
			object: `{"apiVersion":"v1","kind":"Role","metadata":{"annotations":{"in":"b"},"name":"r"}}`,
		},
		"NamesIt": {
			reason: "the name of an object outside namespaces is that of the namespace", kind: "Operator", name: "widget.model",
			written: writtenObject{created: true}, object: `{"apiVersion":"v1","kind":"Operator","metadata":{"name":"widget.b"}}`,
		},
		"Hashed": {
			reason: "another namespace needs another name", kind: "ClusterRole", name: "x-123", written: writtenObject{created: true},
			object: `{"apiVersion":"v1","kind":"ClusterRole","metadata":{"name":"x-123"}}`, renamed: "x-123-b",
		},
		"Changed": {
			reason: "what a user has made is changed", kind: "OperatorGroup", name: "own", annotations: map[string]any{"apis": "A"},
			written: writtenObject{namespace: "model"},
			object:  `{"apiVersion":"v1","kind":"OperatorGroup","metadata":{"annotations":{"apis":"A"},"name":"own"}}`,
			patch:   `{"metadata":{"annotations":{"apis":"A"}}}`,
		},
		"Shared": {
			reason: "a definition gets the key of the namespace alone", kind: "CustomResourceDefinition", name: "d",
			annotations: map[string]any{"by-model": "x", "other": "y"}, written: writtenObject{},
			object: `{"apiVersion":"v1","kind":"CustomResourceDefinition","metadata":{"annotations":{"by-b":"x","other":"y"},"name":"d"}}`,
			patch:  `{"metadata":{"annotations":{"by-b":"x"}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			metadata := map[string]any{"name": tc.name, "uid": "1", "resourceVersion": "2", "generation": int64(3)}
			if tc.annotations != nil {
				metadata["annotations"] = tc.annotations
			}
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": tc.kind, "metadata": metadata}}
			got, err := newTemplate(o, tc.written, "model")
			if err != nil {
				t.Fatal(err)
			}
			r := newReplacements("model", "b")
			if text := r.replace(got.patch); text != tc.patch {
				t.Errorf("%s: patch %s, want %s", tc.reason, text, tc.patch)
			}
			var object, want any
			if err := json.Unmarshal([]byte(r.replace(got.object)), &object); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.object), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, object); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if renamed := got.rename(r); renamed != tc.renamed {
				t.Errorf("%s: named %q, want %q", tc.reason, renamed, tc.renamed)
			}
		})
	}
}

// TestOwnersOfTheFloor replaces the owner of an InstallPlan whose template comes before that of its Subscription.
func TestOwnersOfTheFloor(t *testing.T) {
	r := newReplacements("model", "b")
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{UID: "own"}}
	r.addSubscription([]template{{kind: "InstallPlan", uid: "plan"}, {kind: operatorsv1alpha1.SubscriptionKind, uid: "u1"}}, sub)
	if got := r.replace(`{"namespace":"model","uid":"u1"}`); got != `{"namespace":"b","uid":"own"}` {
		t.Errorf("got %s", got)
	}
}
