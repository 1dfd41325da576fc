package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// Cached is the memory of the objects of one kind.
type Cached struct {
	Kind    string
	Objects int
	// Whole is the memory of one object as the API server sends it. Kept is what the supervisor's cache keeps of
	// it. Both are means in bytes of the heap.
	Whole, Kept int64
}

// Cached reads all versions and Subscriptions and returns their memory.
func (c *Cluster) Cached(ctx context.Context) ([]Cached, error) {
	versions, subscriptions := &operatorsv1alpha1.ClusterServiceVersionList{}, &operatorsv1alpha1.SubscriptionList{}
	if err := c.plane.client.List(ctx, versions); err != nil {
		return nil, fmt.Errorf("listing versions: %w", err)
	}
	if err := c.plane.client.List(ctx, subscriptions); err != nil {
		return nil, fmt.Errorf("listing Subscriptions: %w", err)
	}
	first, err := cached(operatorsv1alpha1.ClusterServiceVersionKind, versions.Items)
	if err != nil {
		return nil, err
	}
	second, err := cached(operatorsv1alpha1.SubscriptionKind, subscriptions.Items)
	return []Cached{first, second}, err
}

// cached decodes objects, transforms them and measures the heap before, between and after.
func cached[T any](kind string, items []T) (Cached, error) {
	encoded := make([][]byte, len(items))
	for i := range items {
		var err error
		if encoded[i], err = json.Marshal(&items[i]); err != nil {
			return Cached{}, fmt.Errorf("encoding a %s: %w", kind, err)
		}
	}
	objects := make([]any, len(items))
	before := live()
	for i, data := range encoded {
		o := reflect.New(reflect.TypeFor[T]()).Interface()
		if err := json.Unmarshal(data, o); err != nil {
			return Cached{}, fmt.Errorf("decoding a %s: %w", kind, err)
		}
		objects[i] = o
	}
	whole := live()
	for i, o := range objects {
		var err error
		if objects[i], err = informer.Transform(o); err != nil {
			return Cached{}, fmt.Errorf("transforming a %s: %w", kind, err)
		}
	}
	kept := live()
	runtime.KeepAlive(encoded)
	runtime.KeepAlive(objects)
	n := int64(max(1, len(items)))
	return Cached{Kind: kind, Objects: len(items), Whole: (whole - before) / n, Kept: (kept - before) / n}, nil
}

// live returns the number of bytes of the heap that are in use.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
