// Package warnings collects the warnings of the API server about written objects, and formats them for an
// Event.
package warnings

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// maxNamed is the number of warnings that an Event lists; further ones are counted.
const maxNamed = 10

// Collector collects the warnings about the requests of one object. It is safe for concurrent use.
type Collector struct {
	mu    sync.Mutex
	texts []string
}

type collectorKey struct{}

// In returns a context for requests whose warnings are collected.
func (c *Collector) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, collectorKey{}, c)
}

// Texts returns the warnings so far, without duplicates.
func (c *Collector) Texts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.texts)
}

func (c *Collector) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.texts, text) {
		c.texts = append(c.texts, text)
	}
}

// Handler passes the warnings of a client to the Collector of the request's context.
type Handler struct{}

// HandleWarningHeaderWithContext adds a warning.
func (Handler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	const miscellaneous = 299
	c, ok := ctx.Value(collectorKey{}).(*Collector)
	if ok && code == miscellaneous && text != "" {
		c.add(text)
	}
}

// Note returns a text about the warnings for an object of an operator. texts are the known warnings, and count
// is the number of all. version may be empty.
func Note(version, kind, name string, texts []string, count int) string {
	named := slices.Clone(texts[:min(maxNamed, len(texts))])
	if rest := count - len(named); rest > 0 {
		named = append(named, fmt.Sprintf("and %d more", rest))
	}
	return olmtext.AppliedWithWarnings(version, kind, name, named, count)
}
