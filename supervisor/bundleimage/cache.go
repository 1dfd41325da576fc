package bundleimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/internal/keylimit"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
	"github.com/chandlery/chandlery/supervisor/privatedir"
)

// Defaults of [Options].
const (
	DefaultSize    = 1 << 30
	DefaultTimeout = 10 * time.Minute
)

// Options configure a [Cache].
type Options struct {
	// Reader reads ServiceAccounts and Secrets.
	Reader client.Reader
	// Dir is the directory of the cache; [DefaultDir] if empty. Processes may share it.
	Dir string
	// Size is the maximum size of the cache, in bytes. Running pulls are not included.
	Size int64
	// Timeout is the maximum duration of a pull if the Request has none; 0 for no limit.
	Timeout time.Duration
	// Sources are the cluster's settings for registries; nil for none.
	Sources *imagesources.Settings
	// Policies are the rules for signatures; nil for none.
	Policies *imagepolicy.Policies
	// PlainHTTP and SkipTLSVerify relax the security of connections to registries.
	PlainHTTP, SkipTLSVerify bool
	// Limits bound the content of a bundle.
	Limits manifests.Limits
	// Nodes configure the pulls by nodes; zero for none.
	Nodes Nodes
	// Clock returns the time; the system clock if nil.
	Clock clock.PassiveClock
}

// DefaultDir returns the default directory of the cache: in the user's cache directory, or else in the
// directory for temporary files.
func DefaultDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "chandlery-bundles")
}

// Request is a request for the content of a bundle image.
type Request struct {
	// Image is the reference from the catalog, by tag or by digest.
	Image string
	// Catalog is the CatalogSource that serves the bundle. Its namespace holds the pull secrets.
	Catalog types.NamespacedName
	// Account is the ServiceAccount of the catalog, whose pull secrets apply; empty for one of the catalog's name.
	Account string
	// Secrets is the spec.secrets of the CatalogSource.
	Secrets []string
	// Config is the ConfigMap with rules of the catalog for the sources of its images; empty for none.
	Config string
	// Policy is the ConfigMap with rules of the catalog for signatures; empty for none.
	Policy string
	// Pull is who pulls the images of the catalog, as its annotation says; empty for the mode of the cluster.
	Pull string
	// Namespace is the namespace of the request. Notifications carry it.
	Namespace string
	// Timeout is the maximum duration of a pull: 0 for no limit, negative for the default.
	Timeout time.Duration
	// RetryInterval is the minimum time between a failed attempt and the next.
	RetryInterval time.Duration
}

// key returns a key that is equal for requests with the same answer.
func (r *Request) key() string {
	secrets := slices.Compact(slices.Sorted(slices.Values(r.Secrets)))
	fields := []string{r.Image, r.Catalog.Namespace, r.Catalog.Name, r.Account, r.Config, r.Policy, r.Pull}
	return strings.Join(append(fields, secrets...), "\x00")
}

// catalog returns the catalog with what applies to its images.
func (r *Request) catalog() *imagesources.Catalog {
	return &imagesources.Catalog{NamespacedName: r.Catalog, Account: cmp.Or(r.Account, r.Catalog.Name), Secrets: r.Secrets, Config: r.Config}
}

// State is the state of a request.
type State struct {
	// Ready is true if the content is cached, and Digest is the digest of its image.
	Ready  bool
	Digest string
	// Began is the start of the current attempt; zero if there is none. Done of Total bytes have been transferred.
	Began       time.Time
	Done, Total int64
	// Node is how a node pulls or has pulled the image; nil if none does.
	Node *NodePull
	// Attempts is the number of consecutive failures. Err is the error of the last one, at FailedAt. The next attempt
	// is made at RetryAt. If that is zero, only a different Request may succeed.
	Attempts          int
	Err               error
	FailedAt, RetryAt time.Time
}

// Content is the content of a bundle image.
type Content struct {
	// Image is the reference by digest.
	Image  string
	Digest string
	// Objects are the manifests as JSON, the ClusterServiceVersion first.
	Objects []string
}

// Cache pulls bundle images and returns their content. It is safe for concurrent use.
type Cache struct {
	o          Options
	contents   *contentStore
	authorizer *authorizer
	puller     *puller
	notifier   notifier
	nodes      *nodePuller

	// ctx is the lifetime of background work.
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry
}

// New returns a Cache in a directory, which it creates. Its background work ends with the context of
// [Cache.Start].
func New(o Options) (*Cache, error) {
	o.Dir = cmp.Or(o.Dir, DefaultDir())
	o.Size = cmp.Or(o.Size, DefaultSize)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Sources == nil {
		o.Sources = imagesources.New(sources.Paths{}, nil)
	}
	if err := privatedir.Prepare(o.Dir, "bundles", "--bundle-cache-dir"); err != nil {
		return nil, err //nolint:wrapcheck // says what was prepared
	}
	local, err := image.New(image.Options{Limits: image.BundleLimits()})
	if err != nil {
		return nil, fmt.Errorf("preparing to unpack bundles: %w", err)
	}
	// Requests from before Start start their attempts at once.
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // Start ends it
	c := &Cache{o: o, ctx: ctx, stop: stop, entries: map[string]*entry{}}
	c.contents = &contentStore{
		store: image.Store{Dir: o.Dir, Apart: true}, local: local, limits: o.Limits,
		reading: make(chan struct{}, 1), memory: newMemory(maxMemory),
	}
	c.authorizer = &authorizer{o: &c.o, contents: c.contents, limiter: keylimit.New(maxQueries, maxQueriesPerHost)}
	c.nodes = &nodePuller{o: &c.o, contents: c.contents, limiter: keylimit.New(maxNodePulls, maxNodePullsPerNamespace)}
	c.puller = &puller{
		o: &c.o, ctx: ctx, contents: c.contents, progress: c.recordProgress,
		limiter: keylimit.New(maxPulls, maxPullsPerHost), catalogs: keylimit.New(math.MaxInt, maxPullsPerCatalog),
		namespaces: keylimit.New(math.MaxInt, maxPullsPerNamespace),
		pulls:      map[contentKey]*pull{}, broken: map[contentKey]error{},
	}
	return c, nil
}

// Setup adds the Cache to a manager, leading or not.
func (c *Cache) Setup(mgr manager.Manager) error {
	if err := mgr.Add(c); err != nil {
		return fmt.Errorf("adding the cache of bundle images: %w", err)
	}
	return nil
}

// NeedLeaderElection returns false: standbys pull images on request as well.
func (c *Cache) NeedLeaderElection() bool { return false }

// Start notifies listeners until ctx ends. Then it stops background work and waits for its end.
func (c *Cache) Start(ctx context.Context) error {
	c.contents.shrink(ctx, c.o.Size)
	c.notifier.run(ctx)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.work.Wait()
	c.puller.work.Wait()
	return nil
}

// Listen returns a channel with an event for each namespace whose requests have changed their state. During a
// transfer, there is at most one event a second. The object of an event has no name. Call Listen before
// [Cache.Start], and read the channel until the context of Start ends.
func (c *Cache) Listen() <-chan event.GenericEvent { return c.notifier.listen() }

// State returns the state of a request, and starts an attempt if it is due. It does not block.
func (c *Cache) State(_ context.Context, r Request) State {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Clock.Now()
	e := c.entry(&r, now)
	if e.isDue(now, c.o.Policies.Version()) {
		c.startAttempt(e, &r, now)
	}
	if e.running != nil {
		e.namespaces[r.Namespace] = true
	}
	return e.state(now, c.o.Policies.Version())
}

// attempts is how often content is pulled again that was evicted before it was read.
const attempts = 5

var (
	errGone    = errors.New("it was removed from the cache repeatedly; --bundle-cache-size may be too small")
	errStopped = errors.New("the unpacker has been stopped")
)

// Content returns the content of an image. It comes from memory or disk if the registry has authorized the
// request, or else from the registry. Content blocks until the content is available.
func (c *Cache) Content(ctx context.Context, r Request) (Content, error) {
	for range attempts {
		granted, running, err := c.authorized(&r)
		if err != nil {
			return Content{}, err
		}
		if running != nil {
			select {
			case <-running:
				continue
			case <-ctx.Done():
				return Content{}, fmt.Errorf("unpacking image %q: %w", r.Image, context.Cause(ctx))
			}
		}
		resolved, err := withDigest(r.Image, granted.digest)
		if err != nil {
			return Content{}, err
		}
		objects, err := c.contents.get(contentKey{granted.realm, resolved}, granted.digest)
		if err != nil {
			return Content{}, withReference(r.Image, err)
		}
		if objects != nil {
			return Content{Image: resolved, Digest: granted.digest, Objects: objects}, nil
		}
		c.revoke(&r)
	}
	return Content{}, &image.Error{Reference: r.Image, Reason: image.ReasonLocal, Err: errGone}
}

// authorized returns the content that a request is authorized for. If it is unknown, running is closed at the end of
// the current attempt.
func (c *Cache) authorized(r *Request) (granted grant, running <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Clock.Now()
	e := c.entry(r, now)
	switch {
	case e.isAuthorized(now, c.o.Policies.Version()):
		return e.grant, nil, nil
	case e.running != nil:
	case e.inBackOff(now):
		return grant{}, nil, e.err
	default:
		c.startAttempt(e, r, now)
	}
	if c.closed {
		return grant{}, nil, fmt.Errorf("unpacking image %q: %w", r.Image, errStopped)
	}
	return grant{}, e.running, nil
}

// revoke drops the authorization of a request, because the cached content is missing.
func (c *Cache) revoke(r *Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entry(r, c.o.Clock.Now()).authorizedAt = time.Time{}
}

// startAttempt starts an attempt.
func (c *Cache) startAttempt(e *entry, r *Request, now time.Time) {
	if c.closed {
		return
	}
	running := make(chan struct{})
	e.running, e.began = running, now
	// The caller may change its request during the attempt.
	request := *r
	request.Secrets = slices.Clone(r.Secrets)
	c.work.Go(func() {
		defer close(running)
		c.finish(e, &request, c.attempt(c.ctx, &request, e))
	})
}

// outcome is the result of an attempt: authorized content or an error.
type outcome struct {
	grant grant
	err   error
}

// attempt ensures that the content of an image is cached and that the request may have it. If the supervisor cannot pull
// the image and a node may, its failure is shown until the node has ended.
func (c *Cache) attempt(ctx context.Context, r *Request, e *entry) outcome {
	rules, err := c.o.Policies.Rules(ctx, c.o.Reader, imagepolicy.Query{
		Image: r.Image, Use: signature.Bundles, Own: types.NamespacedName{Namespace: r.Catalog.Namespace, Name: r.Policy},
	})
	if err != nil {
		return outcome{err: err}
	}
	mode, err := c.o.Nodes.Mode.For(r.Pull)
	if err != nil {
		return outcome{err: &image.Error{Reference: r.Image, Reason: image.ReasonConfiguration, Err: err}}
	}
	var o outcome
	started := func(pull *NodePull) { c.update(e, func() { e.node = pull }) }
	if c.o.Nodes.pulls(mode, nil) {
		if o.err = rules.ForNodes(r.Image); o.err == nil {
			o.grant, o.err = c.nodes.pull(ctx, r, nil, started)
		}
	} else {
		o.grant.realm = r.catalog().Realm()
		o.grant.digest, o.err = c.bySupervisor(ctx, r, e, rules)
		switch {
		case o.err == nil || rules.ForNodes(r.Image) != nil:
		case c.o.Nodes.pulls(mode, o.err):
			c.update(e, func() { e.show(o.err, c.o.Clock.Now()) })
			o.grant, o.err = c.nodes.pull(ctx, r, o.err, started)
		default:
			o.err = c.o.Nodes.excluded(mode, o.err)
		}
	}
	o.grant.policy = rules.ClusterVersion
	return o
}

// bySupervisor checks with the registry that the request may have an image, that the image has the required signatures,
// and ensures that its content is cached.
func (c *Cache) bySupervisor(ctx context.Context, r *Request, e *entry, rules imagepolicy.Rules) (digest string, err error) {
	a, err := c.authorizer.authorize(ctx, r, rules)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			countPull(err) // Without an answer of the registry, no pull begins.
		}
		return "", rules.Required(err)
	case a.cached:
		return a.digest, nil
	}
	err = c.puller.ensure(ctx, a, func(p *pull) {
		c.mu.Lock()
		defer c.mu.Unlock()
		e.pull = p
	})
	if err != nil {
		return "", rules.Required(withReference(r.Image, withSecretProblem(err, a.access.SecretProblem)))
	}
	c.authorizer.record(ctx, a)
	return a.digest, nil
}

// recordProgress records the number of transferred bytes. It notifies the namespaces that wait for the
// pull at most once a second.
func (c *Cache) recordProgress(p *pull, done, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.done, p.total = done, total
	now := c.o.Clock.Now()
	if now.Sub(p.reported) < time.Second {
		return
	}
	p.reported = now
	for _, e := range c.entries {
		if e.running != nil && e.pull == p {
			c.notifier.add(e.namespaces)
		}
	}
}

// finish ends an attempt, records its result, and notifies its namespaces.
func (c *Cache) finish(e *entry, r *Request, o outcome) {
	logger := log.FromContext(c.ctx).WithName("unpack").WithValues("image", r.Image, "catalog", r.Catalog.String())
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Clock.Now()
	e.running, e.pull, e.node = nil, nil, nil
	same := e.grant.digest == o.grant.digest && o.err == nil
	switch {
	case c.ctx.Err() != nil:
		return
	case o.err != nil:
		e.fail(o.err, r.RetryInterval, now)
		logger.Info("Image cannot be unpacked", "error", o.err.Error(), "attempt", e.attempts, "retryAt", e.retryAt)
	default:
		e.succeed(&o, now)
		if resolved, err := withDigest(r.Image, o.grant.digest); err == nil && resolved != r.Image {
			// A request that is authorized for a tag is authorized for its digest.
			byDigest := *r
			byDigest.Image = resolved
			c.entry(&byDigest, now).succeed(&o, now)
		}
		if !same {
			logger.Info("Image is unpacked", "digest", o.grant.digest, "byNode", o.grant.node != nil)
		}
	}
	c.notifier.add(e.namespaces)
	clear(e.namespaces)
}

// entry finds or creates the entry of a request.
func (c *Cache) entry(r *Request, now time.Time) *entry {
	key := r.key()
	e := c.entries[key]
	if e == nil {
		for old, other := range c.entries {
			if other.running == nil && now.Sub(other.requested) > forgetTime {
				delete(c.entries, old)
			}
		}
		e = &entry{namespaces: map[string]bool{}}
		c.entries[key] = e
	}
	e.requested = now
	return e
}
