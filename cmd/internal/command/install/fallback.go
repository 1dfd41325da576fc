package install

import (
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// planFromManifests returns a plan from PackageManifests, for users who may not read catalogs. refused is the error that
// refuses a catalog.
func (s *planner) planFromManifests(ctx context.Context, found *inventory, refused error) (*plan, error) {
	manifests, err := catalogquery.ListManifests(ctx, s.cluster.Reader(), s.request.namespace)
	if err != nil {
		return nil, catalogquery.RefusedError(refused, err)
	}
	chosen, modes, contents, err := chooseManifest(s.request, manifests)
	if err != nil {
		return nil, err
	}
	p := &plan{Outcome: outcomeBlocked, chosen: chosen, modes: modes}
	if p.Create, p.Subscription, err = missing(s.request, chosen, found, modes); err != nil {
		return nil, err
	}
	dryRun := predictor{cluster: s.cluster, global: s.global, log: s.log, contents: contents, onlyContents: true}
	if p.Plan, err = dryRun.predict(ctx, s.request.namespace, applied(p.Create)); err != nil {
		return nil, err
	}
	if !found.exists {
		p.Plan.Blocked = "" // the namespace is created
	}
	keepFirstInstallation(p.Plan, p.Subscription)
	p.Plan.Notes = append(p.Plan.Notes, manifestsNote("dependencies and updates", refused))
	p.Problem = problemOf(p.Plan, p.Subscription)
	return p, nil
}

// manifestsNote returns the note about a plan from PackageManifests, given what it lacks and the error that refuses a
// catalog.
func manifestsNote(without string, refused error) string {
	return fmt.Sprintf("the plan is from PackageManifests, without %s, because a catalog cannot be read: %v", without, refused)
}

// chooseManifest returns what a request selects among PackageManifests: the choice, the install modes of the head of its
// channel, and the content of its catalog.
func chooseManifest(r *request, manifests catalogquery.Manifests) (
	choice, []operatorsv1alpha1.InstallMode, map[resolution.CatalogKey]inputs.CatalogContent, error,
) {
	var offers []offer
	items := map[resolution.CatalogKey]*catalogquery.Manifest{}
	contents := map[resolution.CatalogKey]inputs.CatalogContent{}
	for _, catalog := range manifests.Catalogs() {
		if r.catalog != "" && r.catalog != catalog.Name && r.catalog != catalog.String() {
			continue
		}
		item, content, err := manifests.Offer(catalog, r.pkg)
		if err != nil {
			return choice{}, nil, nil, err
		}
		if item == nil {
			offers = append(offers, offer{Catalog: catalog})
			continue
		}
		key := resolution.CatalogKey{Namespace: catalog.Namespace, Name: catalog.Name}
		items[key], contents[key] = item, inputs.CatalogContent{Snapshot: &catalogs.Snapshot{Content: content}, From: "PackageManifests"}
		offers = append(offers, offer{Catalog: catalog, Value: content.Package(r.pkg)})
	}
	chosen, err := choose(r, offers)
	if err != nil {
		return choice{}, nil, nil, err
	}
	key := resolution.CatalogKey{Namespace: chosen.catalog.Namespace, Name: chosen.catalog.Name}
	return chosen, items[key].InstallModes(chosen.entry.Channel.Name), contents, nil
}

// keepFirstInstallation removes from a result all that PackageManifests do not show. It keeps the first installation of a
// Subscription, or else why it is refused.
func keepFirstInstallation(res *dryrun.Result, subscription string) {
	res.Steps = slices.DeleteFunc(res.Steps, func(s dryrun.Step) bool {
		return s.Wave > 1 || s.Action != dryrun.Install || !slices.Contains(s.Subscriptions, subscription)
	})
	// After the first installation, a refusal is about an update.
	remove := func(r dryrun.Refusal) bool { return len(res.Steps) > 0 || r.Subscription != subscription }
	res.Refusals = slices.DeleteFunc(res.Refusals, remove)
	res.Unknown = slices.DeleteFunc(res.Unknown, remove)
	res.UpToDate = []dryrun.InstalledVersion{}
	res.HeldBack, res.UnderWay = nil, nil
}
