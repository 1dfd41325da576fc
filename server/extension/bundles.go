package extension

import (
	"context"
	"fmt"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

// ListBundles implements [registryv1.RegistryServiceServer].
func (s *Service) ListBundles(
	ctx context.Context, r *registryv1.ListBundlesRequest,
) (*registryv1.ListBundlesResponse, error) {
	filter, err := newBundleFilter(r)
	if err != nil {
		return nil, err
	}
	packages, err := wantedPackages(r.GetPackages())
	if err != nil {
		return nil, err
	}
	p, err := s.openPage(r, bundlePages())
	if err != nil {
		return nil, err
	}
	if err := p.checkPackages(packages); err != nil {
		return nil, s.statusError(p.index, err)
	}
	// Damage would end the listing early without an error.
	if err := p.index.CheckLists(); err != nil {
		return nil, s.statusError(p.index, err)
	}
	listing := bundleListing{page: p, filter: filter}
	last, err := listing.read(ctx, packages)
	if err != nil {
		return nil, s.statusError(p.index, err)
	}
	out := &registryv1.ListBundlesResponse{ContentDigest: p.digest, NextPageToken: p.next(last)}
	// The bundles are already encoded. As unknown fields they are sent unchanged; clients see no difference.
	out.ProtoReflect().SetUnknown(listing.encoded)
	return out, nil
}

// bundleListing is a page of bundles under construction.
type bundleListing struct {
	*page

	filter *bundleFilter
	// outline is the package whose bundles are read.
	outline *outline
	encoded []byte
}

// read fills the page and returns the position at which the next page begins; empty if this page is the last.
func (l *bundleListing) read(ctx context.Context, packages []string) (last string, err error) {
	for key, message := range l.index.BundlesFrom(l.token.after, packages) {
		if err := context.Cause(ctx); err != nil {
			return "", fmt.Errorf("listing bundles: %w", err)
		}
		b, err := readBundle(message)
		if err != nil {
			return "", err
		}
		at, err := l.positionOf(&b)
		if err != nil {
			return "", err
		}
		matches, err := l.filter.matches(&b, at)
		if err != nil {
			return "", err
		}
		if !matches {
			continue
		}
		if !l.remainingSpace.take(len(b.encoded)) {
			return last, nil
		}
		l.encoded, last = b.appendTo(l.encoded, at), key
	}
	return "", nil
}

func (l *bundleListing) positionOf(b *listedBundle) (position, error) {
	if l.outline == nil || l.outline.name != b.pkg {
		message, err := l.index.Package(b.pkg)
		if err != nil {
			return position{}, err
		}
		if l.outline, err = readOutline(message.Bytes()); err != nil {
			return position{}, err
		}
	}
	return l.outline.positionOf(b), nil
}
