package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/catalogquery"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/progress"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/inputs"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// predictUpgrade returns what would happen if a Subscription were replaced by the wanted one. For users who may not read
// the catalog of the Subscription, the result is from PackageManifests. installed is the installed
// ClusterServiceVersion; empty for none.
func (p predictor) predictUpgrade(ctx context.Context, wanted *operatorsv1alpha1.Subscription, installed string) (*dryrun.Result, error) {
	sources, _, err := p.cluster.Catalogs(ctx, wanted.Namespace, p.global)
	if err == nil {
		done := progress.Start(p.log, false, "Reading "+inputs.DescribeCatalogs(sources))
		p.contents = p.cluster.Contents(ctx, sources)
		done()
		err = p.contents[catalogOf(wanted)].Err
	}
	if console.CodeOf(err) != console.Forbidden {
		return p.predict(ctx, wanted.Namespace, []client.Object{wanted})
	}
	manifests, failure := catalogquery.ListManifests(ctx, p.cluster.Reader(), wanted.Namespace)
	if failure != nil {
		return nil, catalogquery.RefusedError(err, failure)
	}
	if p.contents, failure = upgradeContents(manifests, wanted, installed); failure != nil {
		return nil, fmt.Errorf("%w; %w", err, failure)
	}
	p.onlyContents = true
	res, failure := p.predict(ctx, wanted.Namespace, []client.Object{wanted})
	if failure != nil {
		return nil, failure
	}
	keepSubscription(res, wanted.Name)
	res.Notes = append(res.Notes, manifestsNote("dependencies and upgrade paths", err))
	return res, nil
}

func catalogOf(sub *operatorsv1alpha1.Subscription) resolution.CatalogKey {
	return resolution.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}
}

// upgradeContents returns the content of the catalog of a Subscription according to PackageManifests. It returns an error
// if they do not show an upgrade of the installed version, since it may have one.
func upgradeContents(
	manifests catalogquery.Manifests, sub *operatorsv1alpha1.Subscription, installed string,
) (map[resolution.CatalogKey]inputs.CatalogContent, error) {
	catalog, name := catalogOf(sub), sub.Spec.Package
	item, found, err := manifests.Offer(types.NamespacedName{Namespace: catalog.Namespace, Name: catalog.Name}, name)
	if err != nil {
		return nil, err
	}
	if item == nil {
		return nil, fmt.Errorf("PackageManifests lack package %s of catalog %s", name, catalog)
	}
	pkg := found.Package(name)
	channel := cmp.Or(sub.Spec.Channel, pkg.DefaultChannel)
	if c := pkg.Channel(channel); c != nil && installed != "" && c.Entry(installed) == nil {
		return nil, fmt.Errorf("PackageManifests do not show whether channel %s has an upgrade from %s", channel, installed)
	}
	return map[resolution.CatalogKey]inputs.CatalogContent{
		catalog: {Snapshot: &catalogs.Snapshot{Content: found}, From: "PackageManifests"},
	}, nil
}

// keepSubscription removes from a result what is about other Subscriptions, whose catalogs were not read.
func keepSubscription(res *dryrun.Result, subscription string) {
	isOther := func(r dryrun.Refusal) bool { return r.Subscription != subscription }
	isOtherVersion := func(v dryrun.InstalledVersion) bool { return v.Subscription != subscription }
	res.Steps = slices.DeleteFunc(res.Steps, func(s dryrun.Step) bool { return !slices.Contains(s.Subscriptions, subscription) })
	res.Refusals, res.Unknown = slices.DeleteFunc(res.Refusals, isOther), slices.DeleteFunc(res.Unknown, isOther)
	res.HeldBack = slices.DeleteFunc(res.HeldBack, isOther)
	res.UpToDate, res.UnderWay = slices.DeleteFunc(res.UpToDate, isOtherVersion), slices.DeleteFunc(res.UnderWay, isOtherVersion)
}
