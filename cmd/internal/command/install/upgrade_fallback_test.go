package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestUpgradeContents covers what PackageManifests show about upgrades.
func TestUpgradeContents(t *testing.T) {
	t.Parallel()
	var lamp catalogquery.Manifest
	lamp.Metadata.Name, lamp.Status.CatalogSource, lamp.Status.CatalogSourceNamespace, lamp.Status.DefaultChannel = "lamp", "wares", "olm", "stable"
	lamp.Status.Channels = []catalogquery.ManifestChannel{{
		Name: "stable", CurrentCSV: "lamp.v2", CurrentCSVDesc: catalogquery.ManifestDescription{Version: "2.0.0"},
		Entries: []catalogquery.ManifestEntry{{Name: "lamp.v2", Version: "2.0.0"}, {Name: "lamp.v1", Version: "1.0.0"}},
	}}
	for name, tt := range map[string]struct {
		pkg, channel, installed string
		want                    string
	}{
		"New":            {pkg: "lamp", channel: "stable"},
		"Listed":         {pkg: "lamp", channel: "stable", installed: "lamp.v1"},
		"DefaultChannel": {pkg: "lamp", installed: "lamp.v1"},
		"UnknownChannel": {pkg: "lamp", channel: "nosuch", installed: "lamp.v1"},
		"Unlisted":       {pkg: "lamp", installed: "lamp.v0", want: "PackageManifests do not show whether channel stable has an upgrade from lamp.v0"},
		"OtherPackage":   {pkg: "torch", want: "PackageManifests lack package torch of catalog olm/wares"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := fixtures.Subscription("shop", "mine", tt.pkg, "wares")
			sub.Spec.Channel, sub.Spec.CatalogSourceNamespace = tt.channel, "olm"
			contents, err := upgradeContents(catalogquery.Manifests{lamp}, sub, tt.installed)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != tt.want || err == nil && contents[catalogOf(sub)].Snapshot.Content.Package("lamp") == nil {
				t.Errorf("error %q, want %q; contents %v", text, tt.want, contents)
			}
		})
	}
}

// TestKeepSubscription removes what is about other Subscriptions.
func TestKeepSubscription(t *testing.T) {
	t.Parallel()
	refusals := func(names ...string) []dryrun.Refusal {
		var all []dryrun.Refusal
		for _, name := range names {
			all = append(all, dryrun.Refusal{Subscription: name})
		}
		return all
	}
	versions := func(names ...string) []dryrun.InstalledVersion {
		var all []dryrun.InstalledVersion
		for _, name := range names {
			all = append(all, dryrun.InstalledVersion{Subscription: name})
		}
		return all
	}
	result := func(names ...string) *dryrun.Result {
		return &dryrun.Result{
			Refusals: refusals(names...), Unknown: refusals(names...), HeldBack: refusals(names...), UpToDate: versions(names...), UnderWay: versions(names...),
		}
	}
	got, want := result("torch", "lamp"), result("lamp")
	got.Steps = []dryrun.Step{step(1, "torch.v2", "2.0.0", "torch"), step(2, "lamp.v2", "2.0.0", "lamp")}
	want.Steps = []dryrun.Step{step(2, "lamp.v2", "2.0.0", "lamp")}
	keepSubscription(got, "lamp")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
