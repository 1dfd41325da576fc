package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Manifest returns an object in the form in which it is applied, with a hash of itself.
func Manifest(obj client.Object) (*unstructured.Unstructured, error) {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %s: %w", kind, obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", kind, obj.GetName(), err)
	}
	sum := sha256.Sum256(text)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationAppliedHash] = hex.EncodeToString(sum[:16])
	u.SetAnnotations(annotations)
	return u, nil
}

// NeedsUpdate reports whether a live object, nil if there is none, must be applied again. This is the case if
// another object was applied last, or if applied fields have changed since. It ignores additional fields of others.
func NeedsUpdate(want, live *unstructured.Unstructured) bool {
	if live == nil {
		return true
	}
	// Two versions of an operator may share an object, with their owner references in any order.
	for _, owner := range want.GetOwnerReferences() {
		if !slices.ContainsFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
			return true
		}
	}
	without := want.DeepCopy()
	unstructured.RemoveNestedField(without.Object, "metadata", "ownerReferences")
	return !equality.Semantic.DeepDerivative(without.Object, live.Object)
}

// NeedsUpdateBeyondCABundles reports whether a webhook configuration must be applied again for more than the
// authorities of its certificates. Both are as for [Stale].
func NeedsUpdateBeyondCABundles(want, live *unstructured.Unstructured) (bool, error) {
	if live == nil {
		return true, nil
	}
	bundles := map[any]any{}
	for _, hook := range webhooksOf(live) {
		bundle, _, _ := unstructured.NestedFieldNoCopy(hook, "clientConfig", "caBundle")
		bundles[hook["name"]] = bundle
	}
	same := want.DeepCopy()
	for _, hook := range webhooksOf(same) {
		if config, is := hook["clientConfig"].(map[string]any); is {
			config["caBundle"] = bundles[hook["name"]]
		}
	}
	annotations := same.GetAnnotations()
	delete(annotations, api.AnnotationAppliedHash)
	same.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(same.Object, "metadata", "annotations")
	}
	same, err := Manifest(same)
	if err != nil {
		return false, err
	}
	return NeedsUpdate(same, live), nil
}

// webhooksOf returns the webhooks of a configuration, without copying them.
func webhooksOf(configuration *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(configuration.Object, "webhooks")
	entries, _ := list.([]any)
	var hooks []map[string]any
	for _, entry := range entries {
		if hook, is := entry.(map[string]any); is {
			hooks = append(hooks, hook)
		}
	}
	return hooks
}

// escaped returns a key as a part of a JSON pointer, see RFC 6901.
func escaped(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
