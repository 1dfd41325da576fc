package subscription

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/resolver"
)

// manifests names the manifests of a bundle.
type manifests struct {
	catalog            types.NamespacedName
	pkg, channel, name string
}

func manifestsOf(c *resolver.Choice) manifests {
	return manifests{
		catalog: types.NamespacedName{Namespace: c.Catalog.Namespace, Name: c.Catalog.Name},
		pkg:     c.Package, channel: c.Channel, name: c.Bundle,
	}
}

// digest is that of manifests, or why it is not known.
type digest struct {
	text string
	err  error
}

// errContentUnknown says that a catalog has no manifests for a bundle that was
// chosen from it, which only one that contradicts itself can bring about.
var errContentUnknown = errors.New("the catalog holds no manifests for it")

// learn asks the catalogs for the manifests of the chosen bundles whose digest is
// not known yet: a catalog that is read in pages does not send them. What goes
// wrong concerns the Subscriptions with that bundle alone.
func (r *Reconciler) learn(ctx context.Context, o *observation, decisions []*decision) {
	const atOnce = 8
	var unknown []manifests
	for _, d := range decisions {
		for _, c := range d.choices() {
			m := manifestsOf(c)
			if _, asked := o.digests[m]; !asked && o.known(m) == "" && c.Entry.Bundle.Image == "" {
				o.digests[m] = digest{}
				unknown = append(unknown, m)
			}
		}
	}
	found := make([]digest, len(unknown))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, m := range unknown {
		group.Go(func() error {
			bundle, err := r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
			found[i].err = err
			if err == nil && len(bundle.Objects) > 0 {
				found[i].text = plan.Digest(bundle.Objects)
			}
			return nil
		})
	}
	_ = group.Wait() // every failure has its place
	for i, m := range unknown {
		o.digests[m] = found[i]
	}
}

// known gives the digest of manifests as the snapshot tells it; empty when it
// does not.
func (o *observation) known(m manifests) string {
	snapshot := o.catalogs[m.catalog].State.Snapshot
	if snapshot == nil {
		return ""
	}
	return snapshot.Manifests(m.pkg, m.name)
}

// identify works out which plan installs what was decided on.
func (o *observation) identify(d *decision) {
	for _, c := range d.choices() {
		m := manifestsOf(c)
		content := o.known(m)
		if content == "" {
			learnt := o.digests[m]
			if learnt.err != nil {
				d.fail(&planError{err: learnt.err})
				return
			}
			content = learnt.text
		}
		if content == "" {
			d.fail(&planError{err: noManifests(c)})
			return
		}
		d.identities = append(d.identities, plan.Identity{
			Catalog: c.Catalog.String(), Package: c.Package, Channel: c.Channel,
			Bundle: c.Bundle, Replaces: c.Replaces, Content: content, Generated: c != d.install,
		})
	}
}

// noManifests explains why a bundle cannot be installed.
func noManifests(c *resolver.Choice) error {
	if c.Entry.Bundle.Image == "" {
		return fmt.Errorf("bundle %s of package %s cannot be installed: %w", c.Bundle, c.Package, errContentUnknown)
	}
	return fmt.Errorf("bundle %s of package %s cannot be installed: %w, only the image %s; this version of the supervisor does not pull bundle images, use a catalog that holds the manifests inline (olm.bundle.object)",
		c.Bundle, c.Package, plan.ErrNoInlineManifests, c.Entry.Bundle.Image)
}
