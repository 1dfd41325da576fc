package operatorgroup

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// TestGrantedCompletesALateCache has a cache that lacks a claim of this process and later receives
// it.
func TestGrantedCompletesALateCache(t *testing.T) {
	const key, lamp = "olm.providedAPIs", "Lamp.v1.shop.example"
	at := func(version, claims string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "own", UID: "1", ResourceVersion: version, Annotations: map[string]string{key: claims},
		}}
	}
	var c claimCache
	if got := c.withWritten(at("7", "")); got.Annotations[key] != "" {
		t.Errorf("without a claim the group has %q", got.Annotations[key])
	}
	c.add(at("8", ""), providedapis.Parse(lamp))
	late := at("7", "")
	if got := c.withWritten(late); got.Annotations[key] != lamp || got.ResourceVersion != "8" || late.Annotations[key] != "" {
		t.Errorf("the late group has %q in version %s, and the cache's %q", got.Annotations[key], got.ResourceVersion, late.Annotations[key])
	}
	if got := c.withWritten(at("9", "")); got.Annotations[key] != "" {
		t.Errorf("a group that has changed since has %q", got.Annotations[key])
	}
	if got := c.withWritten(at("7", "")); got.Annotations[key] != "" || len(c.last) > 0 {
		t.Errorf("a claim that the cache has is still recorded: %v", c.last)
	}
}
