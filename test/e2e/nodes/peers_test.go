package nodes_test

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/test/failover"
)

// TestSideBySide serves the same catalog in every way: by an unchanged image of opm, by an
// unchanged image of our registry, and by our registry with the content of an image without a
// program. All must become READY, and operators must be installable from each.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	s := scene(t)
	opm := failover.NewCatalog("opm", pushCatalog(t, s, "opm:v1", opmServer), 0)
	own := failover.NewCatalog("own", pushCatalog(t, s, "own:v1", ownServer), 0)
	content := failover.NewCatalog("content", pushCatalog(t, s, "content:v1", contentOnly), 0)
	content.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{
		ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs", CacheDir: "/tmp/cache"},
	}
	create(t, s, opm, own, content)
	for _, name := range []string{"opm", "own", "content"} {
		t.Run(name, func(t *testing.T) {
			installed := subscribe(t, s, "from-"+name, name)
			must(t, s.Ready(t.Context(), name))
			must(t, s.Strong(t.Context(), failover.Hosted(name, replicas)))
			installed(t)
		})
	}
}
