package imagesources

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestOwnConfigsAreForgottenByNamespace reads more rules in one namespace than are remembered. Those of another one stay.
func TestOwnConfigsAreForgottenByNamespace(t *testing.T) {
	parsed := map[string]int{}
	configs := NewOwnConfigs("example.com/rules", func(origin string, _ map[string][]byte) (*string, error) {
		parsed[origin]++
		return &origin, nil
	})
	var objects []client.Object
	add := func(namespace, name string, size int) types.NamespacedName {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"rules": strings.Repeat("a", size)},
		})
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	keys := []types.NamespacedName{add("olm", "shop", 100)}
	for i := range maxOwnConfigMiB + 1 {
		keys = append(keys, add("tenant", fmt.Sprintf("c%d", i), 1<<20))
	}
	reader := fake.NewClientBuilder().WithObjects(objects...).Build()
	for range 2 {
		for _, key := range keys {
			if got := configs.Read(t.Context(), reader, key); got.Err != nil || *got.Rules != "ConfigMap "+key.String() {
				t.Fatalf("%s: %+v", key, got)
			}
		}
	}
	if parsed["ConfigMap olm/shop"] != 1 || parsed["ConfigMap tenant/c0"] != 2 {
		t.Errorf("parsed: %v", parsed)
	}
}
