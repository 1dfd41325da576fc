package selection

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/bundles"
)

func channelOf(entries ...bundles.Entry) *bundles.Channel {
	return &bundles.Channel{Name: "stable", Package: "p", Entries: entries}
}

// versionsOf assigns the version N.0.0 to an entry vN.
func versionsOf(ch *bundles.Channel) versions {
	out := make(versions)
	for _, e := range ch.Entries {
		out[e.Name] = semver.MustParse(e.Name[1:] + ".0.0")
	}
	return out
}

func setOf(names ...string) map[string]bool {
	out := make(map[string]bool)
	for _, name := range names {
		out[name] = true
	}
	return out
}

func TestReduce(t *testing.T) {
	chain := channelOf(
		bundles.Entry{Name: "v1", Replaces: "v0"}, bundles.Entry{Name: "v2", Replaces: "v1"},
		bundles.Entry{Name: "v3", Replaces: "v2"}, bundles.Entry{Name: "v4", Replaces: "v3"})
	for name, test := range map[string]struct {
		reason  string
		channel *bundles.Channel
		keep    []string
		want    []bundles.Entry
		wantErr error
	}{
		"Gap": {
			reason: "what is left out is skipped, and the chain goes on behind it", channel: chain, keep: []string{"v1", "v4"},
			want: []bundles.Entry{{Name: "v1", Replaces: "v0"}, {Name: "v4", Replaces: "v1", Skips: []string{"v2", "v3"}}},
		},
		"Head": {
			reason: "everything can upgrade to the head, also what the channel lacks", channel: chain, keep: []string{"v4"},
			want: []bundles.Entry{{Name: "v4", Replaces: "v3", Skips: []string{"v0", "v1", "v2"}}},
		},
		"NewHead": {
			reason: "the chain may end earlier", channel: chain, keep: []string{"v2", "v1"},
			want: []bundles.Entry{{Name: "v1", Replaces: "v0"}, {Name: "v2", Replaces: "v1"}},
		},
		"Ranges": {
			reason: "ranges are put together, and names in them are not repeated",
			channel: channelOf(
				bundles.Entry{Name: "v1"}, bundles.Entry{Name: "v2", Replaces: "v1", SkipRange: ">=0.1.0 <2.0.0"},
				bundles.Entry{Name: "v3", Replaces: "v2", SkipRange: ">=1.0.0 <3.0.0"}),
			keep: []string{"v3"},
			want: []bundles.Entry{{Name: "v3", Replaces: "v2", SkipRange: ">=0.1.0 <3.0.0"}},
		},
		"Patches": {
			reason: "what a dropped entry skips is skipped by the next",
			channel: channelOf(
				bundles.Entry{Name: "v1"}, bundles.Entry{Name: "v2"}, bundles.Entry{Name: "v3", Skips: []string{"v1", "v2"}},
				bundles.Entry{Name: "v4", Replaces: "v3"}),
			keep: []string{"v1", "v4"},
			want: []bundles.Entry{{Name: "v1"}, {Name: "v4", Replaces: "v3", Skips: []string{"v1", "v2"}}},
		},
		"ChainHolds": {
			reason: "an entry of the chain is not skipped on behalf of a dropped one: what is below would be stranded",
			channel: channelOf(
				bundles.Entry{Name: "v1"}, bundles.Entry{Name: "v2", Replaces: "v1"}, bundles.Entry{Name: "v3", Replaces: "v2"},
				bundles.Entry{Name: "v4", Replaces: "v2"}, bundles.Entry{Name: "v5", Replaces: "v3", Skips: []string{"v4"}}),
			keep: []string{"v1", "v2", "v3", "v5"},
			want: []bundles.Entry{
				{Name: "v1"}, {Name: "v2", Replaces: "v1"}, {Name: "v3", Replaces: "v2"}, {Name: "v5", Replaces: "v3", Skips: []string{"v4"}},
			},
		},
		"Siblings": {
			reason:  "no edge is invented between what only a dropped entry joined",
			channel: channelOf(bundles.Entry{Name: "v1"}, bundles.Entry{Name: "v2"}, bundles.Entry{Name: "v3", Skips: []string{"v1", "v2"}}),
			keep:    []string{"v1", "v2"},
			wantErr: &bundles.MultipleHeadsError{Heads: []string{"v1", "v2"}},
		},
		"All": {
			reason: "nothing changes when nothing is left out", channel: chain, keep: []string{"v1", "v2", "v3", "v4"}, want: chain.Entries,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := reduce(test.channel, versionsOf(test.channel), setOf(test.keep...))
			if test.wantErr != nil {
				if diff := cmp.Diff(test.wantErr, errors.Unwrap(err)); diff != "" {
					t.Errorf("%s: -want +got:\n%s", test.reason, diff)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", test.reason, err)
			}
			if diff := cmp.Diff(test.want, got.Entries); diff != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, diff)
			}
		})
	}
}

// drawChannel generates a valid channel whose edges lead from lower to higher versions: a chain,
// and entries that others skip.
func drawChannel(t *rapid.T) *bundles.Channel {
	n := rapid.IntRange(1, 9).Draw(t, "entries")
	ch := channelOf()
	last := ""
	for i := 1; i <= n; i++ {
		e := bundles.Entry{Name: fmt.Sprintf("v%d", i)}
		lower := func(label string) string { return fmt.Sprintf("v%d", rapid.IntRange(0, i-1).Draw(t, label)) }
		onChain := i == n || rapid.Bool().Draw(t, "chain")
		switch {
		case onChain && last != "":
			e.Replaces = last
		case rapid.Bool().Draw(t, "replaces"):
			e.Replaces = lower("replaced")
		}
		if onChain {
			last = e.Name
		}
		for range rapid.IntRange(0, 2).Draw(t, "skips") {
			if name := lower("skipped"); !slices.Contains(e.Skips, name) {
				e.Skips = append(e.Skips, name)
			}
		}
		if low := rapid.IntRange(0, 2*i).Draw(t, "range"); low < i {
			e.SkipRange = fmt.Sprintf(">=%d.0.0 <%d.0.0", low, i)
		}
		ch.Entries = append(ch.Entries, e)
	}
	if ch.CheckGraph() != nil {
		t.Skip("no valid channel")
	}
	return ch
}

// reaches reports whether a path leads from an installed version to an entry. The name is empty for
// a version that the channel lacks.
func reaches(ch *bundles.Channel, known versions, from string, version semver.Version, to string) bool {
	pending := ch.Successors(from, version)
	seen := map[string]bool{}
	for len(pending) > 0 {
		at := pending[0].Name
		pending = pending[1:]
		if at == to {
			return true
		}
		if !seen[at] {
			seen[at] = true
			pending = append(pending, ch.Successors(at, known[at])...)
		}
	}
	return false
}

// TestReduceKeepsPaths generates channels and selections. The result must be a valid channel, with
// the paths of the whole channel and no others.
func TestReduceKeepsPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ch := drawChannel(t)
		known := versionsOf(ch)
		keep := map[string]bool{}
		for _, e := range ch.Entries {
			if rapid.Bool().Draw(t, e.Name) {
				keep[e.Name] = true
			}
		}
		head, err := ch.Head()
		if err != nil || len(keep) == 0 {
			t.Skip("nothing to keep")
		}
		got, err := reduce(ch, known, keep)
		if err != nil {
			if keep[head.Name] {
				t.Fatalf("the head is kept: %v", err)
			}
			return
		}
		if err := got.CheckGraph(); err != nil {
			t.Fatal(err)
		}
		if len(got.Entries) != len(keep) {
			t.Fatalf("%d entries of %d", len(got.Entries), len(keep))
		}
		for i := range len(ch.Entries) + 1 {
			name := fmt.Sprintf("v%d", i)
			checkPaths(t, ch, got, known, name, semver.Version{Major: uint64(i)})
			checkPaths(t, ch, got, known, "", semver.Version{Major: uint64(i), Minor: 5})
		}
	})
}

// checkPaths compares what an installed version can reach.
func checkPaths(t *rapid.T, whole, got *bundles.Channel, known versions, name string, version semver.Version) {
	for _, e := range got.Entries {
		if e.Name == name {
			continue
		}
		before, after := reaches(whole, known, name, version, e.Name), reaches(got, known, name, version, e.Name)
		if before != after {
			t.Fatalf("from %q, %s to %s: %v in the whole channel, %v in what is kept\n%+v\n%+v", name, version, e.Name, before, after, whole.Entries, got.Entries)
		}
	}
}

func TestUnion(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		ranges []string
		want   string
	}{
		"One":       {"it stays as it is written", []string{">=1.0.0  <2.0.0"}, ">=1.0.0  <2.0.0"},
		"Same":      {"once is enough", []string{"<2.0.0", "<2.0.0"}, "<2.0.0"},
		"Inside":    {"what another covers is left out", []string{">=1.2.0 <1.4.0", ">=1.0.0 <2.0.0"}, ">=1.0.0 <2.0.0"},
		"Overlap":   {"two become one", []string{">=1.0.0 <1.5.0", ">=1.2.0 <=2.0.0"}, ">=1.0.0 <=2.0.0"},
		"Touching":  {"there is nothing between", []string{"<1.0.0", ">=1.0.0 <2.0.0"}, "<2.0.0"},
		"Hole":      {"one version is between", []string{"<1.0.0", ">1.0.0 <2.0.0"}, "<1.0.0 || >1.0.0 <2.0.0"},
		"Exact":     {"a version is a range", []string{"1.0.0", "<1.0.0"}, "<=1.0.0"},
		"Wildcards": {"what is no plain interval stays", []string{"1.x", ">=2.0.0", "1.x"}, ">=2.0.0 || 1.x"},
		"Written":   {"alternatives are taken apart", []string{"<1.0.0 || >=3.0.0", ">=0.5.0 <2.0.0"}, "<2.0.0 || >=3.0.0"},
		"All":       {"nothing is left out", []string{"<2.0.0", ">=1.0.0"}, ">=0.0.0-0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := union(test.ranges); got != test.want {
				t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
			}
		})
	}
}

// TestUnionCovers generates ranges and checks that their union covers what any of them covers.
func TestUnionCovers(t *testing.T) {
	version := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%d.%d.0%s", rapid.IntRange(0, 2).Draw(t, "major"), rapid.IntRange(0, 2).Draw(t, "minor"),
			rapid.SampledFrom([]string{"", "-0", "-rc.1", "+b"}).Draw(t, "pre"))
	})
	comparison := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "=", "<", "<=", ">", ">=", "!="}).Draw(t, "operator") + version.Draw(t, "version")
	})
	alternative := rapid.Custom(func(t *rapid.T) string {
		out := comparison.Draw(t, "first")
		if rapid.Bool().Draw(t, "two") {
			out += " " + comparison.Draw(t, "second")
		}
		return rapid.SampledFrom([]string{out, out, out, "1.x"}).Draw(t, "form")
	})
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			out := alternative.Draw(t, "first")
			if rapid.Bool().Draw(t, "alternatives") {
				out += " || " + alternative.Draw(t, "second")
			}
			return out
		}), 1, 4).Draw(t, "ranges")
		got := union(texts)
		all, err := bundles.ParseRange(got)
		if err != nil {
			t.Fatalf("%q of %q: %v", got, texts, err)
		}
		v := semver.MustParse(version.Draw(t, "of"))
		want := slices.ContainsFunc(texts, func(text string) bool {
			covers, err := bundles.ParseRange(text)
			if err != nil {
				t.Skip("no range")
			}
			return covers(v)
		})
		if all(v) != want {
			t.Errorf("%s in %q: %v, want %v; of %q", v, got, all(v), want, texts)
		}
	})
}
