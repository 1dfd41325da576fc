package catalogs

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
)

const (
	// pageSize is the number of bundles or deprecations per request.
	pageSize = 1000
	// maxPages limits the pages of one listing. A server can return short pages, but not without
	// end.
	maxPages = 10_000
	// maxBeginnings limits how often a listing starts again because the content changed.
	maxBeginnings = 5
)

// errReplaced is returned if the content changes during a reading.
var errReplaced = errors.New("the content was replaced while it was being read")

// fetchPages reads a whole catalog through the extension API. It starts again if the content
// changes.
func fetchPages(ctx context.Context, client registryv1.RegistryServiceClient, limit int64) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	var err error
	for range maxBeginnings {
		listing := &listing{client: client, assembly: newAssembly(limit)}
		if err = listing.read(ctx); err == nil {
			return listing.assembly.snapshot(listing.digest), nil
		}
		if !errors.Is(err, errReplaced) && status.Code(err) != codes.Aborted {
			break
		}
	}
	return nil, fmt.Errorf("failed to list bundles: %w", err)
}

// listing reads all pages of one content.
type listing struct {
	client   registryv1.RegistryServiceClient
	assembly *assembly
	digest   string
}

func (l *listing) read(ctx context.Context) error {
	if err := l.turn(ctx, l.bundles); err != nil {
		return err
	}
	return l.turn(ctx, l.deprecations)
}

// page has the methods that pages of both kinds share.
type page interface {
	GetNextPageToken() string
	GetContentDigest() string
}

// turn reads all pages of one kind.
func (l *listing) turn(ctx context.Context, read func(ctx context.Context, token string) (page, error)) error {
	token := ""
	for range maxPages {
		p, err := read(ctx, token)
		if err != nil {
			return err
		}
		if l.digest == "" {
			l.digest = p.GetContentDigest()
		}
		switch {
		case p.GetContentDigest() == "":
			return unusable(errors.New("a page does not say which content it is of; its server breaks the rules of chandlery.registry.v1"))
		case p.GetContentDigest() != l.digest:
			return errReplaced
		case p.GetNextPageToken() == "":
			return nil
		case p.GetNextPageToken() == token:
			return unusable(errors.New("a page is followed by itself; its server breaks the rules of chandlery.registry.v1"))
		}
		token = p.GetNextPageToken()
	}
	return unusable(fmt.Errorf("it has more than %d pages; its server breaks the rules of chandlery.registry.v1", maxPages))
}

func (l *listing) bundles(ctx context.Context, token string) (page, error) {
	p, err := l.client.ListBundles(ctx, &registryv1.ListBundlesRequest{PageSize: pageSize, PageToken: token})
	if err != nil {
		return nil, err
	}
	for _, b := range p.GetBundles() {
		if err := l.assembly.addPaged(b); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (l *listing) deprecations(ctx context.Context, token string) (page, error) {
	p, err := l.client.ListDeprecations(ctx, &registryv1.ListDeprecationsRequest{PageSize: pageSize, PageToken: token})
	if err != nil {
		return nil, fmt.Errorf("listing deprecations: %w", err)
	}
	for _, d := range p.GetDeprecations() {
		if err := l.assembly.addDeprecation(d); err != nil {
			return nil, err
		}
	}
	return p, nil
}
