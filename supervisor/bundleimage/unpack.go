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

// What [Options] are where nobody says otherwise.
const (
	DefaultSize    = 1 << 30
	DefaultTimeout = 10 * time.Minute
)

// Options are what an [Unpacker] needs.
type Options struct {
	// Reader reads ServiceAccounts and Secrets.
	Reader client.Reader
	// Dir is where content is kept; [DefaultDir] when empty. Processes may share it.
	Dir string
	// Size bounds what is kept, in bytes. What is being brought here comes on top.
	Size int64
	// Timeout bounds bringing an image here where the Request does not say; 0 for
	// no bound.
	Timeout time.Duration
	// PlainHTTP and SkipTLSVerify loosen how registries are talked to.
	PlainHTTP, SkipTLSVerify bool
	// Limits bound what a bundle may consist of.
	Limits manifests.Limits
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock
}

// DefaultDir is where content is kept unless somebody says otherwise: with the
// caches of the user, else with what is temporary.
func DefaultDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "chandlery-bundles")
}

// Request asks for the content of a bundle image.
type Request struct {
	// Image as the catalog gives it, by tag or by digest.
	Image string
	// Catalog is the CatalogSource that gives it; its namespace holds the pull
	// secrets.
	Catalog types.NamespacedName
	// Secrets is the spec.secrets of the CatalogSource.
	Secrets []string
	// Namespace is for whom; news carry it.
	Namespace string
	// Timeout bounds an attempt to bring the image here: 0 for no bound, negative
	// for the default.
	Timeout time.Duration
	// RetryInterval is the least time between an attempt that failed and the next.
	RetryInterval time.Duration
}

// key names requests that have the same answer.
func (r *Request) key() string {
	secrets := slices.Compact(slices.Sorted(slices.Values(r.Secrets)))
	return strings.Join(append([]string{r.Image, r.Catalog.Namespace, r.Catalog.Name}, secrets...), "\x00")
}

// State says where a request stands.
type State struct {
	// Ready says that the content is here, and Digest is that of its image.
	Ready  bool
	Digest string
	// Began is when the present attempt did, zero when there is none; Done of Total
	// bytes have been transferred.
	Began       time.Time
	Done, Total int64
	// Attempts counts those that failed in a row. Err is why the last one did, at
	// FailedAt. The next is made at RetryAt; when that is zero, only another
	// Request may have another answer.
	Attempts          int
	Err               error
	FailedAt, RetryAt time.Time
}

// Content is what a bundle image holds.
type Content struct {
	// Image is the reference by digest.
	Image  string
	Digest string
	// Objects are the manifests as JSON, that of the ClusterServiceVersion first.
	Objects []string
}

// Unpacker brings the content of bundle images here. It is safe for use by several
// goroutines.
type Unpacker struct {
	o     Options
	store image.Store
	// local finds what is kept; it asks no registry.
	local *image.Client
	news  *news
	// transfers and questions bound what is asked of registries.
	transfers, questions *slots
	// reading bounds how many bundles are decoded at a time.
	reading chan struct{}

	// ctx is the lifetime of what goes on in the background.
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

// New returns an Unpacker that keeps its content in a directory, which is made.
// What it does in the background goes on until the context of [Unpacker.Start]
// ends.
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
	// What is asked for before Start is begun before it as well.
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

// prepare makes the directory. What is found in it is trusted: it must be ours.
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

// NeedLeaderElection says that standbys unpack as well, when somebody asks.
func (u *Unpacker) NeedLeaderElection() bool { return false }

// Start tells the listeners of news until ctx ends, ends what goes on in the
// background, and waits for that.
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

// Listen gives a channel with an event for each namespace whose requests have
// changed their state; while content is being transferred, one a second at most.
// The object has no name. It has to be called before [Unpacker.Start], and the
// channel read until the context of that ends.
func (u *Unpacker) Listen() <-chan event.GenericEvent { return u.news.listen() }

// State says where a request stands, and begins what is due. It does not block.
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

// attempts is how often content is looked for that is gone again when it is to be
// read.
const attempts = 5

var (
	errGone    = errors.New("it was removed from the cache again and again; is --bundle-cache-size too small for it?")
	errStopped = errors.New("the unpacker has been stopped")
)

// Content returns the content of an image: from memory or disk, once the registry
// has let in whoever asks, else from the registry. It blocks meanwhile.
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

// ask says which digest whoever asks may have. When that is not known, running is
// closed once it may be.
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

// lost takes note that content that was here is not any more.
func (u *Unpacker) lost(r *Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.entry(r, u.o.Clock.Now()).grantedAt = time.Time{}
}

// begin begins an attempt.
func (u *Unpacker) begin(e *entry, r *Request, now time.Time) {
	if u.closed {
		return
	}
	running := make(chan struct{})
	e.running, e.began = running, now
	// It must not change while it is worked on.
	request := *r
	request.Secrets = slices.Clone(r.Secrets)
	u.work.Go(func() {
		defer close(running)
		u.settle(e, &request, u.obtain(u.ctx, &request, e))
	})
}
