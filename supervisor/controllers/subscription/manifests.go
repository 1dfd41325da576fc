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

// digest is the digest of manifests, or the error of reading them.
type digest struct {
	text string
	err  error
}

// errContentUnknown reports that a catalog has no manifests for a bundle that was chosen from it.
// Only an inconsistent catalog causes this.
var errContentUnknown = errors.New("the catalog holds no manifests for it")

// errUnanswered reports that a catalog does not return its bundles in time.
var errUnanswered = errors.New("the catalog does not answer in time")

// learnTimeout bounds how long a catalog may take in one pass to return the requested manifests.
// Other catalogs, and the status of every Subscription, wait for it. It exceeds the time of one
// replica, so that a hanging replica is detected.
const learnTimeout = 15 * time.Second

// learn reads the manifests of the chosen bundles whose digest is unknown: a catalog that is read
// in pages does not send them. An error concerns only the Subscriptions with that bundle.
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
	_ = group.Wait() // each failure is in its digest
}

// ask reads manifests from one catalog, within learnTimeout.
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
	_ = group.Wait() // each failure is in its digest
	return found
}

// digestOf reads manifests from a catalog, unless the time is over. It returns the same message for
// every timeout.
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

// known returns the digest of manifests in the snapshot; empty when the snapshot lacks it.
func (o *observation) known(m manifests) string {
	snapshot := o.catalogs[m.catalog].State.Snapshot
	if snapshot == nil {
		return ""
	}
	return snapshot.Manifests(m.pkg, m.name)
}

// identify sets the identities of the chosen versions, which determine the plan.
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
