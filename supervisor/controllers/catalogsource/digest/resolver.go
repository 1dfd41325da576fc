package digest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/signature"
	"github.com/chandlery/chandlery/bundles/image/sources"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// DefaultCatalogDir is the catalog directory of an image without the label.
const DefaultCatalogDir = "/configs"

// labelCatalogDir is the image label with the directory of its file-based catalog.
const labelCatalogDir = "operators.operatorframework.io.index.configs.v1"

// backoff is the pauses after a registry did not answer.
var backoff = apply.Backoff{First: 5 * time.Second, Max: 5 * time.Minute}

// Options configures a Resolver.
type Options struct {
	// Reader reads ServiceAccounts and Secrets.
	Reader client.Reader
	// Clock provides the current time.
	Clock clock.PassiveClock
	// Sources are the cluster's settings for registries; nil for none.
	Sources *imagesources.Settings
	// Policies are the rules for signatures; nil for none.
	Policies *imagepolicy.Policies
	// PlainHTTP and SkipTLSVerify relax the transport security of queries.
	PlainHTTP, SkipTLSVerify bool
}

// Resolver queries registries for the digests of catalog images. Each catalog has its own query, so
// that a hanging registry delays only its own catalogs.
type Resolver struct {
	options Options
	// events receives an event for each result.
	events chan event.GenericEvent

	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
	// stopped is true once the process ends. No query starts after that.
	stopped bool
}

// entry is the state of the queries for one catalog's image.
type entry struct {
	last     *result
	querying bool
	failures int
	// cancel cancels the current query.
	cancel context.CancelFunc
}

// NewResolver returns a Resolver without results.
func NewResolver(o Options) *Resolver {
	if o.Sources == nil {
		o.Sources = imagesources.New(sources.Paths{}, nil)
	}
	return &Resolver{options: o, events: make(chan event.GenericEvent), entries: map[types.NamespacedName]*entry{}}
}

// Events returns the channel that receives an event with the CatalogSource for each result.
func (r *Resolver) Events() <-chan event.GenericEvent { return r.events }

// Start cancels all queries when ctx ends. It implements manager.Runnable.
func (r *Resolver) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, e := range r.entries {
		e.cancel()
	}
	return nil
}

// Forget cancels the query for a catalog and drops its result.
func (r *Resolver) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil {
		e.cancel()
		delete(r.entries, key)
	}
}

// Request is a request for the image of a catalog.
type Request struct {
	Source *operatorsv1alpha1.CatalogSource
	// Account is the ServiceAccount whose pull secrets apply too.
	Account string
	// ReadLabel is true if the catalog directory in the label of the image is required.
	ReadLabel bool
	// Running is the image that runs; nil if none does.
	Running *Image
	// Unpulled is since when a node has been unable to pull the running image; zero if none is.
	Unpulled time.Time
}

// Decision is the image that a catalog runs.
type Decision struct {
	Image Image
	// Ready is false if nothing can run before the registry answers, or if the spec is invalid.
	Ready bool
	// Invalid is true if spec.image is not an image reference, and Refused if a rule for signatures refuses the image.
	Invalid, Refused bool
	// Polled is when the registry was last queried; zero if it was not.
	Polled time.Time
	// Next is the pause until the next query; 0 if none is scheduled.
	Next time.Duration
	// Err is the error of the spec or of the last query, with the consequence and the remedy.
	Err error
}

// Decide returns the image that a catalog runs. It starts a query of the registry if one is due.
func (r *Resolver) Decide(ctx context.Context, req *Request) Decision {
	wanted, running := req.Source.Spec.Image, req.Running
	if err := checkSpec(wanted, running); err != nil {
		return Decision{Invalid: true, Err: err}
	}
	if req.ReadLabel && running != nil && running.CatalogDir == "" {
		running = nil
	}
	rules, err := r.rules(ctx, req.Source)
	if guarded := err != nil || rules.Any(); !req.ReadLabel && image.IsDigest(wanted) && !guarded {
		return Decision{Image: Image{Spec: wanted}, Ready: true}
	}
	now := r.options.Clock.Now()
	last, retry := r.last(client.ObjectKeyFromObject(req.Source))
	var d Decision
	if due, next := isDue(req.Source, running, last, times{now: now, retry: retry, unpulled: req.Unpulled, policy: rules.Version}); due {
		r.query(ctx, &Request{Source: req.Source.DeepCopy(), Account: req.Account, ReadLabel: req.ReadLabel})
	} else if !next.IsZero() {
		d.Next = next.Sub(now)
	}
	d.Image, d.Ready = choose(wanted, running, last)
	d.add(last, wanted, running)
	return d
}

// add adds the result of the last query, if it was for the wanted image.
func (d *Decision) add(last *result, wanted string, running *Image) {
	if last == nil || last.image.Spec != wanted {
		return
	}
	d.Polled = last.time
	if last.err != nil {
		d.Err = fmt.Errorf("%w; %s", last.err, last.consequence(d.Image, running))
		d.Refused = image.ReasonOf(last.err) == image.ReasonPolicyRefused
	}
}

// rules returns the rules for signatures of the image of a catalog.
func (r *Resolver) rules(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (imagepolicy.Rules, error) {
	own := types.NamespacedName{Namespace: source.Namespace, Name: source.Annotations[api.AnnotationImageVerify]}
	query := imagepolicy.Query{Image: source.Spec.Image, Use: signature.Catalogs, Own: own}
	return r.options.Policies.Rules(ctx, r.options.Reader, query) //nolint:wrapcheck // names the image
}

// last returns the last result for the image of a catalog; nil if there is none. retry is when a
// failed query is due again.
func (r *Resolver) last(key types.NamespacedName) (last *result, retry time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil || e.last == nil {
		return nil, time.Time{}
	}
	return e.last, e.last.time.Add(backoff.After(e.failures))
}

// query queries the registry, unless a query is in progress. The query outlives ctx, the context of
// a reconciliation. It ends with the process or with the catalog.
func (r *Resolver) query(ctx context.Context, req *Request) {
	key := client.ObjectKeyFromObject(req.Source)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		e = &entry{}
		r.entries[key] = e
	}
	if e.querying || r.stopped {
		return
	}
	querying, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.querying, e.cancel = true, cancel
	go func() {
		defer cancel()
		next := r.resolve(querying, req)
		r.record(querying, key, e, &next)
	}()
}

// record replaces the result of an entry and sends an event.
func (r *Resolver) record(ctx context.Context, key types.NamespacedName, e *entry, next *result) {
	logger := log.FromContext(ctx)
	r.mu.Lock()
	same := e.last != nil && e.last.image == next.image && (e.last.err == nil) == (next.err == nil)
	e.querying = false
	if next.err == nil || (e.last != nil && e.last.image.Spec != next.image.Spec) {
		e.failures = 0
	}
	if next.err != nil {
		e.failures++
	}
	e.last = next
	r.mu.Unlock()
	switch {
	case same:
	case next.err != nil:
		logger.Info("Registry did not resolve image", "image", next.image.Spec, "error", next.err.Error())
	default:
		logger.Info("Registry resolved image", "image", next.image.Spec, "digest", next.image.Digest)
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	select {
	case r.events <- event.GenericEvent{Object: object}:
	case <-ctx.Done():
	}
}

// resolve queries the registry with the credentials that nodes pull the image with.
func (r *Resolver) resolve(ctx context.Context, req *Request) result {
	source := req.Source
	failed := result{image: Image{Spec: source.Spec.Image}, time: r.options.Clock.Now(), generation: source.Generation, guarded: true}
	rules, err := r.rules(ctx, source)
	failed.policy = rules.Version
	if err == nil {
		failed.guarded = rules.Any()
		err = rules.Forbidden(source.Spec.Image)
	}
	if err != nil {
		failed.err = err //nolint:wrapcheck // names the image
		return failed
	}
	access, err := r.options.Sources.Access(ctx, r.options.Reader, &imagesources.Catalog{
		NamespacedName: client.ObjectKeyFromObject(source), Account: req.Account, Secrets: source.Spec.Secrets,
		Config: source.Annotations[api.AnnotationImageConfig],
	}, source.Spec.Image)
	if err != nil {
		failed.err = err //nolint:wrapcheck // names the object
		return failed
	}
	c, err := image.New(image.Options{
		Keychain: access.Keychain, Sources: access.Sources, PlainHTTP: r.options.PlainHTTP, SkipTLSVerify: r.options.SkipTLSVerify,
		Attempts: 2, UserAgent: "chandlery-supervisor",
	})
	if err != nil {
		failed.err = fmt.Errorf("asking for image %q: %w", source.Spec.Image, err)
		return failed
	}
	resolved := failed
	if resolved.image, err = lookUp(ctx, c, req); err == nil {
		resolved.verified, err = r.verify(ctx, c, req, &resolved.image, rules)
	}
	if rules.ByTag() {
		resolved.image.Digest = ""
	}
	if err == nil {
		return resolved
	}
	failed.err = err
	if access.SecretProblem != "" {
		failed.err = fmt.Errorf("%w; Secret %s", err, access.SecretProblem)
	}
	return failed
}

// verify checks that an image meets the rules for signatures, and returns what identifies both. It does not ask again for
// what it has found before.
func (r *Resolver) verify(ctx context.Context, c *image.Client, req *Request, found *Image, rules imagepolicy.Rules) (string, error) {
	if !rules.Any() {
		return "", nil
	}
	verified := rules.ID() + " " + found.Digest
	if last, _ := r.last(client.ObjectKeyFromObject(req.Source)); last != nil && last.verified == verified {
		return verified, nil
	}
	return verified, rules.Check(ctx, c, found.Spec, found.Digest) //nolint:wrapcheck // names the image
}

// lookUp returns the image with its digest and, if required, the catalog directory in its label.
func lookUp(ctx context.Context, c *image.Client, req *Request) (Image, error) {
	found := Image{Spec: req.Source.Spec.Image}
	var err error
	if found.Digest, err = c.Resolve(ctx, found.Spec); err != nil || !req.ReadLabel {
		return found, err
	}
	labels, err := c.Labels(ctx, found.Reference())
	found.CatalogDir = cmp.Or(labels[labelCatalogDir], DefaultCatalogDir)
	return found, err
}
