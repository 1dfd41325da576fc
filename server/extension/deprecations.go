package extension

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// ListDeprecations implements [registryv1.RegistryServiceServer].
func (s *Service) ListDeprecations(
	ctx context.Context, r *registryv1.ListDeprecationsRequest,
) (*registryv1.ListDeprecationsResponse, error) {
	packages, err := wantedPackages(r.GetPackages())
	if err != nil {
		return nil, err
	}
	p, err := s.openPage(r, deprecationPages())
	if err != nil {
		return nil, err
	}
	if err := p.checkPackages(packages); err != nil {
		return nil, s.statusError(p.index, err)
	}
	out := &registryv1.ListDeprecationsResponse{ContentDigest: p.digest}
	listing := deprecationListing{page: p}
	last, err := listing.read(ctx, packages)
	if err != nil {
		return nil, s.statusError(p.index, err)
	}
	out.Deprecations, out.NextPageToken = listing.objects, p.next(last)
	return out, nil
}

// deprecationListing is a page of deprecations under construction.
type deprecationListing struct {
	*page

	objects []*registryv1.DeprecatedObject
}

// read fills the page with the deprecations of the packages, or of all packages if none is given.
// It returns the position at which the next page begins; empty if this page is the last. A position
// is the number of listed deprecations of a package, followed by the package's name.
func (l *deprecationListing) read(ctx context.Context, packages []string) (last string, err error) {
	number, first, _ := strings.Cut(l.token.after, ":")
	done, err := strconv.Atoi(number)
	if err != nil {
		done = 0
	}
	for name := range l.names(packages) {
		if name < first {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return "", fmt.Errorf("listing deprecations: %w", err)
		}
		graph, err := l.index.Graph(name)
		if err != nil {
			return "", err
		}
		for i, object := range deprecatedObjects(graph) {
			if name == first && i < done {
				continue
			}
			if !l.remainingSpace.take(proto.Size(object)) {
				return last, nil
			}
			l.objects, last = append(l.objects, object), strconv.Itoa(i+1)+":"+name
		}
	}
	return "", nil
}

// names returns the packages, or all of the index if there are none.
func (l *deprecationListing) names(packages []string) iter.Seq[string] {
	if len(packages) > 0 {
		return slices.Values(packages)
	}
	return func(yield func(string) bool) {
		for p := range l.index.Summaries() {
			if !yield(p.Package) {
				return
			}
		}
	}
}
