package nodepull

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/bundlelog"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
)

const (
	// pollInterval is the time between two looks at a pod.
	pollInterval = time.Second
	// startGrace is added to the deadline of a pod, which begins on the node, not when the pod is created.
	startGrace = 10 * time.Second
	// logAttempts is how often the log of a pod that has ended is read.
	logAttempts = 3
	// deleteTimeout bounds a deletion.
	deleteTimeout = 5 * time.Second
	// sweepInterval is the time between two looks for pods of processes that were killed.
	sweepInterval = time.Minute
	// maxAge is the age at which a pod has ended and its result is of no more use.
	maxAge = maxDeadline + time.Minute
)

var errUnusable = errors.New("its manifests cannot be used")

// Request is an image to pull.
type Request struct {
	// Image is the reference from the catalog, by tag or by digest.
	Image string
	// Catalog is the CatalogSource. The pod is in its namespace. Secrets are its pull secrets.
	Catalog types.NamespacedName
	Secrets []string
	// Timeout is the maximum duration; at most five minutes count.
	Timeout time.Duration
	// Started is called with the pod when it exists.
	Started func(pod types.NamespacedName)
}

// Result is an image that a node has pulled.
type Result struct {
	// Catalog is the UID of the CatalogSource.
	Catalog types.UID
	// Digest is the digest of the image.
	Digest string
	// Node is the node.
	Node string
	// Archive has the manifests, for [image.Store.Import].
	Archive []byte
}

// Logs reads the log of the first container of a pod, but no more than some bytes.
type Logs func(ctx context.Context, pod types.NamespacedName, container string, limit int64) (io.ReadCloser, error)

// Options configure a [Puller].
type Options struct {
	Settings

	// Client writes pods, and lists them from a cache. Reader reads at the API server.
	Client client.Client
	Reader client.Reader
	Logs   Logs
	// Clock returns the time.
	Clock clock.PassiveClock
}

// Puller lets nodes pull images. It is safe for concurrent use. It works only in the process that leads.
type Puller struct {
	o Options
	// leads is closed when the process begins to lead.
	leads chan struct{}
	// reading limits how many logs are in memory.
	reading chan struct{}

	mu sync.Mutex
	// inUse are the pods of running pulls.
	inUse map[types.NamespacedName]bool
}

// New returns a Puller, which waits for Start.
func New(o Options) *Puller {
	return &Puller{o: o, leads: make(chan struct{}), reading: make(chan struct{}, 1), inUse: map[types.NamespacedName]bool{}}
}

// Pull lets a node pull an image. It deletes the pod at the end, also when ctx ends. If a process was killed, Pull uses
// the pod that it has left. The error is an [*image.Error].
func (p *Puller) Pull(ctx context.Context, r Request) (*Result, error) {
	deadline := min(r.Timeout, maxDeadline)
	ctx, cancel := context.WithTimeoutCause(ctx, deadline+startGrace, image.ErrTimeout)
	defer cancel()
	select {
	case <-p.leads:
	case <-ctx.Done():
		return nil, failed(r.Image, "waiting to lead: %w", context.Cause(ctx))
	}
	found, err := p.readCatalog(ctx, &r)
	if err != nil {
		return nil, err
	}
	wanted, err := desiredPod(r.Image, found, p.o.Settings, deadline)
	if err != nil {
		return nil, err
	}
	key := client.ObjectKeyFromObject(wanted)
	p.use(key, true)
	defer p.use(key, false)
	pod, err := p.ensure(ctx, &r, wanted)
	if err != nil {
		return nil, err
	}
	defer p.remove(ctx, pod)
	r.Started(key)
	return p.await(ctx, &r, pod)
}

// use records whether a pull uses a pod.
func (p *Puller) use(pod types.NamespacedName, used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if used {
		p.inUse[pod] = true
	} else {
		delete(p.inUse, pod)
	}
}

// ensure creates a pod, or returns the one that a killed process has left.
func (p *Puller) ensure(ctx context.Context, r *Request, wanted *corev1.Pod) (*corev1.Pod, error) {
	pod, key := wanted.DeepCopy(), client.ObjectKeyFromObject(wanted)
	err := apply.Create(ctx, p.o.Client, pod)
	if apierrors.IsAlreadyExists(err) {
		pod = &corev1.Pod{}
		err = p.o.Reader.Get(ctx, key, pod)
	}
	if err != nil {
		return nil, failed(r.Image, "creating pod %s: %w", key, err)
	}
	if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != wanted.OwnerReferences[0].UID {
		return nil, failed(r.Image, "pod %s exists and does not belong to CatalogSource %s; delete it", key, r.Catalog)
	}
	return pod, nil
}

// await waits until a pod has printed the manifests, and reads them.
func (p *Puller) await(ctx context.Context, r *Request, pod *corev1.Pod) (*Result, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	key, uid := client.ObjectKeyFromObject(pod), pod.UID
	fail := func(format string, args ...any) error {
		return failed(r.Image, "pod "+key.String()+" "+format, args...)
	}
	for attempt := 0; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fail("has not ended: %w: %s", context.Cause(ctx), pending(pod))
		}
		next := &corev1.Pod{}
		if err := p.o.Reader.Get(ctx, key, next); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, fail("was deleted")
			}
			continue
		}
		if pod = next; pod.UID != uid {
			return nil, fail("was replaced")
		}
		result := outcomeOf(pod, r.Image)
		if result.err != nil {
			return nil, result.err
		}
		if !result.ended {
			continue
		}
		archive, err := p.read(ctx, key)
		if err == nil {
			return &Result{Catalog: pod.OwnerReferences[0].UID, Digest: result.digest, Node: pod.Spec.NodeName, Archive: archive}, nil
		}
		attempt++
		if attempt == logAttempts {
			return nil, fail("has ended, but its log cannot be read: %w", err)
		}
	}
}

// read reads the manifests from the log of a pod.
func (p *Puller) read(ctx context.Context, pod types.NamespacedName) ([]byte, error) {
	select {
	case p.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-p.reading }()
	stream, err := p.o.Logs(ctx, pod, containerBundle, bundlelog.MaxLogBytes+1)
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // nothing was written
	return bundlelog.Read(stream)
}

// remove deletes a pod at once, even if its node is lost. Sweeping repeats a failed deletion.
func (p *Puller) remove(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
	defer cancel()
	err := apply.DeleteIf(ctx, p.o.Client, pod, apply.SameUID(pod), client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		log.FromContext(ctx).Error(err, "Deleting the pod of an image failed", "pod", client.ObjectKeyFromObject(pod).String())
	}
}

// NeedLeaderElection returns true, so that Start runs on the leader only.
func (*Puller) NeedLeaderElection() bool { return true }

// Start permits pulls, and deletes what killed processes have left, until ctx ends.
func (p *Puller) Start(ctx context.Context) error {
	close(p.leads)
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		p.sweep(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sweep deletes the pods that no pull needs.
func (p *Puller) sweep(ctx context.Context) {
	var pods corev1.PodList
	if err := p.o.Client.List(ctx, &pods, client.MatchingLabels{api.LabelManaged: "true", api.LabelImagePull: "true"}); err != nil {
		log.FromContext(ctx).Error(err, "Listing pods of images failed")
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		p.mu.Lock()
		used := p.inUse[client.ObjectKeyFromObject(pod)]
		p.mu.Unlock()
		if !used && isOld(pod, p.o.Clock.Now()) {
			p.remove(ctx, pod)
		}
	}
}

// isOld reports whether no process can need the result of a pod.
func isOld(pod *corev1.Pod, now time.Time) bool { return now.Sub(pod.CreationTimestamp.Time) > maxAge }
