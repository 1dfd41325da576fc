package edit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/pkg/registry"

	"github.com/chandlery/chandlery/bundles"
)

// Edges are the upgrades that lead to a bundle.
type Edges struct {
	// Replaces is the name of the bundle that the new one upgrades from; empty for none.
	Replaces string
	// Skips are the names of bundles that the upgrade to the new one passes over.
	Skips []string
	// SkipRange is a range of versions that the new one may be installed over.
	SkipRange string
}

func (e *Edges) isZero() bool { return e.Replaces == "" && len(e.Skips) == 0 && e.SkipRange == "" }

// ownEdges returns the edges that the bundle's ClusterServiceVersion names.
func ownEdges(b *declcfg.Bundle) (Edges, error) {
	if b.CsvJSON == "" {
		return Edges{}, nil
	}
	var csv registry.ClusterServiceVersion
	if err := json.Unmarshal([]byte(b.CsvJSON), &csv); err != nil {
		return Edges{}, fmt.Errorf("reading the ClusterServiceVersion: %w", bundles.DescribeJSON(err))
	}
	replaces, err := csv.GetReplaces()
	if err != nil {
		return Edges{}, fmt.Errorf("reading spec.replaces: %w", err)
	}
	skips, err := csv.GetSkips()
	if err != nil {
		return Edges{}, fmt.Errorf("reading spec.skips: %w", err)
	}
	return Edges{Replaces: replaces, Skips: skips, SkipRange: csv.GetSkipRange()}, nil
}

// graph returns the upgrade graph of a channel.
func graph(ch *declcfg.Channel) *bundles.Channel {
	out := &bundles.Channel{Name: ch.Name, Package: ch.Package}
	for _, e := range ch.Entries {
		out.Entries = append(out.Entries, bundles.Entry{Name: e.Name, Replaces: e.Replaces, Skips: e.Skips, SkipRange: e.SkipRange})
	}
	return out
}

// versions returns the versions of bundles by their names, as far as they are known.
func versions(all []declcfg.Bundle) map[string]semver.Version {
	found := map[string]semver.Version{}
	for i := range all {
		if version, ok := versionOf(&all[i]); ok {
			found[all[i].Name] = version
		}
	}
	return found
}

func versionOf(b *declcfg.Bundle) (semver.Version, bool) {
	read, err := b.VersionRelease()
	if err != nil {
		return semver.Version{}, false
	}
	return read.Version, true
}

// checkUpgrade returns an error if a change of a channel leaves installed versions without an
// upgrade. An unknown version counts as outside all ranges.
func checkUpgrade(before, after *declcfg.Channel, known map[string]semver.Version) error {
	changed := graph(after)
	if err := changed.CheckGraph(); err != nil {
		return explain(err)
	}
	head, err := changed.Head()
	if err != nil {
		return err //nolint:wrapcheck // CheckGraph has found none
	}
	var stranded []string
	for _, e := range before.Entries {
		if !reaches(changed, e.Name, head.Name, known) {
			stranded = append(stranded, e.Name)
		}
	}
	if len(stranded) > 0 {
		return explain(&bundles.StrandedError{Entries: stranded})
	}
	return nil
}

// reaches reports whether upgrades lead from an entry to the head.
func reaches(ch *bundles.Channel, from, head string, known map[string]semver.Version) bool {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if next[0] == head {
			return true
		}
		for _, e := range ch.Entries {
			version, ok := known[next[0]]
			if !ok {
				e.SkipRange = ""
			}
			if e.Succeeds(next[0], version) && !seen[e.Name] {
				seen[e.Name] = true
				next = append(next, e.Name)
			}
		}
	}
	return false
}

// refusal is the error for a change that must not be made, with a remedy.
type refusal struct {
	err    error
	remedy string
}

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// explain adds the remedy to an error of a graph.
func explain(err error) error {
	remedy := "name with --replaces the bundle that installed versions upgrade from"
	if heads, ok := errors.AsType[*bundles.MultipleHeadsError](err); ok {
		remedy = fmt.Sprintf("let the new bundle replace or skip the present head with --replaces or --skips, so that one of %v is left", heads.Heads)
	}
	if stranded, ok := errors.AsType[*bundles.StrandedError](err); ok {
		remedy = fmt.Sprintf("name them with --skips, so that %v can be upgraded", stranded.Entries)
	}
	return &refusal{err: err, remedy: remedy}
}

// checkOrder returns an error for an upgrade to a lower version.
func checkOrder(added *declcfg.Bundle, e *Edges, known map[string]semver.Version) error {
	version, ok := versionOf(added)
	replaced, known2 := known[e.Replaces]
	if !ok || !known2 || version.GT(replaced) {
		return nil
	}
	return &refusal{
		err:    fmt.Errorf("version %s does not follow version %s of %s, which it would replace", version, replaced, e.Replaces),
		remedy: "name with --replaces a bundle of a lower version",
	}
}

// sortByVersion orders bundles from the lowest version to the highest.
func sortByVersion(all []declcfg.Bundle) {
	slices.SortStableFunc(all, func(a, b declcfg.Bundle) int { return cmp.Or(a.Compare(&b), cmp.Compare(a.Name, b.Name)) })
}
