package subscription

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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

// errUnanswered says that a catalog does not give its bundles in time.
var errUnanswered = errors.New("the catalog does not answer in time")

// learnTimeout is how long a catalog may take in one pass to give the manifests that
// are asked for: the others, and the status of every Subscription, wait for it. It
// is longer than one replica may take, so that one which hangs is found out.
const learnTimeout = 15 * time.Second

// learn asks the catalogs for the manifests of the chosen bundles whose digest is
// not known yet: a catalog that is read in pages does not send them. What goes
// wrong concerns the Subscriptions with that bundle alone.
func (r *Reconciler) learn(ctx context.Context, o *observation, decisions []*decision) {
	unknown := map[types.NamespacedName][]manifests{}
	for _, d := range decisions {
		for _, c := range d.choices() {
			m := manifestsOf(c)
			if _, asked := o.digests[m]; !asked && o.known(m) == "" && c.Entry.Bundle.Image == "" {
				o.digests[m] = digest{}
				unknown[m.catalog] = append(unknown[m.catalog], m)
			}
		}
	}
	var (
		group errgroup.Group
		mu    sync.Mutex
	)
	for _, wanted := range unknown {
		group.Go(func() error {
			found := r.ask(ctx, wanted)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(o.digests, found)
			return nil
		})
	}
	_ = group.Wait() // every failure has its place
}

// ask asks one catalog for manifests, as long as there is time.
func (r *Reconciler) ask(ctx context.Context, wanted []manifests) map[manifests]digest {
	const atOnce = 8
	asking, cancel := context.WithTimeout(ctx, learnTimeout)
	defer cancel()
	var (
		group errgroup.Group
		mu    sync.Mutex
	)
	group.SetLimit(atOnce)
	found := make(map[manifests]digest, len(wanted))
	for _, m := range wanted {
		group.Go(func() error {
			next := r.digestOf(asking, m)
			mu.Lock()
			defer mu.Unlock()
			found[m] = next
			return nil
		})
	}
	_ = group.Wait() // every failure has its place
	return found
}

// digestOf asks a catalog for manifests, unless the time for that is over. What is
// told of a catalog that does not answer is the same each time.
func (r *Reconciler) digestOf(ctx context.Context, m manifests) digest {
	err := ctx.Err()
	if err == nil {
		var bundle plan.Bundle
		bundle, err = r.catalogs.Bundle(ctx, m.catalog, m.pkg, m.channel, m.name)
		if err == nil && len(bundle.Objects) > 0 {
			return digest{text: plan.Digest(bundle.Objects)}
		}
	}
	if err != nil && (ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded) {
		err = fmt.Errorf("reading bundle %s of package %s from catalogsource %s: %w; it is asked again every %s: see that its pods are well and not overloaded",
			m.name, m.pkg, m.catalog, errUnanswered, retryAfter)
	}
	return digest{err: err}
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
		if content == "" && c.Entry.Bundle.Image != "" {
			content = imagePrefix + c.Entry.Bundle.Image
		}
		if content == "" {
			d.fail(&planError{err: fmt.Errorf("bundle %s of package %s cannot be installed: %w", c.Bundle, c.Package, errContentUnknown)})
			return
		}
		d.identities = append(d.identities, plan.Identity{
			Catalog: c.Catalog.String(), Package: c.Package, Channel: c.Channel,
			Bundle: c.Bundle, Replaces: c.Replaces, Content: content, Generated: c != d.install,
		})
	}
}
