package packagemanifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/compressed"
	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest/manifest"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// errOutdated is returned if the content of a catalog changed while it was read.
var errOutdated = errors.New("the content of the catalog changed while its packages were read")

// reconciler keeps the index up to date with the catalogs. The packages of a catalog are replaced together.
type reconciler struct {
	reader client.Reader
	store  *catalogs.Store
	index  *manifest.Index
	turns  *turns
	clock  clock.PassiveClock
	// otherHeads are the catalogs that sent a head which they had not listed.
	otherHeads otherHeads
	// serving is true when the server answers requests.
	serving atomic.Bool
}

// Reconcile updates the packages of one catalog.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	u := catalogs.NewObject()
	if err := r.reader.Get(ctx, req.NamespacedName, u); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.index.Remove(req.NamespacedName)
			r.otherHeads.remove(req.NamespacedName)
			forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("reading CatalogSource %s: %w", req, err)
	}
	source, err := catalogs.Decode(u)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.update(ctx, req.NamespacedName, source)
}

// retryBroken is how long channels are left out before their heads are read again. The content may not have changed.
const retryBroken = 10 * time.Minute

// update updates the packages of a catalog that exists.
func (r *reconciler) update(ctx context.Context, key types.NamespacedName, source *operatorsv1alpha1.CatalogSource) (result ctrl.Result, err error) {
	state, _ := r.store.State(key)
	old, known := r.index.Catalog(key)
	// Heads are read from the catalog. The store publishes when it can be reached.
	readable := state.Snapshot != nil && state.Connectivity == connectivity.Ready.String()
	if !known && !readable {
		return ctrl.Result{}, nil
	}
	next := old
	next.Source = r.source(source, state, old)
	if readable && !isCurrent(old, state, r.clock.Now()) {
		if !r.turns.begin(key.Namespace, r.clock.Now()) {
			return ctrl.Result{RequeueAfter: turnInterval}, nil
		}
		defer r.turns.end(key.Namespace)
		next, err = r.readSnapshot(ctx, key, state, next)
	}
	if err == nil || known {
		r.index.Set(next)
	}
	if readable && err == nil {
		r.store.SetBrokenChannels(key, state.Snapshot, next.BrokenChannels)
	}
	if len(next.BrokenChannels) > 0 {
		result.RequeueAfter = retryBroken
	}
	return result, err
}

// isCurrent reports whether the packages of a catalog need not be read again. Without an announced digest, heads may
// differ although the entries of all channels are equal, so they are read for each connection.
func isCurrent(c manifest.Catalog, state catalogs.State, now time.Time) bool {
	switch {
	case c.Digest != state.Snapshot.Digest:
		return false
	case len(c.BrokenChannels) > 0 && now.Sub(c.ReadAt) >= retryBroken:
		return false
	default:
		return state.Snapshot.IsAnnounced() || c.Connected.Equal(state.LastConnect)
	}
}

// source returns what packages show of a CatalogSource.
func (r *reconciler) source(cs *operatorsv1alpha1.CatalogSource, state catalogs.State, old manifest.Catalog) *manifest.Source {
	s := &manifest.Source{
		Namespace: cs.Namespace, Name: cs.Name, DisplayName: cs.Spec.DisplayName, Publisher: cs.Spec.Publisher,
		Labels: cs.Labels, Created: cs.CreationTimestamp.Time, Priority: cs.Spec.Priority,
	}
	if !state.Serving() {
		s.UnavailableSince = r.clock.Now()
		if old.Source != nil && !old.Source.UnavailableSince.IsZero() {
			s.UnavailableSince = old.Source.UnavailableSince
		}
	}
	return s
}

// readSnapshot returns a catalog with the packages of a snapshot, and the catalog as it was with an error. The error is
// errOutdated if the catalog has another snapshot afterwards. The first head that the catalog had not listed is an error, as
// the snapshot may be outdated. If the catalog confirms the snapshot afterwards, only the channels of such heads are left out.
func (r *reconciler) readSnapshot(
	ctx context.Context, key types.NamespacedName, state catalogs.State, catalog manifest.Catalog,
) (manifest.Catalog, error) {
	confirmed := r.otherHeads.confirmed(key, state)
	packages, broken, err := r.read(ctx, key, state.Snapshot.Content, confirmed)
	now, _ := r.store.State(key)
	if errors.Is(err, catalogs.ErrOtherHead) {
		r.otherHeads.add(key, state.Snapshot.Digest, now.ReadAt)
	}
	if err != nil {
		return catalog, err
	}
	if now.Snapshot != state.Snapshot {
		return catalog, fmt.Errorf("catalog %s: %w", key, errOutdated)
	}
	if !confirmed {
		// All heads were those that the catalog listed.
		r.otherHeads.remove(key)
	}
	record(key, len(packages), len(broken))
	catalog.Packages, catalog.BrokenChannels, catalog.Digest = packages, broken, state.Snapshot.Digest
	catalog.Connected, catalog.ReadAt = state.LastConnect, r.clock.Now()
	return catalog, nil
}

// read returns the packages of a catalog, sorted by name. A channel whose head cannot be read is left out, and returned in
// broken as PACKAGE/CHANNEL. If the content is confirmed, the same applies to a channel with a head that was not listed.
func (r *reconciler) read(
	ctx context.Context, key types.NamespacedName, c *content.Catalog, confirmed bool,
) (packages []*manifest.Package, broken []string, err error) {
	compressor, err := compressed.NewCompressor()
	if err != nil {
		return nil, nil, err
	}
	err = r.store.ReadHeads(ctx, key, func(ctx context.Context, heads catalogs.HeadReader) error {
		packages, broken = make([]*manifest.Package, 0, len(c.Packages())), nil
		for _, pkg := range c.Packages() {
			known, problems, err := readPackage(ctx, heads, pkg, confirmed)
			if err != nil {
				return err
			}
			for _, channel := range slices.Sorted(maps.Keys(problems)) {
				log.FromContext(ctx).Info("Leaving a channel out of the PackageManifests",
					"package", pkg.Name, "channel", channel, "problem", problems[channel].Error())
				broken = append(broken, pkg.Name+"/"+channel)
			}
			p, err := manifest.NewPackage(compressor, pkg, known)
			if err != nil {
				return err
			}
			if p != nil {
				packages = append(packages, p)
			}
		}
		return manifest.Compact(packages)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the packages of catalog %s: %w", key, err)
	}
	return packages, broken, nil
}

// readPackage returns the heads of the channels of a package by channel, and why others are missing. A head that was not
// listed is an error unless the content is confirmed.
func readPackage(
	ctx context.Context, heads catalogs.HeadReader, pkg *content.Package, confirmed bool,
) (known map[string]manifest.Head, problems map[string]error, err error) {
	known, problems = make(map[string]manifest.Head, len(pkg.Channels)), map[string]error{}
	for _, channel := range pkg.Channels {
		name := ""
		if len(channel.Chain) > 0 {
			name = channel.Chain[0].Bundle.Name
		}
		text, err := heads.CSV(ctx, pkg.Name, channel.Name, name)
		broken := errors.Is(err, catalogs.ErrBrokenChannel) || confirmed && errors.Is(err, catalogs.ErrOtherHead)
		if err != nil && !broken {
			return nil, nil, err
		}
		head := manifest.Head{}
		if err == nil {
			head, err = manifest.ParseHead(text)
			head.Bundle = name
		}
		if err != nil {
			problems[channel.Name] = err
			continue
		}
		known[channel.Name] = head
	}
	return known, problems, nil
}

const (
	// firstRead limits how long requests wait for the first reading of all catalogs, and the process for its server.
	firstRead         = 30 * time.Second
	firstReadInterval = 200 * time.Millisecond
)

// awaitFirstRead makes the index ready when the server answers and every catalog that serves has been read, or after
// firstRead.
func (r *reconciler) awaitFirstRead(ctx context.Context) error {
	defer r.index.SetReady()
	ctx, cancel := context.WithTimeout(ctx, firstRead)
	defer cancel()
	ticker := time.NewTicker(firstReadInterval)
	defer ticker.Stop()
	for !r.serving.Load() || !r.allRead(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	return nil
}

// allRead reports whether every catalog has been read, or cannot be read now.
func (r *reconciler) allRead(ctx context.Context) bool {
	sources := catalogs.NewList()
	if err := r.reader.List(ctx, sources); err != nil {
		return false
	}
	for i := range sources.Items {
		key := client.ObjectKeyFromObject(&sources.Items[i])
		if _, known := r.index.Catalog(key); known {
			continue
		}
		state, followed := r.store.State(key)
		source, err := catalogs.Decode(&sources.Items[i])
		invalid := err != nil
		if err == nil {
			_, problem := catalogs.SpecProblem(source)
			invalid = problem != ""
		}
		if !invalid && (!followed || state.Err == nil) {
			return false
		}
	}
	return true
}

// readIcon reads the icon of a package from its catalog.
func (r *reconciler) readIcon(ctx context.Context, item manifest.Item) (icon manifest.Icon, err error) {
	key := types.NamespacedName{Namespace: item.Source.Namespace, Name: item.Source.Name}
	err = r.store.ReadHeads(ctx, key, func(ctx context.Context, heads catalogs.HeadReader) error {
		text, err := heads.CSV(ctx, item.Package.Name, item.Package.Icon.Channel, item.Package.Icon.Bundle)
		if err != nil {
			return err
		}
		icon, err = manifest.ParseIcon(text)
		return err
	})
	return icon, err
}
