package drawing

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/bundles/outline"
)

var update = flag.Bool("update", false, "write the golden files")

// hostile tries to break out of its label in every form.
const hostile = "a\"]\n<b>&'\\ #--> %% ]]> \x00é|"

// sample has two channels with everything that is drawn.
func sample(name string) *outline.Package {
	entry := func(version, replaces, skipRange, deprecation string, skips ...string) *outline.Entry {
		return &outline.Entry{
			Name: name + ".v" + version, Version: version, Replaces: replaces, Skips: skips, SkipRange: skipRange, Deprecation: deprecation,
		}
	}
	return &outline.Package{
		Name: name, DefaultChannel: "stable", Deprecation: "use another",
		Channels: []*outline.Channel{
			{Name: "candidate", Head: name + ".v1.1.0", Deprecation: "use stable", Entries: []*outline.Entry{
				entry("1.0.0", "", "", ""), entry("1.1.0", "", "", "", name+".v1.0.0", name+".v0.9.0"),
			}},
			{Name: "stable", Head: name + ".v2.0.0", Entries: []*outline.Entry{
				entry("1.0.0", name+".v0.9.0", "", "old"),
				entry("1.1.0", name+".v1.0.0", "", ""),
				entry("2.0.0", name+".v1.0.0", ">=1.0.0 <2.0.0", "", name+".v1.1.0", name+".v1.1.0"),
			}},
		},
	}
}

// forms returns the functions for each form.
func forms() map[string]func(*outline.Package) string {
	return map[string]func(*outline.Package) string{"mmd": Mermaid, "dot": DOT, "svg": SVG}
}

func TestGolden(t *testing.T) {
	for form, draw := range forms() {
		for file, name := range map[string]string{"plain": "lantern", "hostile": hostile} {
			t.Run(file+"."+form, func(t *testing.T) {
				got := draw(sample(name))
				golden := filepath.Join("testdata", file+"."+form)
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("run with -update and look at the picture; -want +got:\n%s", diff)
				}
			})
		}
	}
}

// TestEverythingIsThere checks the numbers of nodes and edges in each form.
func TestEverythingIsThere(t *testing.T) {
	const entries, absent, replaces, skips = 5, 2, 3, 3
	for name, p := range map[string]*outline.Package{"plain": sample("lantern"), "hostile": sample(hostile)} {
		for what, tc := range map[string]struct {
			text, mark string
			want       int
		}{
			"MermaidNodes":    {Mermaid(p), `    c`, entries + absent + replaces + skips},
			"MermaidAbsent":   {Mermaid(p), `:::absent`, absent},
			"MermaidReplaces": {Mermaid(p), `-->|replaced by|`, replaces},
			"MermaidSkips":    {Mermaid(p), `-.->|skipped by|`, skips},
			"MermaidChannels": {Mermaid(p), `  subgraph c`, 2},
			"DOTNodes":        {DOT(p), ` [label="`, entries + absent + replaces + skips},
			"DOTReplaces":     {DOT(p), `[label="replaced by"]`, replaces},
			"DOTSkips":        {DOT(p), `[label="skipped by"`, skips},
			"DOTChannels":     {DOT(p), `subgraph cluster_`, 2},
			"SVGReplaces":     {SVG(p), ` is replaced by `, replaces},
			"SVGSkips":        {SVG(p), ` is skipped by `, skips},
			"SVGRows":         {SVG(p), `class="guide"`, 4},
			"SVGAbsent":       {SVG(p), `stroke-dasharray="2 2"`, absent},
		} {
			if got := strings.Count(tc.text, tc.mark); got != tc.want {
				t.Errorf("%s, %s: %q is there %d times, want %d:\n%s", name, what, tc.mark, got, tc.want, tc.text)
			}
		}
	}
}

// TestHostile checks that names from a catalog stay in their labels.
func TestHostile(t *testing.T) {
	p := sample(hostile)
	for i, line := range strings.Split(strings.TrimSuffix(Mermaid(p), "\n"), "\n") {
		if strings.Contains(line, "subgraph") || strings.Contains(line, "<br>") {
			if n := strings.Count(line, `"`); n != 2 {
				t.Errorf("line %d has %d quotes: %s", i, n, line)
			}
		}
	}
	for i, line := range strings.Split(DOT(p), "\n") {
		unescaped := strings.NewReplacer(`\\`, "", `\"`, "").Replace(line)
		if strings.Count(unescaped, `"`)%2 != 0 {
			t.Errorf("line %d has an open quote: %s", i, line)
		}
	}
	if err := wellFormed(SVG(p)); err != nil {
		t.Errorf("SVG: %v\n%s", err, SVG(p))
	}
	if strings.Contains(SVG(p), "<b>") {
		t.Error("a name has become an element")
	}
}

func wellFormed(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decoding: %w", err)
		}
	}
}

// TestTracks checks that rails of a track do not touch.
func TestTracks(t *testing.T) {
	got := tracks([]rail{
		{to: 0, from: []int{9}}, {to: 1, from: []int{3, 2}}, {to: 5, from: []int{4}}, {to: 3, from: []int{4}},
	})
	want := [][]rail{{{to: 3, from: []int{4}}}, {{to: 5, from: []int{4}}, {to: 1, from: []int{3, 2}}}, {{to: 0, from: []int{9}}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rail{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	both := rail{to: 5, from: []int{2, 9, 7}}
	for from, next := range map[int]int{2: 5, 7: 5, 9: 7} {
		if got := both.next(from); got != next {
			t.Errorf("the rail runs from %d to %d, want %d", from, got, next)
		}
	}
}

// TestRowsByVersion checks that names without a bundle are sorted among the others.
func TestRowsByVersion(t *testing.T) {
	var got []string
	for _, r := range place(sample("lantern")).rows {
		got = append(got, r.name)
	}
	want := []string{"lantern.v2.0.0", "lantern.v1.1.0", "lantern.v1.0.0", "lantern.v0.9.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
