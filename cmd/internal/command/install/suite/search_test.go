package suite_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// testSearchForeign searches a catalog whose server can only list packages, such as that of opm: without PackageManifests
// of the catalog, then with them.
func testSearchForeign(t *testing.T, c *cluster) {
	t.Helper()
	server := fakecatalog.Start(t, fakecatalog.Simple("beacon", fakecatalog.Entry{Name: "beacon.v1.0.0", Version: "1.0.0"}))
	manifest := packageManifest("default", "foreign", "beacon", map[string]any{
		"name": "stable", "currentCSV": "beacon.v1.0.0", "currentCSVDesc": map[string]any{
			"displayName": "Harbour Light", "version": "1.0.0", "keywords": []any{"navigation"},
		},
	})
	create := func(o client.Object) {
		t.Helper()
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	create(fixtures.ServedCatalog("olm", "foreign", server.Address()))
	const note = "Compared only package names in olm/foreign: the server has no search, and PackageManifests lack the catalog"
	out, log := c.run(t, 2, "search", "navigation", "--catalog", "foreign")
	contains(t, out, "No package was found.")
	contains(t, log, note)
	out, log = c.run(t, 0, "search", "beacon")
	contains(t, out, "beacon olm/foreign")
	contains(t, log, note)

	create(manifest)
	out, log = c.run(t, 0, "search", "navigation", "light")
	contains(t, out, "beacon olm/foreign stable 1.0.0 Harbour Light")
	if log != "" {
		t.Errorf("all fields were compared, and it notes: %s", log)
	}
	c.run(t, 0, "catalog", "remove", "foreign", "--yes")
}
