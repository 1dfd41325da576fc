package inputs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// catalogTimeout limits the reading of one catalog.
const catalogTimeout = time.Minute

// CatalogContent is the content of a catalog, or why it cannot be read.
type CatalogContent struct {
	// Snapshot is nil after an error, and for an invalid CatalogSource.
	Snapshot *catalogs.Snapshot
	// From is where the content was read.
	From string
	Err  error
}

// Contents reads catalogs, where the supervisor reads them.
func (c *Cluster) Contents(ctx context.Context, sources []*operatorsv1alpha1.CatalogSource) map[resolution.CatalogKey]CatalogContent {
	contents := map[resolution.CatalogKey]CatalogContent{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, source := range sources {
		group.Go(func() error {
			var one CatalogContent
			if _, problem := catalogs.SpecProblem(source); problem == "" {
				limited, cancel := context.WithTimeout(ctx, catalogTimeout)
				defer cancel()
				one.Snapshot, one.From, one.Err = c.read(limited, source, "")
			}
			mu.Lock()
			defer mu.Unlock()
			contents[resolution.CatalogKey{Namespace: source.Namespace, Name: source.Name}] = one
			return nil
		})
	}
	_ = group.Wait() // the contents have the errors
	return contents
}

// read reads a catalog with a valid CatalogSource. If a permission is missing, the error ends with instead.
func (c *Cluster) read(ctx context.Context, source *operatorsv1alpha1.CatalogSource, instead string) (*catalogs.Snapshot, string, error) {
	if catalogs.Hosted(source) {
		return c.hosted(ctx, source, instead)
	}
	address := source.Spec.Address
	security, err := c.security(ctx, source)
	if err != nil {
		return nil, "", err
	}
	snapshot, err := fromAddress(ctx, address, security)
	if err != nil {
		err = fmt.Errorf("%w: %w", catalogs.ErrNotConnected, err)
	}
	return snapshot, "spec.address " + address, err
}

// DescribeCatalogs names catalogs, and where they are read.
func DescribeCatalogs(sources []*operatorsv1alpha1.CatalogSource) string {
	names := make([]string, 0, len(sources))
	for _, source := range sources {
		where := source.Spec.Address
		if catalogs.Hosted(source) {
			where = "its pods"
		}
		names = append(names, fmt.Sprintf("catalog %s/%s (%s)", source.Namespace, source.Name, where))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
