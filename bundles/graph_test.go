package bundles

import (
	"errors"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
)

func channelOf(entries ...Entry) *Channel {
	return &Channel{Name: "stable", Package: "p", Entries: entries}
}

func TestGraph(t *testing.T) {
	cases := map[string]struct {
		reason  string
		channel *Channel
		chain   []string
		want    error
	}{
		"One": {
			reason:  "a single entry is head and end",
			channel: channelOf(Entry{Name: "a"}),
			chain:   []string{"a"},
		},
		"Chain": {
			reason:  "order of writing does not matter and the end may replace what is not there",
			channel: channelOf(Entry{Name: "a", Replaces: "gone"}, Entry{Name: "c", Replaces: "b"}, Entry{Name: "b", Replaces: "a"}),
			chain:   []string{"c", "b", "a"},
		},
		"SkippedEndsChain": {
			reason:  "a skipped entry is not walked to",
			channel: channelOf(Entry{Name: "c", Replaces: "b", Skips: []string{"b"}}, Entry{Name: "b"}),
			chain:   []string{"c"},
		},
		"NoHead": {
			reason:  "two that replace each other",
			channel: channelOf(Entry{Name: "a", Replaces: "b"}, Entry{Name: "b", Replaces: "a"}),
			want:    ErrNoHead,
		},
		"Empty": {reason: "nothing has no head", channel: channelOf(), want: ErrNoHead},
		"TwoHeads": {
			reason:  "heads are named in order",
			channel: channelOf(Entry{Name: "b"}, Entry{Name: "a"}),
			want:    &MultipleHeadsError{Heads: []string{"a", "b"}},
		},
		"Cycle": {
			reason:  "the cycle is shown from where it begins",
			channel: channelOf(Entry{Name: "c", Replaces: "b"}, Entry{Name: "b", Replaces: "a"}, Entry{Name: "a", Replaces: "b"}),
			want:    &CycleError{Path: []string{"b", "a", "b"}},
		},
		"Stranded": {
			reason: "what is below a skipped entry is not reached",
			channel: channelOf(Entry{Name: "c", Replaces: "b", Skips: []string{"b"}},
				Entry{Name: "b", Replaces: "a"}, Entry{Name: "a"}),
			chain: []string{"c"},
			want:  &StrandedError{Entries: []string{"a"}},
		},
		"Nameless": {
			reason:  "an entry without a name is not what others replace",
			channel: channelOf(Entry{Name: ""}, Entry{Name: "a"}),
			want:    &MultipleHeadsError{Heads: []string{"", "a"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.channel.CheckGraph()
			if errors.Is(err, ErrNoHead) && errors.Is(tc.want, ErrNoHead) {
				return
			}
			if diff := cmp.Diff(tc.want, err); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			chain, _ := tc.channel.Chain()
			var got []string
			for _, e := range chain {
				got = append(got, e.Name)
			}
			if diff := cmp.Diff(tc.chain, got); diff != "" {
				t.Errorf("%s: chain: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSuccessors(t *testing.T) {
	channel := channelOf(
		Entry{Name: "v3", Replaces: "v2", Skips: []string{"v2.1"}, SkipRange: ">=1.0.0 <1.5.0"},
		Entry{Name: "v2.1", Replaces: "v2"},
		Entry{Name: "v2", Replaces: "v1", SkipRange: "nonsense"},
		Entry{Name: "v1"},
	)
	cases := map[string]struct {
		reason    string
		installed string
		version   string
		want      []string
	}{
		"Head":      {reason: "nothing succeeds the head", installed: "v3", version: "3.0.0"},
		"Several":   {reason: "chain before the others", installed: "v2", version: "2.0.0", want: []string{"v3", "v2.1"}},
		"Skipped":   {reason: "skips lead on", installed: "v2.1", version: "2.1.0", want: []string{"v3"}},
		"SkipRange": {reason: "range and replaces", installed: "v1", version: "1.0.0", want: []string{"v3", "v2"}},
		"Outside":   {reason: "a bundle of another channel goes by its version", installed: "other", version: "1.4.0", want: []string{"v3"}},
		"Nothing":   {reason: "and may find nothing", installed: "other", version: "1.6.0"},
		"InRange":   {reason: "an entry does not succeed itself", installed: "v3", version: "1.2.0"},
		"Unnamed":   {reason: "no name matches no replaces", installed: "", version: "9.0.0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range channel.Successors(tc.installed, semver.MustParse(tc.version)) {
				got = append(got, e.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzGraph checks that every graph is judged in finite time. In an accepted graph, the chain from
// the head must reach or skip everything.
func FuzzGraph(f *testing.F) {
	f.Add([]byte{1, 2, 0, 3})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, edges []byte) {
		channel := &Channel{}
		for i, e := range edges {
			entry := Entry{Name: string(rune('a' + i%26)), Replaces: string(rune('a' + int(e)%26))}
			if e > 127 {
				entry.Skips = []string{string(rune('a' + int(e/3)%26))}
			}
			channel.Entries = append(channel.Entries, entry)
		}
		if channel.CheckGraph() != nil {
			return
		}
		head, err := channel.Head()
		if err != nil {
			t.Fatal(err)
		}
		if got := channel.Successors(head.Name, semver.Version{}); len(got) > 0 {
			t.Errorf("successors of the head %q: %v", head.Name, got)
		}
	})
}

// TestParseRangeRefuses has ranges that semver accepts and that then panic.
func TestParseRangeRefuses(t *testing.T) {
	for _, text := range []string{"1.x.x ||  || !2.3.4", "1.x || 1 || 2.x", "1.x || || || 2.x"} {
		if _, err := ParseRange(text); err == nil {
			t.Errorf("%q is parsed", text)
		}
	}
	for text, want := range map[string]bool{">=1.0.0 <2.0.0": true, "1.x || 3.x": true, "0.x || 3.x": false, ">= 2.0.0 || 1.2.x": true} {
		if covers, err := ParseRange(text); err != nil || covers(semver.MustParse("1.2.3")) != want {
			t.Errorf("%q: %v, want that it covers 1.2.3: %t", text, err, want)
		}
	}
}

func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{">=1.0.0 <2.0.0", "1.x || !2.3.4", "", "<0.0.0-0", ">"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		covers, err := ParseRange(text)
		if err == nil {
			covers(semver.MustParse("1.2.3"))
		}
	})
}

func FuzzParseProperties(f *testing.F) {
	f.Add(TypePackage, []byte(`{"packageName":"a","version":"1.0.0"}`))
	f.Add(TypeBundleObject, []byte(`{"data":"e30="}`))
	f.Add(TypeCSVMetadata, []byte(`{"keywords":["a"]}`))
	f.Add("other", []byte(`null`))
	f.Fuzz(func(t *testing.T, kind string, value []byte) {
		facts, err := ParseProperties([]Property{{Type: kind, Value: value}})
		if (facts == nil) == (err == nil) {
			t.Errorf("facts %v, error %v", facts, err)
		}
	})
}
