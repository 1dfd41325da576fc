package resolution

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
)

// Cache holds the last solution of each namespace, so that the same input is not resolved twice. It is safe for
// concurrent use; the zero value is ready.
type Cache struct {
	mu      sync.Mutex
	entries map[string]cacheEntry
}

type cacheEntry struct {
	input    Input
	solution Solution
}

// Resolve returns the solution for an input: the cached one if nothing has changed since. cached reports whether it is
// that one. Neither the input nor the solution may be changed afterwards.
func (c *Cache) Resolve(ctx context.Context, in Input) (solution Solution, cached bool) {
	c.mu.Lock()
	last, ok := c.entries[in.Namespace]
	c.mu.Unlock()
	if ok && last.input.equal(&in) {
		return last.solution, true
	}
	solution = Resolve(ctx, in)
	if !complete(ctx, solution) {
		return solution, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]cacheEntry{}
	}
	c.entries[in.Namespace] = cacheEntry{input: in, solution: solution}
	return solution, false
}

// complete reports whether a solution was not cut short by the end of ctx.
func complete(ctx context.Context, s Solution) bool {
	if ctx.Err() == nil {
		return true
	}
	for _, outcome := range s {
		if errors.Is(outcome.Err, context.Canceled) || errors.Is(outcome.Err, context.DeadlineExceeded) {
			return false
		}
	}
	return true
}

// Forget removes the cached solution of a namespace.
func (c *Cache) Forget(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, namespace)
}

// equal reports whether two inputs are the same. Inputs of an unchanged namespace usually share their parts, so few
// texts are compared.
func (in *Input) equal(other *Input) bool {
	return in.Namespace == other.Namespace &&
		slices.Equal(in.Subscriptions, other.Subscriptions) &&
		slices.EqualFunc(in.Operators, other.Operators, func(a, b Operator) bool { return a.equal(&b) }) &&
		sameCatalogs(in.Catalogs, other.Catalogs)
}

func sameCatalogs(a, b map[CatalogKey]Catalog) bool {
	if len(a) != len(b) {
		return false
	}
	for key, x := range a {
		y, ok := b[key]
		same := ok && x.Content == y.Content && x.Priority == y.Priority && x.Pending == y.Pending && sameText(x.Err, y.Err)
		if !same {
			return false
		}
	}
	return true
}

func sameText(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

func (o *Operator) equal(other *Operator) bool {
	return o.Name == other.Name && sameSubject(&o.Subject, &other.Subject) &&
		sameList(o.Requires, other.Requires, func(a, b []constraint.Constraint) bool { return reflect.DeepEqual(a, b) })
}

func sameSubject(a, b *constraint.Subject) bool {
	return a.Package == b.Package && a.Version.EQ(b.Version) && a.Deprecated == b.Deprecated &&
		sameList(a.GVKs, b.GVKs, slices.Equal) &&
		sameList(a.Labels, b.Labels, slices.Equal) &&
		sameList(a.Properties, b.Properties, slices.Equal)
}

// sameList reports whether two lists are equal. It does not compare the elements if both are the same slice.
func sameList[T any](a, b []T, equal func(a, b []T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || equal(a, b)
}
