package install

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// TestErrorOutput covers the output of an installation that is refused or fails.
func TestErrorOutput(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		console.Human: "",
		console.JSON:  "{\n  \"create\": null,\n  \"subscription\": \"lamp\",\n  \"plan\": null,\n  \"problem\": \"away\",\n  \"outcome\": \"failed\"\n}\n",
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			o := options{output: console.Output{Form: form}}
			var out strings.Builder
			err := o.withDocument(&out, &plan{Subscription: "lamp"}, outcomeFailed, errAway)
			if !errors.Is(err, errAway) || out.String() != want {
				t.Errorf("error %v, got %q, want %q", err, out.String(), want)
			}
		})
	}
}

// TestReadNamespace covers the states of a namespace.
func TestReadNamespace(t *testing.T) {
	t.Parallel()
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	deleted := metav1.Now()
	c := fake.NewClientBuilder().WithScheme(kinds).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "live"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "deleted", DeletionTimestamp: &deleted, Finalizers: []string{"example.com/hold"}}},
	).Build()
	for namespace, tt := range map[string]struct {
		exists bool
		code   console.Code
		err    string
	}{
		"live":    {exists: true},
		"absent":  {},
		"deleted": {code: console.Negative, err: "namespace deleted is being deleted; wait until it is gone"},
	} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			found, err := readInventory(t.Context(), c, &request{namespace: namespace, targets: []string{"live", "none"}})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if code := console.CodeOf(err); code != tt.code || text != tt.err {
				t.Errorf("code %d, want %d; error %q, want %q", code, tt.code, text, tt.err)
			}
			if found != nil && (found.exists != tt.exists || !slices.Equal(found.absentTargets, []string{"none"})) {
				t.Errorf("exists %t, want %t; absent targets %q", found.exists, tt.exists, found.absentTargets)
			}
		})
	}
}
