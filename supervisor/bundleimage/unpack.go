package bundleimage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/manifests"
)

// Defaults of [Options].
const (
	DefaultSize    = 1 << 30
	DefaultTimeout = 10 * time.Minute
)

// Options configure an [Unpacker].
type Options struct {
	// Reader reads ServiceAccounts and Secrets.
	Reader client.Reader
	// Dir is the directory of the cache; [DefaultDir] if empty. Processes may share it.
	Dir string
	// Size is the maximum size of the cache, in bytes. Running pulls are not included.
	Size int64
	// Timeout is the maximum duration of a pull if the Request has none; 0 for no limit.
	Timeout time.Duration
	// PlainHTTP and SkipTLSVerify relax the security of connections to registries.
	PlainHTTP, SkipTLSVerify bool
	// Limits bound the content of a bundle.
	Limits manifests.Limits
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
	// Secrets is the spec.secrets of the CatalogSource.
	Secrets []string
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
	return strings.Join(append([]string{r.Image, r.Catalog.Namespace, r.Catalog.Name}, secrets...), "\x00")
}

// State is the state of a request.
type State struct {
	// Ready is true if the content is cached, and Digest is the digest of its image.
	Ready  bool
	Digest string
	// Began is the start of the current attempt; zero if there is none. Done of Total bytes have been transferred.
	Began       time.Time
	Done, Total int64
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

// Unpacker pulls bundle images and returns their content. It is safe for concurrent use.
type Unpacker struct {
	o     Options
	store image.Store
	// local reads the cache; it sends no requests to registries.
	local *image.Client
	news  *news
	// transfers and questions limit the concurrent requests to registries.
	transfers, questions *slots
	// reading limits how many bundles are decoded at a time.
	reading chan struct{}

	// ctx is the lifetime of background work.
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry
	pulls   map[string]*pull
	broken  map[string]error
	memory  *memory
}

// New returns an Unpacker that caches content in a directory, which it creates. Its background work ends with
// the context of [Unpacker.Start].
func New(o Options) (*Unpacker, error) {
	o.Dir = cmp.Or(o.Dir, DefaultDir())
	o.Size = cmp.Or(o.Size, DefaultSize)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := prepare(o.Dir); err != nil {
		return nil, err
	}
	local, err := image.New(image.Options{})
	if err != nil {
		return nil, fmt.Errorf("preparing to unpack bundles: %w", err)
	}
	// Requests from before Start start their attempts at once.
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // Start ends it
	u := &Unpacker{
		o: o, store: image.Store{Dir: o.Dir, Apart: true}, local: local, ctx: ctx, stop: stop,
		news: newNews(), reading: make(chan struct{}, 1),
		transfers: newSlots(maxPulls, maxPullsPerHost), questions: newSlots(maxQuestions, maxQuestionsPerHost),
		entries: map[string]*entry{}, pulls: map[string]*pull{}, broken: map[string]error{}, memory: newMemory(maxMemory),
	}
	return u, nil
}

var errDir = errors.New("is no directory of ours that nobody else can write to")

// prepare creates the directory. Its content is trusted, so it must belong to this user.
func prepare(dir string) error {
	const remedy = "name another one with --bundle-cache-dir"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory for bundles; %s: %w", remedy, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("looking at the directory for bundles; %s: %w", remedy, err)
	}
	if !info.IsDir() || !isOurs(info) {
		return fmt.Errorf("the directory for bundles, %s, %w; %s", dir, errDir, remedy)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("writing to the directory for bundles; %s: %w", remedy, err)
	}
	err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	if err != nil {
		return fmt.Errorf("writing to the directory for bundles; %s: %w", remedy, err)
	}
	return nil
}

// Setup adds the Unpacker to a manager, leading or not.
func (u *Unpacker) Setup(mgr manager.Manager) error {
	if err := mgr.Add(u); err != nil {
		return fmt.Errorf("adding the unpacker: %w", err)
	}
	return nil
}

// NeedLeaderElection returns false: standbys pull images on request as well.
func (u *Unpacker) NeedLeaderElection() bool { return false }

// Start notifies listeners until ctx ends. Then it stops background work and waits for its end.
func (u *Unpacker) Start(ctx context.Context) error {
	u.shrink(ctx, u.o.Size)
	u.news.tell(ctx)
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.stop()
	u.work.Wait()
	return nil
}

// Listen returns a channel with an event for each namespace whose requests have changed their state. During a
// transfer, there is at most one event a second. The object of an event has no name. Call Listen before
// [Unpacker.Start], and read the channel until the context of Start ends.
func (u *Unpacker) Listen() <-chan event.GenericEvent { return u.news.listen() }

// State returns the state of a request, and starts an attempt if it is due. It does not block.
func (u *Unpacker) State(_ context.Context, r Request) State {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.o.Clock.Now()
	e := u.entry(&r, now)
	if e.due(now) {
		u.begin(e, &r, now)
	}
	if e.running != nil {
		e.namespaces[r.Namespace] = true
	}
	return e.state(now)
}

// attempts is how often content is pulled again that was evicted before it was read.
const attempts = 5

var (
	errGone    = errors.New("it was removed from the cache again and again; is --bundle-cache-size too small for it?")
	errStopped = errors.New("the unpacker has been stopped")
)

// Content returns the content of an image. It comes from memory or disk if the registry has authorized the
// request, or else from the registry. Content blocks until the content is available.
func (u *Unpacker) Content(ctx context.Context, r Request) (Content, error) {
	for range attempts {
		digest, running, err := u.ask(&r)
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
		pinned, err := pin(r.Image, digest)
		if err != nil {
			return Content{}, err
		}
		objects, err := u.held(pinned, digest)
		if err != nil {
			return Content{}, as(r.Image, err)
		}
		if objects != nil {
			return Content{Image: pinned, Digest: digest, Objects: objects}, nil
		}
		u.lost(&r)
	}
	return Content{}, &image.Error{Reference: r.Image, Reason: image.ReasonLocal, Err: errGone}
}

// ask returns the digest that a request is authorized for. If the digest is unknown, running is closed at the
// end of the current attempt.
func (u *Unpacker) ask(r *Request) (digest string, running <-chan struct{}, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.o.Clock.Now()
	e := u.entry(r, now)
	switch {
	case e.granted(now):
		return e.digest, nil, nil
	case e.running != nil:
	case e.rests(now):
		return "", nil, e.err
	default:
		u.begin(e, r, now)
	}
	if u.closed {
		return "", nil, fmt.Errorf("unpacking image %q: %w", r.Image, errStopped)
	}
	return "", e.running, nil
}

// lost records that cached content is missing.
func (u *Unpacker) lost(r *Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.entry(r, u.o.Clock.Now()).grantedAt = time.Time{}
}

// begin starts an attempt.
func (u *Unpacker) begin(e *entry, r *Request, now time.Time) {
	if u.closed {
		return
	}
	running := make(chan struct{})
	e.running, e.began = running, now
	// The caller may change its request during the attempt.
	request := *r
	request.Secrets = slices.Clone(r.Secrets)
	u.work.Go(func() {
		defer close(running)
		u.settle(e, &request, u.obtain(u.ctx, &request, e))
	})
}
