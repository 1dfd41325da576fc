package catalogsource

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// Pauses after a registry did not answer.
const (
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
)

// asker asks registries what images stand for, each catalog's on its own, so that
// a registry that hangs keeps nobody waiting but its own catalogs.
type asker struct {
	reader  client.Reader
	hosting *Hosting
	clock   clock.PassiveClock
	// news tells of each answer.
	news chan event.GenericEvent

	mu      sync.Mutex
	entries map[types.NamespacedName]*asked
}

// asked is what is known of the image of one catalog.
type asked struct {
	answer   *Answer
	asking   bool
	failures int
}

func newAsker(reader client.Reader, hosting *Hosting, clk clock.PassiveClock) *asker {
	return &asker{
		reader: reader, hosting: hosting, clock: clk,
		news: make(chan event.GenericEvent), entries: map[types.NamespacedName]*asked{},
	}
}

// answer is what was said last of the image of a catalog, nil when nothing was;
// retry is when a question that failed is asked again.
func (a *asker) answer(key types.NamespacedName) (last *Answer, retry time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.entries[key]
	if entry == nil || entry.answer == nil {
		return nil, time.Time{}
	}
	return entry.answer, entry.answer.Time.Add(pause(entry.failures))
}

// pause doubles with each failure.
func pause(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(firstPause<<min(failures-1, 16), maxPause)
}

func (a *asker) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.entries, key)
}

// ask asks for the image of a catalog, unless that is under way. ctx is the
// lifetime of the process.
func (a *asker) ask(ctx context.Context, source *operatorsv1alpha1.CatalogSource) {
	key := client.ObjectKeyFromObject(source)
	a.mu.Lock()
	entry := a.entries[key]
	if entry == nil {
		entry = &asked{}
		a.entries[key] = entry
	}
	busy := entry.asking
	entry.asking = true
	a.mu.Unlock()
	if busy {
		return
	}
	go func() {
		answer := a.resolve(ctx, source)
		a.settle(ctx, key, entry, &answer)
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
	keychain, missing, err := a.keychain(ctx, source)
	if err != nil {
		answer.Err = err
		return answer
	}
	c, err := image.New(image.Options{
		Keychain: keychain, PlainHTTP: a.hosting.PlainHTTP, SkipTLSVerify: a.hosting.SkipTLSVerify,
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
	case missing != "":
		answer.Pin.CatalogDir = ""
		answer.Err = fmt.Errorf("%w; Secret %s", err, missing)
	default:
		answer.Pin.CatalogDir = ""
		answer.Err = err
	}
	return answer
}

// needsLabel says whether the labels of the image decide how it is run.
func needsLabel(source *operatorsv1alpha1.CatalogSource, h *Hosting) bool {
	return runsRegistry(source, h) && !isConfigMap(source) && extracted(source) == nil
}

// keychain has the credentials that the nodes pull with: those of spec.secrets,
// and those that somebody added to the ServiceAccount. missing says what is wrong
// with a Secret: the others may do.
func (a *asker) keychain(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (keychain authn.Keychain, missing string, err error) {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: source.Namespace, Name: accountName(source)}
	err = a.reader.Get(ctx, key, account)
	if client.IgnoreNotFound(err) != nil {
		return nil, "", fmt.Errorf("reading ServiceAccount %s: %w", key, err)
	}
	names := append([]string(nil), source.Spec.Secrets...)
	for _, ref := range account.ImagePullSecrets {
		names = append(names, ref.Name)
	}
	var all []authn.Keychain
	seen := map[string]bool{"": true}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		one, problem, err := a.secret(ctx, client.ObjectKey{Namespace: source.Namespace, Name: name})
		if err != nil {
			return nil, "", err
		}
		if problem != "" {
			missing = cmp.Or(missing, source.Namespace+"/"+name+" "+problem)
			continue
		}
		all = append(all, one)
	}
	return image.Keychains(all...), missing, nil
}

// secret reads a pull secret.
func (a *asker) secret(ctx context.Context, key client.ObjectKey) (keychain authn.Keychain, problem string, err error) {
	secret := &corev1.Secret{}
	if err := a.reader.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, "does not exist", nil
		}
		return nil, "", fmt.Errorf("reading Secret %s: %w", key, err)
	}
	var data []byte
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		data = secret.Data[corev1.DockerConfigJsonKey]
	case corev1.SecretTypeDockercfg:
		data = secret.Data[corev1.DockerConfigKey]
	default:
		return nil, fmt.Sprintf("is of type %s, not %s", secret.Type, corev1.SecretTypeDockerConfigJson), nil
	}
	keychain, err = image.ParsePullSecret(data)
	if err != nil {
		return nil, "is of no use: " + err.Error(), nil //nolint:nilerr // it is what is wrong with this Secret alone
	}
	return keychain, "", nil
}
