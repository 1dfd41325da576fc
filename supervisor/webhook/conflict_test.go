package webhook

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLiveConflictMessage checks the messages about objects that cannot be taken over.
func TestLiveConflictMessage(t *testing.T) {
	object := func(kind string, service any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "apps", "version": "v1"}}}
		if service != nil {
			u.Object["spec"].(map[string]any)["service"] = service
		}
		u.SetGroupVersionKind(APIServiceKind())
		u.SetKind(kind)
		u.SetName("v1.apps")
		return u
	}
	theirs := map[string]any{"namespace": "default", "name": "theirs", "port": int64(443)}
	for name, tt := range map[string]struct {
		live        *unstructured.Unstructured
		owner, want string
	}{
		"the API server's own": {
			object("APIService", nil), noOwner,
			`APIService "v1.apps" is built in: the API server itself serves version v1 of group apps; ` +
				"the author of this version must choose another group or version in spec.apiservicedefinitions",
		},
		"somebody's": {
			object("APIService", theirs), noOwner,
			`APIService "v1.apps" exists, belongs to no ClusterServiceVersion and points to Service default/theirs, which serves version v1 of group apps; ` +
				"if you keep that server, the author of this version must choose another group or version in spec.apiservicedefinitions",
		},
		"an operator's": {object("APIService", theirs), "csv a/b", `APIService "v1.apps" exists and belongs to csv a/b; delete or rename one of the two`},
		"another kind":  {object("Service", nil), noOwner, `Service "v1.apps" exists and belongs to no ClusterServiceVersion; delete or rename one of the two`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LiveConflictMessage(tt.live, tt.owner); got != tt.want {
				t.Errorf("obstacle is %q, want %q", got, tt.want)
			}
		})
	}
}
