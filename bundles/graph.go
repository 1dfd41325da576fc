package bundles

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// ErrNoHead means that another entry replaces or skips every entry of a channel.
var ErrNoHead = errors.New("no channel head found in graph")

// MultipleHeadsError means that more than one entry of a channel is neither replaced nor skipped.
type MultipleHeadsError struct {
	// Heads are the names of these entries, in byte order.
	Heads []string
}

// Error names the heads.
func (e *MultipleHeadsError) Error() string {
	return "multiple channel heads found in graph: " + strings.Join(e.Heads, ", ")
}

// CycleError means that the replaces chain has a cycle.
type CycleError struct {
	// Path begins and ends with the same name.
	Path []string
}

// Error shows the cycle.
func (e *CycleError) Error() string {
	return "detected cycle in replaces chain of upgrade graph: " + strings.Join(e.Path, " -> ")
}

// StrandedError means that entries of a channel are neither on the replaces chain nor skipped. No
// upgrade leads from them.
type StrandedError struct {
	// Entries are their names, in byte order.
	Entries []string
}

// Error names the entries.
func (e *StrandedError) Error() string {
	return "channel contains one or more stranded bundles: " + strings.Join(e.Entries, ", ")
}

// Entry returns the entry with a name, and whether the channel has one.
func (c *Channel) Entry(name string) (Entry, bool) {
	for i := range c.Entries {
		if c.Entries[i].Name == name {
			return c.Entries[i], true
		}
	}
	return Entry{}, false
}

// Head returns the only entry that no entry of the channel replaces or skips.
// The error is [ErrNoHead] or a [*MultipleHeadsError].
func (c *Channel) Head() (Entry, error) {
	left := make(map[string]bool, len(c.Entries))
	for i := range c.Entries {
		left[c.Entries[i].Replaces] = true
		for _, skipped := range c.Entries[i].Skips {
			left[skipped] = true
		}
	}
	var heads []Entry
	for i := range c.Entries {
		// An entry without a name is reported elsewhere. The empty "replaces" of other entries does
		// not refer to it.
		if name := c.Entries[i].Name; name == "" || !left[name] {
			heads = append(heads, c.Entries[i])
		}
	}
	switch len(heads) {
	case 0:
		return Entry{}, ErrNoHead
	case 1:
		return heads[0], nil
	default:
		return Entry{}, &MultipleHeadsError{Heads: names(heads)}
	}
}

// Chain returns the entries that lead from the head down the replaces edges, head first. It ends
// before an entry that another one skips and before an entry that the channel lacks. Besides the
// errors of [Channel.Head] there is [*CycleError].
func (c *Channel) Chain() ([]Entry, error) {
	head, err := c.Head()
	if err != nil {
		return nil, err
	}
	entries, skipped := c.lookup()
	chain := []Entry{head}
	at := map[string]int{head.Name: 0}
	for next := head.Replaces; next != "" && !skipped[next]; {
		if from, seen := at[next]; seen {
			return nil, &CycleError{Path: append(path(chain[from:]), next)}
		}
		entry, ok := entries[next]
		if !ok {
			break
		}
		at[next] = len(chain)
		chain = append(chain, entry)
		next = entry.Replaces
	}
	return chain, nil
}

// CheckGraph returns an error if the channel's graph is unusable: [ErrNoHead], a
// [*MultipleHeadsError], a [*CycleError] or a [*StrandedError].
func (c *Channel) CheckGraph() error {
	chain, err := c.Chain()
	if err != nil {
		return err
	}
	_, reached := c.lookup()
	for i := range chain {
		reached[chain[i].Name] = true
	}
	var stranded []Entry
	for i := range c.Entries {
		if !reached[c.Entries[i].Name] {
			stranded = append(stranded, c.Entries[i])
		}
	}
	if len(stranded) > 0 {
		return &StrandedError{Entries: names(stranded)}
	}
	return nil
}

// Successors returns the entries that may be installed over the named bundle: those that replace
// it, skip it, or have its version in their skipRange. Entries of the replaces chain come first,
// beginning at the head, then the others in byte order. A skipRange that cannot be parsed covers
// nothing.
func (c *Channel) Successors(installed string, version semver.Version) []Entry {
	rank := make(map[string]int)
	// A channel whose chain cannot be followed still has edges.
	if chain, err := c.Chain(); err == nil {
		for i := range chain {
			rank[chain[i].Name] = i - len(chain)
		}
	}
	var out []Entry
	for i := range c.Entries {
		if c.Entries[i].Name != installed && c.Entries[i].Succeeds(installed, version) {
			out = append(out, c.Entries[i])
		}
	}
	slices.SortStableFunc(out, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(rank[a.Name], rank[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Succeeds reports whether the entry may be installed over a bundle of that name and version: it
// replaces it, skips it, or its skipRange covers the version.
func (e Entry) Succeeds(installed string, version semver.Version) bool {
	if installed != "" && (e.Replaces == installed || slices.Contains(e.Skips, installed)) {
		return true
	}
	if e.SkipRange == "" {
		return false
	}
	covers, err := ParseRange(e.SkipRange)
	return err == nil && covers(version)
}

// ParseRange parses a range of versions in the grammar of
// github.com/blang/semver. The error wraps the cause.
func ParseRange(text string) (semver.Range, error) {
	covers, err := semver.ParseRange(text)
	if err == nil {
		// semver returns a function that panics for a range with an empty alternative, as in "1.x
		// || || 2.x". An empty alternative on its own is an error.
		for alternative := range strings.SplitSeq(text, "||") {
			if _, err = semver.ParseRange(alternative); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("parsing version range %q: %w", text, err)
	}
	return covers, nil
}

// lookup returns the entries by name and the names that any entry skips.
func (c *Channel) lookup() (entries map[string]Entry, skipped map[string]bool) {
	entries = make(map[string]Entry, len(c.Entries))
	skipped = make(map[string]bool)
	for i := range c.Entries {
		entries[c.Entries[i].Name] = c.Entries[i]
		for _, name := range c.Entries[i].Skips {
			skipped[name] = true
		}
	}
	return entries, skipped
}

// path returns the names in their order.
func path(entries []Entry) []string {
	out := make([]string, len(entries))
	for i := range entries {
		out[i] = entries[i].Name
	}
	return out
}

// names returns the names in byte order.
func names(entries []Entry) []string {
	out := path(entries)
	slices.Sort(out)
	return out
}
