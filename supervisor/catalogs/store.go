package catalogs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/dialproxy"
	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/replicas"
)

// ErrNotConnected says that there is no connection to a catalog, because its
// CatalogSource does not exist or cannot be used.
var ErrNotConnected = errors.New("no registry client established")

// State is what is known of a catalog.
type State struct {
	// Address is where the catalog is dialled.
	Address string
	// Connectivity is the state of the connection, in gRPC's words: IDLE,
	// CONNECTING, READY, TRANSIENT_FAILURE or SHUTDOWN.
	Connectivity string
	// LastConnect is when the connection was last established.
	LastConnect time.Time
	// Snapshot is the last content that was read in full; nil before the first.
	Snapshot *Snapshot
	// ReadAt is when the snapshot was last known to be what the catalog serves: when
	// it was read, or the catalog said that nothing else is served. That it moves on
	// is told to nobody.
	ReadAt time.Time
	// Err is why there is no connection or reading the content failed last; nil
	// once it has been read again.
	Err error
	// inherited tells that the snapshot is from another address.
	inherited bool
}

// Ready says whether a catalog serves now and its content has been read, at the
// address that it has now.
func (s State) Ready() bool {
	return s.Connectivity == connectivityReady && s.Err == nil && s.Snapshot != nil && !s.inherited
}

// Store follows catalogs. Its methods may be called from any goroutine.
type Store struct {
	// Proxies are for catalogs that are not hosted here. It is set before the first of them
	// is followed.
	Proxies dialproxy.Environment

	ctx      context.Context //nolint:containedctx // the lifetime of the store: connections outlive the calls that ask for them
	refresh  time.Duration
	probe    time.Duration
	silent   time.Duration
	settle   time.Duration
	patience time.Duration
	limit    int64
	clock    clock.PassiveClock
	pool     *pool
	// readers are places for those who read a catalog.
	readers chan struct{}

	mu        sync.Mutex
	network   *replicas.Network // made when a catalog is hosted
	sources   map[types.NamespacedName]*source
	listeners []chan event.GenericEvent
	running   sync.WaitGroup
}

// NewStore makes a store that lives as long as ctx. Content is read when it
// changes; catalogs are asked whether it has every refresh, and each time a
// connection is established.
func NewStore(ctx context.Context, refresh time.Duration, clk clock.PassiveClock) *Store {
	return &Store{
		ctx: ctx, refresh: refresh, probe: probeTimeout, silent: silentInterval, settle: settleTime, patience: answerTimeout, limit: maxBytes, clock: clk,
		pool: newPool(), readers: make(chan struct{}, maxReaders), sources: map[types.NamespacedName]*source{},
	}
}

const (
	// maxReaders is how many catalogs are read at once, so that a supervisor that
	// starts beside many of them needs no more memory than one that has started.
	maxReaders = 4
	// queueTimeout is how long a reading waits for others at most: a catalog that
	// answers slowly is not to keep others from being read.
	queueTimeout = 10 * time.Second
	// answerTimeout is how long it may take until a replica of a catalog answers
	// for the first time, or again, before that is told as an error: until then whoever
	// needs the catalog waits, or goes on with what was read before.
	answerTimeout = 10 * time.Second
)

// enter waits until a catalog may be read. Whoever has read calls leave.
func (s *Store) enter(ctx context.Context) (leave func()) {
	timer := time.NewTimer(queueTimeout)
	defer timer.Stop()
	select {
	case s.readers <- struct{}{}:
		return func() { <-s.readers }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// Start waits until the store's context ends and everything it runs has
// stopped. It makes the store a part of a manager.
func (s *Store) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	s.mu.Lock()
	followed := maps.Clone(s.sources)
	s.mu.Unlock()
	for key := range followed {
		s.Remove(key)
	}
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.network != nil {
		if err := s.network.Close(); err != nil {
			return fmt.Errorf("closing the connections to replicas: %w", err)
		}
	}
	return nil
}

// NeedLeaderElection is false: standbys follow catalogs too.
func (s *Store) NeedLeaderElection() bool { return false }

// Listen gives a channel that tells of every change to the state of a catalog.
// It has to be read until the store's context ends.
func (s *Store) Listen() <-chan event.GenericEvent {
	const burst = 64
	s.mu.Lock()
	defer s.mu.Unlock()
	listener := make(chan event.GenericEvent, burst)
	s.listeners = append(s.listeners, listener)
	return listener
}

// Follow keeps a connection to a catalog that somebody else runs, at an address,
// from now on. An address that differs from the one so far closes the old
// connection; the snapshot stays until there is a new one. What is wrong with the
// address is told by State. The error says that the store has come to its end.
func (s *Store) Follow(key types.NamespacedName, address string) error {
	return s.replace(key, address, false, []replicas.Endpoint{{Address: address, Ready: true}})
}

// FollowReplicas keeps connections to the replicas of a catalog that is hosted,
// from now on; endpoints are those that it has. The address is where others reach
// it.
func (s *Store) FollowReplicas(key types.NamespacedName, address string, endpoints []replicas.Endpoint) error {
	return s.replace(key, address, true, endpoints)
}

// replace follows a catalog, in the place of what was followed under its name.
func (s *Store) replace(key types.NamespacedName, address string, hosted bool, endpoints []replicas.Endpoint) error {
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("following catalog %s: %w", key, err)
	}
	replaced, err := s.put(key, address, hosted, endpoints)
	if err != nil {
		return fmt.Errorf("following catalog %s: %w", key, err)
	}
	if replaced {
		s.publish(s.ctx, key)
	}
	return nil
}

// put brings what is followed under a name up to date. True when that is another
// catalog than before.
func (s *Store) put(key types.NamespacedName, address string, hosted bool, endpoints []replicas.Endpoint) (replaced bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.sources[key]
	if old != nil && old.address == address && old.hosted == hosted {
		old.set.Update(endpoints)
		return false, nil
	}
	now, err := s.start(old, key, address, hosted)
	if err != nil {
		return false, err
	}
	s.sources[key] = now
	now.set.Update(endpoints)
	_, _ = now.take(now.set.Summary()) // told by whoever called
	s.running.Go(func() { now.follow(now.ctx) })
	return old != nil, nil
}

// start makes a source that takes over what is known from the one before it, if
// there is one. The lock is held.
func (s *Store) start(old *source, key types.NamespacedName, address string, hosted bool) (*source, error) {
	options := replicas.Options{Clock: s.clock, Proxies: s.Proxies}
	if hosted {
		if s.network == nil {
			network, err := replicas.NewNetwork()
			if err != nil {
				return nil, err
			}
			s.network = network
		}
		options.Network, options.Probe = s.network, replicas.DefaultProbe()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	next := &source{
		key: key, address: address, hosted: hosted, ctx: ctx, cancel: cancel, store: s,
		nudges: make(chan struct{}, 1), state: State{Address: address},
	}
	next.set = replicas.NewSet(ctx, options)
	if old != nil {
		old.cancel()
		before := old.current()
		next.state.Snapshot, next.state.ReadAt = before.Snapshot, before.ReadAt
		next.state.inherited = next.state.Snapshot != nil
	}
	return next, nil
}

// Remove ends the connections to a catalog and forgets it.
func (s *Store) Remove(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.sources[key]; old != nil {
		old.cancel()
		delete(s.sources, key)
	}
}

// find gives what is followed under a name; nil when nothing is.
func (s *Store) find(key types.NamespacedName) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources[key]
}

// State gives what is known of a catalog; ok is false when it is not followed.
func (s *Store) State(key types.NamespacedName) (state State, ok bool) {
	found := s.find(key)
	if found == nil {
		return State{}, false
	}
	return found.current(), true
}

// Replicas gives what is known of each replica of a catalog: those of one that is
// hosted, or the one at the address of another. None when it is not followed.
func (s *Store) Replicas(key types.NamespacedName) []replicas.State {
	found := s.find(key)
	if found == nil {
		return nil
	}
	return found.set.States()
}

// Bundle reads a bundle with its manifests from the catalog. The digest of inline
// manifests is known to the snapshot from then on.
func (s *Store) Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plan.Bundle, error) {
	found := s.find(catalog)
	if found == nil {
		return plan.Bundle{}, fmt.Errorf("reading bundle %s of package %s: %w for catalogsource %s", name, pkg, ErrNotConnected, catalog)
	}
	snapshot := found.current().Snapshot
	var bundle plan.Bundle
	err := found.set.Do(ctx, func(ctx context.Context, conn replicas.Conn) error {
		var err error
		bundle, err = fetchBundle(ctx, api.NewRegistryClient(conn), catalog, &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: name})
		return err
	})
	if errors.Is(err, replicas.ErrNone) {
		return plan.Bundle{}, fmt.Errorf("reading bundle %s of package %s: %w for catalogsource %s: %w", name, pkg, ErrNotConnected, catalog, err)
	}
	if err == nil && len(bundle.Objects) > 0 && snapshot != nil && snapshot == found.current().Snapshot {
		if snapshot.remember(pkg, name, plan.Digest(bundle.Objects)) {
			s.publish(ctx, catalog)
		}
	}
	return bundle, err
}

// count brings what metrics say of the snapshots up to date.
func (s *Store) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	distinct, bytes := map[*served]bool{}, int64(0)
	for key, followed := range s.sources {
		snapshot := followed.current().Snapshot
		if snapshot == nil || snapshot.shared == nil {
			continue
		}
		snapshotBytes.WithLabelValues(key.Namespace, key.Name).Set(float64(snapshot.Bytes()))
		if !distinct[snapshot.shared] {
			distinct[snapshot.shared] = true
			bytes += snapshot.shared.bytes()
		}
	}
	snapshotCount.Set(float64(len(distinct)))
	snapshotTotal.Set(float64(bytes))
}

// publish tells every listener that the state of a catalog changed.
func (s *Store) publish(ctx context.Context, key types.NamespacedName) {
	object := NewObject()
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, listener := range listeners {
		select {
		case listener <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return
		}
	}
}
