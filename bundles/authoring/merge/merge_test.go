package merge

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/authoring/render"
)

func part(image string, entries ...declcfg.ChannelEntry) *declcfg.DeclarativeConfig {
	return &declcfg.DeclarativeConfig{
		Packages: []declcfg.Package{{Schema: "olm.package", Name: "p", DefaultChannel: "stable"}},
		Channels: []declcfg.Channel{{Schema: "olm.channel", Package: "p", Name: "stable", Entries: entries}},
		Bundles:  []declcfg.Bundle{{Schema: "olm.bundle", Package: "p", Name: "p.v1", Image: image}},
		Deprecations: []declcfg.Deprecation{{Schema: "olm.deprecations", Package: "p", Entries: []declcfg.DeprecationEntry{
			{Reference: declcfg.PackageScopedReference{Schema: "olm.package"}, Message: "old"},
		}}},
		Others: []declcfg.Meta{{Schema: "own", Package: "p", Blob: []byte(`{"schema":"own","package":"p"}`)}},
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	one := declcfg.ChannelEntry{Name: "p.v1"}
	two := declcfg.ChannelEntry{Name: "p.v2", Replaces: "p.v1"}
	got, err := Sources(render.NewMemory(part("i", one)), render.NewMemory(part("i", one, two))).Package(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(part("i", one, two), got); diff != "" {
		t.Errorf("what is alike is kept once, entries are joined: -want +got:\n%s", diff)
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason string
		a, b   *declcfg.DeclarativeConfig
		want   bundles.Problem
	}{
		"Bundle": {"the images differ", part("i"), part("j"), bundles.Problem{Package: "p", Bundle: "p.v1"}},
		"Entry": {
			"the edges differ", part("i", declcfg.ChannelEntry{Name: "p.v1"}), part("i", declcfg.ChannelEntry{Name: "p.v1", Replaces: "p.v0"}),
			bundles.Problem{Package: "p", Channel: "stable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Sources(render.NewMemory(tt.a), render.NewMemory(tt.b)).Package(t.Context(), "p")
			var problems bundles.Problems
			if !errors.As(err, &problems) || len(problems) != 1 {
				t.Fatalf("%s: got %v", tt.reason, err)
			}
			problems[0].Message, problems[0].Remedy = "", ""
			if diff := cmp.Diff(tt.want, problems[0]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.reason, diff)
			}
		})
	}
}
