// Package warnings collects what the API server warns about while objects are written, and
// words it for an Event.
package warnings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxNamed is how many warnings an Event names; more are counted.
const maxNamed = 10

// Collector collects the warnings about the requests of one object. It may be used by several
// goroutines.
type Collector struct {
	mu    sync.Mutex
	texts []string
}

type collectorKey struct{}

// In returns a context for requests whose warnings are collected.
func (c *Collector) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, collectorKey{}, c)
}

// Texts returns the warnings so far, each once.
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

// Note words warnings about an object of an operator. The texts are those that are known, count
// is the number of all; version may be empty.
func Note(version, kind, name string, texts []string, count int) string {
	during := "operator installation"
	if version != "" {
		during = fmt.Sprintf("installation of operator %q", version)
	}
	named := texts[:min(maxNamed, len(texts))]
	text := strings.Join(named, ", ")
	if rest := count - len(named); rest > 0 {
		text += fmt.Sprintf(", and %d more", rest)
	}
	return fmt.Sprintf("%d warning(s) generated during %s (%s %q): %s", count, during, kind, name, text)
}
