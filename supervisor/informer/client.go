package informer

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxComplete is the maximum number of trimmed objects of a list that are read from the API server.
const maxComplete = 32

// NewClient returns the client of a manager. It reads from the cache, and reads the objects that the cache
// holds incompletely from the API server.
func NewClient(cfg *rest.Config, options client.Options) (client.Client, error) {
	cached, err := client.New(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	options.Cache = nil
	live, err := client.New(cfg, options)
	if err != nil {
		return nil, fmt.Errorf("making a client that reads past the cache: %w", err)
	}
	return &completingClient{Client: cached, live: live}, nil
}

// completingClient is a client whose Get returns whole objects.
type completingClient struct {
	client.Client

	live client.Reader
}

// Get reads an object.
func (c *completingClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return Reader{Cached: c.Client, Live: c.live}.Get(ctx, key, into, opts...)
}

// Reader reads single objects from a cache, and those that the cache holds incompletely from the API server.
type Reader struct{ Cached, Live client.Reader }

// Get reads an object.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if err := r.Cached.Get(ctx, key, into, opts...); err != nil || !Trimmed(into) {
		return err //nolint:wrapcheck // the reader's own error, which callers look at
	}
	// A reply is decoded into the existing value, and the object from the cache may be shared with it.
	target := reflect.ValueOf(into).Elem()
	kind := into.GetObjectKind().GroupVersionKind()
	target.SetZero()
	into.GetObjectKind().SetGroupVersionKind(kind)
	return r.Live.Get(ctx, key, into) //nolint:wrapcheck // the reader's own error, which callers look at
}

// Complete replaces the trimmed objects of a list from a cache by those of the API server. Objects that matter
// come first. It returns an error if there are more of those than it reads.
func Complete[T any, P interface {
	*T
	client.Object
}](ctx context.Context, live client.Reader, items []T, matters func(P) bool) error {
	read := 0
	for _, wanted := range []bool{true, false} {
		for i := range items {
			item := P(&items[i])
			if !Trimmed(item) || matters(item) != wanted {
				continue
			}
			read++
			if read > maxComplete {
				if !wanted {
					return nil
				}
				return fmt.Errorf("more than %d objects like %T %s take more than %d bytes of memory; delete some of them",
					maxComplete, item, client.ObjectKeyFromObject(item), maxRules)
			}
			var whole T
			if err := live.Get(ctx, client.ObjectKeyFromObject(item), P(&whole)); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading the whole of %T %s: %w", item, client.ObjectKeyFromObject(item), err)
			} else if err == nil {
				items[i] = whole
			}
		}
	}
	return nil
}
