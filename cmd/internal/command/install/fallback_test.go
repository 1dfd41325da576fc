package install

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/supervisor/dryrun"
)

// TestChooseManifest chooses a version from PackageManifests.
func TestChooseManifest(t *testing.T) {
	t.Parallel()
	modes := []operatorsv1alpha1.InstallMode{{Type: "OwnNamespace", Supported: true}}
	packageOf := func(catalog string) catalogquery.Manifest {
		var m catalogquery.Manifest
		m.Metadata.Name, m.Status.CatalogSource, m.Status.CatalogSourceNamespace, m.Status.DefaultChannel = "lamp", catalog, "olm", "stable"
		m.Status.Channels = []catalogquery.ManifestChannel{{
			Name: "stable", CurrentCSV: "lamp.v2", CurrentCSVDesc: catalogquery.ManifestDescription{Version: "2.0.0", InstallModes: modes},
			Entries: []catalogquery.ManifestEntry{{Name: "lamp.v2", Version: "2.0.0"}, {Name: "lamp.v1", Version: "1.0.0"}, {Name: "lamp.v0"}},
		}}
		return m
	}
	for name, tt := range map[string]struct {
		request  request
		catalogs []string
		want     string
		fails    string
	}{
		"Head":    {catalogs: []string{"wares"}, want: "olm/wares lamp.v2"},
		"Version": {request: request{version: "1.0.0"}, catalogs: []string{"wares"}, want: "olm/wares lamp.v1"},
		"Two":     {catalogs: []string{"wares", "spare"}, fails: "package lamp is in the catalogs olm/spare, olm/wares; choose one with --catalog"},
		"Named":   {request: request{catalog: "spare"}, catalogs: []string{"wares", "spare"}, want: "olm/spare lamp.v2"},
		"None":    {fails: "namespace shop can use no catalog; 'chandlery status -A' shows all catalogs"},
		"NotIn":   {request: request{catalog: "spare", pkg: "torch"}, catalogs: []string{"spare"}, fails: `catalog spare (--catalog) has no package "torch"; check the name and --catalog`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var manifests catalogquery.Manifests
			for _, catalog := range tt.catalogs {
				manifests = append(manifests, packageOf(catalog))
			}
			if tt.request.pkg == "" {
				tt.request.pkg = "lamp"
			}
			tt.request.namespace, tt.request.program = "shop", "chandlery"
			chosen, found, contents, err := chooseManifest(&tt.request, manifests)
			got, failure := "", ""
			if err != nil {
				failure = err.Error()
			} else {
				got = chosen.catalog.String() + " " + chosen.entry.Bundle.Name
			}
			if got != tt.want || failure != tt.fails {
				t.Errorf("got %q, want %q; error %q, want %q", got, tt.want, failure, tt.fails)
			}
			if err == nil && (len(contents) == 0 || len(found) != 1 || !found[0].Supported) {
				t.Errorf("%d contents, install modes %v", len(contents), found)
			}
		})
	}
}

// TestKeepFirstInstallation keeps the first installation of a Subscription, or why it is refused.
func TestKeepFirstInstallation(t *testing.T) {
	t.Parallel()
	step := func(subscription, bundle string, wave int, action dryrun.Action) dryrun.Step {
		return dryrun.Step{
			Schedule: dryrun.Schedule{Wave: wave}, Requesters: dryrun.Requesters{Subscriptions: []string{subscription}}, Change: dryrun.Change{Action: action, Bundle: bundle},
		}
	}
	first, refused := step("my", "lamp.v1", 1, dryrun.Install), dryrun.Refusal{Subscription: "my"}
	all := []dryrun.Refusal{refused, {Subscription: "other"}}
	for name, tt := range map[string]struct {
		steps   []dryrun.Step
		want    []dryrun.Step
		refused []dryrun.Refusal
	}{
		"Installed": {
			steps: []dryrun.Step{first, step("my", "lamp.v2", 2, dryrun.Update), step("other", "torch.v1", 1, dryrun.Install), step("my", "lamp.v3", 1, dryrun.Update)},
			want:  []dryrun.Step{first}, refused: []dryrun.Refusal{},
		},
		"Refused": {steps: []dryrun.Step{step("other", "torch.v1", 1, dryrun.Install)}, want: []dryrun.Step{}, refused: []dryrun.Refusal{refused}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := &dryrun.Result{
				Steps: tt.steps, Refusals: slices.Clone(all), Unknown: slices.Clone(all), HeldBack: slices.Clone(all), UpToDate: []dryrun.InstalledVersion{{Subscription: "my"}},
			}
			keepFirstInstallation(res, "my")
			want := &dryrun.Result{Steps: tt.want, Refusals: tt.refused, Unknown: tt.refused, UpToDate: []dryrun.InstalledVersion{}}
			if diff := cmp.Diff(want, res); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
