package migration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRestarts checks which operators a handback names because OLM rolls them out.
func TestRestarts(t *testing.T) {
	const ours, mine = "chandlery-supervisor", `{"f:metadata":{"f:annotations":{"f:chandlery.dev/cause":{}}}}`
	owner := map[string]any{"olm.owner": "lamp.v1", "olm.owner.namespace": "lamps", "olm.owner.kind": "ClusterServiceVersion"}
	version := func(annotations map[string]any) *unstructured.Unstructured {
		return by(object("ClusterServiceVersion", "lamps/lamp.v1", map[string]any{"metadata|annotations": annotations}), ours, mine)
	}
	deployment := func(annotations map[string]any) *unstructured.Unstructured {
		return object("Deployment", "lamps/lamp", map[string]any{"metadata|labels": owner, "spec|template|metadata|annotations": annotations})
	}
	for _, tt := range []struct {
		reason string
		live   []*unstructured.Unstructured
		want   string
	}{
		{reason: "pods have the annotations, and others", live: []*unstructured.Unstructured{version(map[string]any{"team": "a"}), deployment(map[string]any{"team": "a", "olmcahash": "x"})}},
		{
			reason: "pods lack an annotation, and have another with a different value",
			live:   []*unstructured.Unstructured{version(map[string]any{"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"}), deployment(map[string]any{"team": "b"})},
			want:   "Deployment lamps/lamp (annotation kubectl.kubernetes.io/last-applied-configuration, team of its version)",
		},
		{reason: "the handback removes the annotation", live: []*unstructured.Unstructured{version(map[string]any{"chandlery.dev/cause": "{}"}), deployment(map[string]any{})}},
		{
			reason: "OLM copied an annotation that the handback removes",
			live:   []*unstructured.Unstructured{version(map[string]any{"chandlery.dev/cause": "{}"}), deployment(map[string]any{"chandlery.dev/cause": "{}"})},
			want:   "Deployment lamps/lamp (annotation chandlery.dev/cause of its version)",
		},
		{
			reason: "a user set the annotation",
			live:   []*unstructured.Unstructured{version(map[string]any{"chandlery.dev/skip-cleanup": "true"}), deployment(map[string]any{})},
			want:   "Deployment lamps/lamp (annotation chandlery.dev/skip-cleanup of its version)",
		},
		{reason: "the version is gone", live: []*unstructured.Unstructured{deployment(map[string]any{})}},
		{reason: "a Deployment of a user", live: []*unstructured.Unstructured{object("Deployment", "lamps/other", nil)}},
		{
			reason: "settings that OLM does not know",
			live:   []*unstructured.Unstructured{object("Subscription", "lamps/lamp", map[string]any{"metadata|annotations": map[string]any{"chandlery.dev/config": "{}"}})},
			want:   "the operator of Subscription lamps/lamp (annotation chandlery.dev/config)",
		},
		{
			reason: "pull secrets of a catalog, which OLM does not know",
			live: []*unstructured.Unstructured{object("Deployment", "lamps/lamp", map[string]any{
				"metadata|annotations": map[string]any{"chandlery.dev/operator-pull-secrets": "mirror"},
			})},
			want: "Deployment lamps/lamp (annotation chandlery.dev/operator-pull-secrets of its catalog)",
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			live := objectsByKey{}
			live.add(tt.live)
			got := strings.Join(restarts(live), "\n")
			if (got == "") != (tt.want == "") || !strings.HasSuffix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
