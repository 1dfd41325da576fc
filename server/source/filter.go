package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/chandlery/chandlery/bundles/index"
	"github.com/chandlery/chandlery/bundles/selection"
)

// Filter selects a part of the content of a source. The zero value selects all of it.
type Filter struct {
	// Selection is the selected content; nil for everything.
	Selection *selection.Selection
	// Logger receives what dependencies add; nil for none.
	Logger *slog.Logger
}

// apply returns the selected part of a catalog.
func (f Filter) apply(ctx context.Context, from index.Source) (index.Source, error) {
	if f.Selection.IsZero() {
		return from, nil
	}
	selected, err := selection.Open(ctx, from, f.Selection)
	if err != nil {
		return nil, fmt.Errorf("selecting from the catalog: %w", err)
	}
	f.log(ctx, selected)
	return selected, nil
}

// log logs what dependencies add and which dependencies are missing.
func (f Filter) log(ctx context.Context, selected *selection.Selected) {
	logger := f.Logger
	if logger == nil {
		return
	}
	for _, a := range selected.Additions() {
		logger.InfoContext(ctx, "Added a dependency to the selection", "package", a.Package, "channel", a.Channel, "bundle", a.Bundle,
			"requiredBy", a.ForBundle, "requirement", a.Requirement)
	}
	for _, u := range selected.Unmet() {
		message := "Nothing in the catalog provides what a bundle requires"
		if u.Expression {
			message = "A requirement has a CEL rule, which selections do not evaluate: add what it asks for to the selection"
		}
		logger.WarnContext(ctx, message, "package", u.Package, "bundle", u.Bundle, "requirement", u.Requirement) //nolint:sloglint // one of two messages
	}
}

// key identifies the index of a selection; empty for the whole content.
func (f Filter) key() string {
	if f.Selection.IsZero() {
		return ""
	}
	sum := sha256.Sum256([]byte(f.Selection.String()))
	return hex.EncodeToString(sum[:8])
}

// digest returns the digest of the source of an index. A selection has a digest that differs from
// the digest of the whole.
func (f Filter) digest(whole [32]byte) [32]byte {
	if f.Selection.IsZero() {
		return whole
	}
	return sha256.Sum256(append(whole[:], f.Selection.String()...))
}
