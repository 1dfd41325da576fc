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
	// maxRestarts limits how often a listing starts again because the content changed.
	maxRestarts = 5
)

// errReplaced is returned if the content changes during a reading.
var errReplaced = errors.New("the content was replaced while it was being read")

// fetchPages reads a whole catalog through the extension API. It starts again if the content
// changes.
func fetchPages(ctx context.Context, client registryv1.RegistryServiceClient, limit int64) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	var err error
	for range maxRestarts {
		reader := &pageReader{client: client, builder: newSnapshotBuilder(limit)}
		if err = reader.read(ctx); err == nil {
			return reader.builder.snapshot(reader.digest), nil
		}
		if !errors.Is(err, errReplaced) && status.Code(err) != codes.Aborted {
			break
		}
	}
	return nil, fmt.Errorf("failed to list bundles: %w", err)
}

// pageReader reads all pages of one content.
type pageReader struct {
	client  registryv1.RegistryServiceClient
	builder *snapshotBuilder
	digest  string
}

func (r *pageReader) read(ctx context.Context) error {
	if err := r.readPages(ctx, r.bundles); err != nil {
		return err
	}
	return r.readPages(ctx, r.deprecations)
}

// page has the methods that pages of both kinds share.
type page interface {
	GetNextPageToken() string
	GetContentDigest() string
}

// readPages reads all pages of one kind.
func (r *pageReader) readPages(ctx context.Context, read func(ctx context.Context, token string) (page, error)) error {
	token := ""
	for range maxPages {
		p, err := read(ctx, token)
		if err != nil {
			return err
		}
		if r.digest == "" {
			r.digest = p.GetContentDigest()
		}
		switch {
		case p.GetContentDigest() == "":
			return unusable(errors.New("a page does not say which content it is of; its server breaks the rules of chandlery.registry.v1"))
		case p.GetContentDigest() != r.digest:
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

func (r *pageReader) bundles(ctx context.Context, token string) (page, error) {
	p, err := r.client.ListBundles(ctx, &registryv1.ListBundlesRequest{PageSize: pageSize, PageToken: token})
	if err != nil {
		return nil, err
	}
	for _, b := range p.GetBundles() {
		if err := r.builder.addPaged(b); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (r *pageReader) deprecations(ctx context.Context, token string) (page, error) {
	p, err := r.client.ListDeprecations(ctx, &registryv1.ListDeprecationsRequest{PageSize: pageSize, PageToken: token})
	if err != nil {
		return nil, fmt.Errorf("listing deprecations: %w", err)
	}
	for _, d := range p.GetDeprecations() {
		if err := r.builder.addDeprecation(d); err != nil {
			return nil, err
		}
	}
	return p, nil
}
