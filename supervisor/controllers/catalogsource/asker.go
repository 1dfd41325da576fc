package catalogsource

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/pullsecrets"
)

// First and maximum pause after a registry did not answer.
const (
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
)

// asker requests image digests from registries. Each catalog has its own request, so that a hanging
// registry delays only its own catalogs.
type asker struct {
	reader  client.Reader
	hosting *Hosting
	clock   clock.PassiveClock
	// news receives an event for each answer.
	news chan event.GenericEvent

	mu      sync.Mutex
	entries map[types.NamespacedName]*asked
	// stopped is true once the process ends. No request starts after that.
	stopped bool
}

// asked is the state of the requests for one catalog's image.
type asked struct {
	answer   *Answer
	asking   bool
	failures int
	// cancel cancels the current request.
	cancel context.CancelFunc
}

func newAsker(reader client.Reader, hosting *Hosting, clk clock.PassiveClock) *asker {
	return &asker{
		reader: reader, hosting: hosting, clock: clk,
		news: make(chan event.GenericEvent), entries: map[types.NamespacedName]*asked{},
	}
}

// Start cancels all requests when ctx ends. It implements manager.Runnable.
func (a *asker) Start(ctx context.Context) error {
	<-ctx.Done()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	for _, entry := range a.entries {
		entry.cancel()
	}
	return nil
}

// answer returns the last answer for the image of a catalog; nil if there is none. retry is when a
// failed request is due again.
func (a *asker) answer(key types.NamespacedName) (last *Answer, retry time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.entries[key]
	if entry == nil || entry.answer == nil {
		return nil, time.Time{}
	}
	return entry.answer, entry.answer.Time.Add(pause(entry.failures))
}

// pause returns the pause after a number of failures. It doubles with each failure.
func pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(firstPause<<min(failures-1, 16), maxPause)
}

func (a *asker) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.entries[key]; entry != nil {
		entry.cancel()
		delete(a.entries, key)
	}
}

// ask requests the digest of a catalog's image, unless a request is in progress. The request
// outlives ctx, the context of a reconciliation. It ends with the process or with the catalog.
func (a *asker) ask(ctx context.Context, source *operatorsv1alpha1.CatalogSource) {
	key := client.ObjectKeyFromObject(source)
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.entries[key]
	if entry == nil {
		entry = &asked{}
		a.entries[key] = entry
	}
	if entry.asking || a.stopped {
		return
	}
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	entry.asking, entry.cancel = true, cancel
	go func() {
		defer cancel()
		answer := a.resolve(asking, source)
		a.settle(asking, key, entry, &answer)
	}()
}

func (a *asker) settle(ctx context.Context, key types.NamespacedName, entry *asked, answer *Answer) {
	logger := log.FromContext(ctx)
	a.mu.Lock()
	same := entry.answer != nil && entry.answer.Pin == answer.Pin && (entry.answer.Err == nil) == (answer.Err == nil)
	entry.asking = false
	if answer.Err == nil || (entry.answer != nil && entry.answer.Pin.Image != answer.Pin.Image) {
		entry.failures = 0
	}
	if answer.Err != nil {
		entry.failures++
	}
	entry.answer = answer
	a.mu.Unlock()
	switch {
	case same:
	case answer.Err != nil:
		logger.Info("Registry did not say what the image is", "image", answer.Pin.Image, "error", answer.Err.Error())
	default:
		logger.Info("Registry said what the image is", "image", answer.Pin.Image, "digest", answer.Pin.Digest)
	}
	object := catalogs.NewObject()
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	select {
	case a.news <- event.GenericEvent{Object: object}:
	case <-ctx.Done():
	}
}

func (a *asker) resolve(ctx context.Context, source *operatorsv1alpha1.CatalogSource) Answer {
	answer := Answer{Pin: Pin{Image: source.Spec.Image}, Time: a.clock.Now(), Generation: source.Generation}
	// The credentials are those that nodes pull the image with.
	secrets, err := pullsecrets.Find(ctx, a.reader, source.Namespace, accountName(source), source.Spec.Secrets)
	if err != nil {
		answer.Err = err //nolint:wrapcheck // names the object
		return answer
	}
	c, err := image.New(image.Options{
		Keychain: secrets.Keychain(), PlainHTTP: a.hosting.PlainHTTP, SkipTLSVerify: a.hosting.SkipTLSVerify,
		Attempts: 2, UserAgent: "chandlery-supervisor",
	})
	if err != nil {
		answer.Err = fmt.Errorf("asking for image %q: %w", source.Spec.Image, err)
		return answer
	}
	digest, err := c.Resolve(ctx, source.Spec.Image)
	if err == nil && needsLabel(source, a.hosting) {
		var labels map[string]string
		labels, err = c.Labels(ctx, Pin{Image: source.Spec.Image, Digest: digest}.Reference())
		answer.Pin.CatalogDir = cmp.Or(labels[labelCatalogDir], defaultDir)
	}
	switch {
	case err == nil:
		answer.Pin.Digest = digest
	case secrets.Problem != "":
		answer.Pin.CatalogDir = ""
		answer.Err = fmt.Errorf("%w; Secret %s", err, secrets.Problem)
	default:
		answer.Pin.CatalogDir = ""
		answer.Err = err
	}
	return answer
}

// needsLabel reports whether the labels of the image determine how it runs.
func needsLabel(source *operatorsv1alpha1.CatalogSource, h *Hosting) bool {
	return runsRegistry(source, h) && !isConfigMap(source) && extracted(source) == nil
}
