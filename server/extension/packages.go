package extension

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/chandlery/chandlery/bundles/index"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// SearchPackages implements [registryv1.RegistryServiceServer].
func (s *Service) SearchPackages(
	ctx context.Context, r *registryv1.SearchPackagesRequest,
) (*registryv1.SearchPackagesResponse, error) {
	search, err := newSearch(r)
	if err != nil {
		return nil, err
	}
	p, err := s.openPage(r, packagePages())
	if err != nil {
		return nil, err
	}
	hits, err := search.all(ctx, p.index.Summaries())
	if err != nil {
		return nil, s.statusError(p.index, err)
	}
	// The same search in the same content has the same result, so a number identifies a position.
	from := min(p.number(), len(hits))
	out := &registryv1.SearchPackagesResponse{ContentDigest: p.digest, TotalSize: count(len(hits))}
	if out.Matches, err = p.matches(hits[from:]); err != nil {
		return nil, s.statusError(p.index, err)
	}
	if end := from + len(out.GetMatches()); end < len(hits) {
		out.NextPageToken = p.next(strconv.Itoa(end))
	}
	return out, nil
}

// all returns the packages that match, the best first.
func (s *search) all(ctx context.Context, packages iter.Seq[index.Summary]) ([]packageMatch, error) {
	var out []packageMatch
	for p := range packages {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("searching: %w", err)
		}
		if found, ok := s.match(&p); ok {
			out = append(out, found)
		}
	}
	slices.SortFunc(out, compareHits)
	return out, nil
}

// matches returns the hits that fit in the page.
func (p *page) matches(hits []packageMatch) ([]*registryv1.PackageMatch, error) {
	var out []*registryv1.PackageMatch
	for _, found := range hits {
		summary, err := p.index.Summary(found.pkg)
		if err != nil {
			return nil, err
		}
		match := &registryv1.PackageMatch{Package: packageSummary(&summary), Score: count(found.score), Fields: found.fields}
		if !p.remainingSpace.take(proto.Size(match)) {
			break
		}
		out = append(out, match)
	}
	return out, nil
}
