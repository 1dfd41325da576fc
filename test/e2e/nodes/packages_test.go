package nodes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
)

// listings is the number of lists that show the same content before it counts as shown by both supervisors: the API server
// chooses one of them for each list.
const listings = 20

// packageLists are lists of the PackageManifests of a catalog, each from one of the supervisors.
type packageLists struct {
	api     rest.Interface
	catalog string
}

// listsOf returns the lists of a catalog.
func listsOf(t *testing.T, s *failover.Scene, catalog string) packageLists {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Bed.Config())
	must(t, err)
	return packageLists{api: c.RESTClient(), catalog: catalog}
}

// names returns the names of the packages in one list, separated by commas.
func (l packageLists) names(ctx context.Context) (string, error) {
	text, err := l.api.Get().AbsPath("/apis/packages.operators.coreos.com/v1/namespaces", failover.CatalogNamespace, "packagemanifests").
		Param("labelSelector", "catalog="+l.catalog).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("listing the packages of catalog %s: %w", l.catalog, err)
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return "", fmt.Errorf("reading the packages of catalog %s: %w", l.catalog, err)
	}
	var found []string
	for _, item := range list.Items {
		found = append(found, item.Metadata.Name)
	}
	return strings.Join(found, ","), nil
}

// show waits until both supervisors show packages. A list with others than these and former ones fails the test.
func (l packageLists) show(t *testing.T, want string, former ...string) {
	t.Helper()
	must(t, failover.Eventually(t.Context(), "the packages of catalog "+l.catalog+" to be "+want, func(ctx context.Context) string {
		for range listings {
			found, err := l.names(ctx)
			if err != nil {
				return err.Error()
			}
			if found != want && !slices.Contains(former, found) {
				t.Fatalf("a list has %s, want %s or %v", found, want, former)
			}
			if found != want {
				return found
			}
		}
		return ""
	}))
}

// samplePackages returns the names of all packages of the sample catalog, separated by commas.
func samplePackages(t *testing.T) string {
	t.Helper()
	samples, err := buildcache.SourceDir("examples/catalog")
	must(t, err)
	entries, err := os.ReadDir(samples)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, ",")
}
