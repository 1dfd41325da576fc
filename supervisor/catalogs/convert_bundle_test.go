package catalogs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/proto/api"
	registryv1 "github.com/chandlery/chandlery/proto/chandlery/registry/v1"
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

func TestConversion(t *testing.T) {
	const gvk, lamp = `{"group":"g","kind":"K","version":"v1"}`, `{"packageName":"lamp","version":"1.0.0"}`
	provided := []*api.GroupVersionKind{{Group: "g", Version: "v1", Kind: "K"}}
	type property = constraint.Property
	for _, tt := range []struct {
		reason string
		bundle *api.Bundle
		want   []property
	}{
		{
			reason: "properties count and not what is provided",
			bundle: &api.Bundle{Properties: []*api.Property{{Type: "olm.package", Value: lamp}}, ProvidedApis: provided},
			want:   []property{{Type: "olm.package", Value: lamp}},
		},
		{
			reason: "without properties what is provided counts",
			bundle: &api.Bundle{ProvidedApis: provided},
			want:   []property{{Type: "olm.gvk", Value: gvk}},
		},
		{
			reason: "without dependencies what is required counts, with properties too",
			bundle: &api.Bundle{Properties: []*api.Property{{Type: "olm.package", Value: lamp}}, RequiredApis: provided},
			want:   []property{{Type: "olm.package", Value: lamp}, {Type: "olm.gvk.required", Value: gvk}},
		},
		{
			reason: "with dependencies what is required does not count",
			bundle: &api.Bundle{Dependencies: []*api.Dependency{{Type: "olm.label", Value: `{"label":"x"}`}}, RequiredApis: provided},
			want:   []property{{Type: "olm.label.required", Value: `{"label":"x"}`}},
		},
		{
			reason: "each kind of dependency has its property",
			bundle: &api.Bundle{Dependencies: []*api.Dependency{
				{Type: "olm.gvk", Value: gvk}, {Type: "olm.package", Value: `{"packageName":"fan","version":">=1.0.0"}`}, {Type: "olm.constraint", Value: `{"all":{}}`},
			}},
			want: []property{
				{Type: "olm.gvk.required", Value: gvk},
				{Type: "olm.package.required", Value: `{"packageName":"fan","versionRange":">=1.0.0"}`},
				{Type: "olm.constraint", Value: `{"all":{}}`},
			},
		},
		{
			reason: "what is stated twice is there once, however it is written",
			bundle: &api.Bundle{
				Properties: []*api.Property{
					{Type: "olm.gvk.required", Value: `{ "version":"v1", "kind":"K", "group":"g" }`}, {Type: "olm.package.required", Value: `{"versionRange":"1.0.0","packageName":"fan"}`},
				},
				Dependencies: []*api.Dependency{{Type: "olm.gvk", Value: gvk}, {Type: "olm.package", Value: `{"packageName":"fan","version":"1.0.0"}`}},
			},
			want: []property{
				{Type: "olm.gvk.required", Value: `{ "version":"v1", "kind":"K", "group":"g" }`}, {Type: "olm.package.required", Value: `{"versionRange":"1.0.0","packageName":"fan"}`},
			},
		},
		{
			reason: "manifests are left out",
			bundle: &api.Bundle{Properties: []*api.Property{{Type: "olm.bundle.object", Value: `{}`}, {Type: "olm.csv.metadata", Value: `{}`}}, ProvidedApis: provided},
			want:   []property{},
		},
	} {
		paged := pagedBundle(extendedBundle(tt.bundle))
		listed := listedBundle(tt.bundle)
		if diff := cmp.Diff(tt.want, listed.Properties); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
		if diff := cmp.Diff(listed, paged); diff != "" {
			t.Errorf("%s: pages say something else (-list +page):\n%s", tt.reason, diff)
		}
	}
}

// extendedBundle returns the extension API's form of a bundle.
func extendedBundle(b *api.Bundle) *registryv1.Bundle {
	out := &registryv1.Bundle{Name: b.GetCsvName(), Package: b.GetPackageName(), Channel: b.GetChannelName(), Version: b.GetVersion(), Image: b.GetBundlePath()}
	apis := func(all []*api.GroupVersionKind) (converted []*registryv1.GroupVersionKind) {
		for _, g := range all {
			converted = append(converted, &registryv1.GroupVersionKind{Group: g.GetGroup(), Version: g.GetVersion(), Kind: g.GetKind()})
		}
		return converted
	}
	out.ProvidedApis, out.RequiredApis = apis(b.GetProvidedApis()), apis(b.GetRequiredApis())
	for _, d := range b.GetDependencies() {
		out.Dependencies = append(out.Dependencies, &registryv1.Dependency{Type: d.GetType(), Value: d.GetValue()})
	}
	for _, p := range b.GetProperties() {
		out.Properties = append(out.Properties, &registryv1.Property{Type: p.GetType(), Value: p.GetValue()})
	}
	return out
}

// TestBundlesThatStateMuch checks that a bundle with the maximum number of statements converts
// quickly, and that more are rejected.
func TestBundlesThatStateMuch(t *testing.T) {
	const most = maxProperties
	apis := func(n int) (all []*api.GroupVersionKind) {
		for i := range n {
			all = append(all, &api.GroupVersionKind{Group: "g", Version: "v1", Kind: fmt.Sprint("K", i)})
		}
		return all
	}
	var properties []*api.Property
	var dependencies []*api.Dependency
	for i := range most {
		properties = append(properties, &api.Property{Type: "olm.gvk", Value: fmt.Sprintf(`{"group":"g","kind":"K%d","version":"v1"}`, i)})
		dependencies = append(dependencies, &api.Dependency{Type: "olm.label", Value: fmt.Sprintf(`{"label":"x%d"}`, i)})
	}
	manifest := &api.Property{Type: "olm.bundle.object", Value: `{}`}
	for _, tt := range []struct {
		reason string
		bundle *api.Bundle
		refuse bool
	}{
		{reason: "required APIs", bundle: &api.Bundle{RequiredApis: apis(most)}},
		{reason: "provided APIs", bundle: &api.Bundle{ProvidedApis: apis(most)}},
		{reason: "properties, and manifests besides", bundle: &api.Bundle{Properties: append(slices.Clone(properties), manifest)}},
		{reason: "dependencies", bundle: &api.Bundle{Dependencies: dependencies}},
		{reason: "too many required APIs", bundle: &api.Bundle{RequiredApis: apis(most + 1)}, refuse: true},
		{reason: "too many provided APIs", bundle: &api.Bundle{ProvidedApis: apis(most + 1)}, refuse: true},
		{reason: "too many properties", bundle: &api.Bundle{Properties: append(slices.Clone(properties), properties[0])}, refuse: true},
		{reason: "too much together", bundle: &api.Bundle{Properties: properties[:1], Dependencies: dependencies}, refuse: true},
	} {
		listed := listedBundle(tt.bundle)
		if tt.refuse == (len(listed.Properties) == most) {
			t.Errorf("%s: %d properties", tt.reason, len(listed.Properties))
		}
		if !tt.refuse {
			continue
		}
		listed.Package, listed.Bundle, listed.Channel = "lamp", "lamp.v1", "stable"
		builder := content.NewBuilder(maxBytes)
		if err := builder.Add(listed); err != nil {
			t.Fatal(err)
		}
		if err := builder.Build().Package("lamp").Bundle("lamp.v1").Err; err == nil || !strings.Contains(err.Error(), "more than 4096 properties and dependencies") {
			t.Errorf("%s: error %v", tt.reason, err)
		}
	}
}

// TestBundlesThatCannotBeRead checks that the conversion retains such bundles, so that resolution
// can report the cause.
func TestBundlesThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		dependency *api.Dependency
		want       string
	}{
		{&api.Dependency{Type: "olm.gvk", Value: `nonsense`}, "olm.gvk.required"},
		{&api.Dependency{Type: "olm.package", Value: `[]`}, "olm.package.required"},
		{&api.Dependency{Type: "olm.odd", Value: `{}`}, "olm.odd"},
	} {
		builder := content.NewBuilder(maxBytes)
		bundle := &api.Bundle{CsvName: "lamp.v1", PackageName: "lamp", ChannelName: "stable", Version: "1.0.0", Dependencies: []*api.Dependency{tt.dependency}}
		if err := builder.Add(listedBundle(bundle)); err != nil {
			t.Fatal(err)
		}
		found := builder.Build().Package("lamp").Bundle("lamp.v1")
		if found.Err == nil || !strings.Contains(found.Err.Error(), tt.want) || !strings.Contains(found.Err.Error(), "lamp.v1") {
			t.Errorf("dependency %+v: error %v", tt.dependency, found.Err)
		}
	}
}
