package catalogs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/proto/api"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// ErrNotConnected is returned if there is no connection to a catalog. Its CatalogSource does not
// exist or is invalid, or no replica answers.
var ErrNotConnected = errors.New("no registry client established")

// State is the state of a catalog.
type State struct {
	// Address is the address of the catalog.
	Address string
	// Connectivity is the gRPC state of the connection: IDLE, CONNECTING, READY, TRANSIENT_FAILURE
	// or SHUTDOWN.
	Connectivity string
	// LastConnect is when the supervisor began to read this content over this connection: when the
	// connection was last established, or when other content or other replicas began to serve. After
	// the first time, it changes only once the content has been read or confirmed.
	LastConnect time.Time
	// Lost is when the connection last left READY, and LostTo the state that it had then. Lost is zero if it never did.
	Lost   time.Time
	LostTo string
	// Revision is the revision of the replica that last confirmed the content; empty if unknown.
	Revision string
	// Snapshot is the last content that was read completely; nil before the first.
	Snapshot *Snapshot
	// ReadAt is when Snapshot was last confirmed: it was read, or the catalog announced the same
	// content. A change of ReadAt alone is not published.
	ReadAt time.Time
	// BrokenChannels are the channels of Snapshot whose heads cannot be used, as PACKAGE/CHANNEL and sorted; nil until the
	// heads are read.
	BrokenChannels []string
	// Err is the reason why there is no connection or why the last reading failed. It is nil after
	// a successful reading.
	Err error
	// TLS is the state of the encryption of the connection to an address, or to replicas that all use TLS.
	TLS dialtls.Status
	// Inherited is true if the snapshot was read from another address or from disk.
	Inherited bool
}

// Serving reports whether the catalog serves.
func (s State) Serving() bool { return s.Connectivity == connectivityReady && s.Err == nil }

// Ready reports whether the catalog serves and its content was read from the current address.
func (s State) Ready() bool {
	return s.Serving() && s.Snapshot != nil && !s.Inherited
}

// Confirming reports whether an inherited snapshot is in use while the current address is asked for its content. No problem is
// known yet: a problem is set in Err, at the latest when a time limit ends.
func (s State) Confirming() bool {
	return s.Snapshot != nil && s.Inherited && s.Err == nil && s.Connectivity != connectivity.TransientFailure.String()
}

// Store follows catalogs. Its methods are safe for concurrent use.
type Store struct {
	// Proxies is the proxy configuration for catalogs that are not hosted. Set it before following
	// the first one.
	Proxies dialproxy.Environment
	// Contents keeps contents on disk; nil for none. Set it before following the first catalog.
	Contents *ContentStore

	ctx       context.Context //nolint:containedctx // the lifetime of the store: connections outlive the calls that ask for them
	settings  settings
	clock     clock.PassiveClock
	pool      *snapshotPool
	readers   readLimiter
	publisher publisher
	followed  reflectorSet
}

// settings are the intervals and the limit of a Store. Tests change them.
type settings struct {
	// Refresh is how often to check for changes.
	Refresh time.Duration
	// Probe is the timeout of a probe.
	Probe time.Duration
	// Reread is how often to read catalogs that announce no digest.
	Reread time.Duration
	// Settle is how long the previous content is ignored.
	Settle time.Duration
	// Answer is how long a catalog may stay without an answer.
	Answer time.Duration
	// Restore is how long to wait for content before using the content on disk.
	Restore time.Duration
	// Limit is the maximum size of a snapshot, in bytes.
	Limit int64
}

// NewStore returns a Store that runs until ctx ends. The store reads content when it changes. It
// checks for changes at every refresh interval and after each connect.
func NewStore(ctx context.Context, refresh time.Duration, clk clock.PassiveClock) *Store {
	return &Store{
		ctx: ctx, clock: clk, pool: newSnapshotPool(), readers: make(readLimiter, maxReaders),
		followed: reflectorSet{byKey: map[types.NamespacedName]*reflector{}},
		settings: settings{
			Refresh: refresh, Probe: probeTimeout, Reread: rereadInterval, Settle: settleTime, Answer: answerTimeout,
			Restore: restoreDelay, Limit: maxBytes,
		},
	}
}

const (
	// maxReaders limits how many catalogs are read at once, and thereby the memory of a starting
	// supervisor.
	maxReaders = 4
	// queueTimeout limits how long a reading waits for others. A slow catalog must not block the
	// others.
	queueTimeout = 10 * time.Second
	// answerTimeout is how long a catalog can stay without an answer before that is an error. Until
	// then, resolution waits or uses the last known content.
	answerTimeout = 10 * time.Second
	// rereadInterval is how often a catalog is read whose server announces no digest. Only reading
	// can detect a change. OLM uses the same interval.
	rereadInterval = 30 * time.Minute
	// settleTime is how long the store does not return to the previous content because another
	// replica still serves it.
	settleTime = time.Minute
)

// readLimiter limits concurrent readings.
type readLimiter chan struct{}

// acquire waits until a catalog may be read. The reader calls release at the end. After queueTimeout,
// acquire returns without a slot.
func (r readLimiter) acquire(ctx context.Context) (release func()) {
	timer := time.NewTimer(queueTimeout)
	defer timer.Stop()
	select {
	case r <- struct{}{}:
		return func() { <-r }
	case <-timer.C:
	case <-ctx.Done():
	}
	return func() {}
}

// Start waits until the store's context ends and everything that it runs has stopped. It implements
// manager.Runnable.
func (s *Store) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
	err := s.followed.stop()
	s.Contents.wait()
	return err
}

// NeedLeaderElection returns false, because standbys follow catalogs too.
func (s *Store) NeedLeaderElection() bool { return false }

// Listen returns a channel that receives an event for every change of a catalog's state. The
// receiver must read it until the store's context ends.
func (s *Store) Listen() <-chan event.GenericEvent { return s.publisher.listen() }

// Follow maintains a connection to a catalog at an address outside the supervisor's control. A new
// address closes the old connection; the snapshot stays until a new one is read. Other certificates
// apply to new connections, and to a failed one at once. State reports problems with the address.
// Follow returns an error only after the store's context has ended.
func (s *Store) Follow(key types.NamespacedName, address string, security dialtls.Security) error {
	return s.replace(key, target{address: address, security: security}, []replicas.Endpoint{{Address: address, Ready: true}})
}

// FollowReplicas maintains connections to the replicas of a hosted catalog, at endpoints. address
// is the address that other clients use. security is for endpoints with TLS.
func (s *Store) FollowReplicas(key types.NamespacedName, address string, security dialtls.Security, endpoints []replicas.Endpoint) error {
	security.Settings.Enabled = true // endpoints can still be without TLS
	return s.replace(key, target{address: address, hosted: true, security: security}, endpoints)
}

// target is where a catalog is, and how to connect to it.
type target struct {
	address  string
	hosted   bool
	security dialtls.Security
}

// replace follows a catalog and replaces the previous one with the same key.
func (s *Store) replace(key types.NamespacedName, to target, endpoints []replicas.Endpoint) error {
	if err := s.ctx.Err(); err != nil {
		return fmt.Errorf("following catalog %s: %w", key, err)
	}
	changed, err := s.followed.put(key, to, endpoints, s.newReflector)
	if err != nil {
		return fmt.Errorf("following catalog %s: %w", key, err)
	}
	if changed {
		s.publisher.publish(s.ctx, key)
	}
	return nil
}

// newReflector creates a reflector that inherits the snapshot of old, if there is one. network has the
// connections to the replicas of hosted catalogs.
func (s *Store) newReflector(old *reflector, key types.NamespacedName, to target, network *replicas.Network) *reflector {
	options := replicas.Options{Clock: s.clock, Proxies: s.Proxies, Credentials: dialtls.NewCredentials(to.security)}
	if to.hosted {
		options.Network, options.Probe = network, replicas.DefaultProbe()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	next := &reflector{
		key: key, address: to.address, hosted: to.hosted, ctx: ctx, cancel: cancel, store: s, checks: make(chan struct{}, 1),
		set: replicas.NewSet(ctx, options), credentials: options.Credentials,
	}
	recordClientCertificate(key, options.Credentials.Expiry())
	state := State{Address: to.address}
	if old != nil {
		old.cancel()
		before := old.tracker.current()
		state.Snapshot, state.ReadAt, state.Inherited = before.Snapshot, before.ReadAt, before.Snapshot != nil
		state.BrokenChannels = before.BrokenChannels
	}
	next.tracker = &tracker{
		namespace: key.Namespace, address: to.address, settings: &s.settings, clock: s.clock, pool: s.pool, state: state,
	}
	return next
}

// Remove closes the connections to a catalog and forgets it.
func (s *Store) Remove(key types.NamespacedName) { s.followed.remove(key) }

// State returns the state of a catalog. ok is false if the store does not follow it.
func (s *Store) State(key types.NamespacedName) (state State, ok bool) {
	found := s.followed.find(key)
	if found == nil {
		return State{}, false
	}
	state = found.tracker.current()
	if !found.hosted || found.set.Secured() {
		state.TLS = found.credentials.Status(s.clock.Now())
	}
	return state, true
}

// Replicas returns the state of each replica of a catalog: the pods of a hosted one, or the single
// address of another. It is empty if the store does not follow the catalog.
func (s *Store) Replicas(key types.NamespacedName) []replicas.State {
	found := s.followed.find(key)
	if found == nil {
		return nil
	}
	return found.set.States()
}

// Bundle reads a bundle and its manifests from the catalog. It records the digest of inline
// manifests in the snapshot. If no replica answers, it returns a bundle with an image from the snapshot.
func (s *Store) Bundle(ctx context.Context, catalog types.NamespacedName, pkg, channel, name string) (plansteps.Bundle, error) {
	found := s.followed.find(catalog)
	if found == nil {
		return plansteps.Bundle{}, fmt.Errorf("reading bundle %s of package %s: %w for catalogsource %s", name, pkg, ErrNotConnected, catalog)
	}
	snapshot := found.tracker.current().Snapshot
	var bundle plansteps.Bundle
	err := found.set.Do(ctx, func(ctx context.Context, conn replicas.Conn) error {
		var err error
		bundle, err = fetchBundle(ctx, api.NewRegistryClient(conn), catalog, &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: name})
		return err
	})
	if errors.Is(err, replicas.ErrNone) || replicas.IsReplicaFailure(err) {
		if known, ok := snapshot.bundle(catalog, pkg, channel, name); ok {
			return known, nil
		}
	}
	if errors.Is(err, replicas.ErrNone) {
		return plansteps.Bundle{}, fmt.Errorf("reading bundle %s of package %s: %w for catalogsource %s: %w", name, pkg, ErrNotConnected, catalog, err)
	}
	if err == nil && len(bundle.Objects) > 0 && snapshot != nil && snapshot == found.tracker.current().Snapshot {
		if snapshot.setManifests(pkg, name, plansteps.Digest(bundle.Objects)) {
			s.publisher.publish(ctx, catalog)
		}
	}
	return bundle, err
}

// publisher sends events for changed catalogs.
type publisher struct {
	mu        sync.Mutex
	listeners []chan event.GenericEvent
}

func (p *publisher) listen() <-chan event.GenericEvent {
	const burst = 64
	p.mu.Lock()
	defer p.mu.Unlock()
	listener := make(chan event.GenericEvent, burst)
	p.listeners = append(p.listeners, listener)
	return listener
}

// publish sends an event for a catalog to every listener.
func (p *publisher) publish(ctx context.Context, key types.NamespacedName) {
	object := NewObject()
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	p.mu.Lock()
	listeners := p.listeners
	p.mu.Unlock()
	for _, listener := range listeners {
		select {
		case listener <- event.GenericEvent{Object: object}:
		case <-ctx.Done():
			return
		}
	}
}
