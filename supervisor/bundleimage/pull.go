package bundleimage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/manifests"
	"github.com/chandlery/chandlery/supervisor/pullsecrets"
)

// limits are far above what real bundles need. They bound the disk space of each pull, for its layers and its
// content.
func limits() image.Limits {
	return image.Limits{
		MaxLayers: 128, MaxLayerBytes: 256 << 20, MaxUnpackedBytes: 1 << 30, MaxEntries: 1 << 20,
		MaxBytes: 64 << 20, MaxFileBytes: 64 << 20, MaxFiles: 4 << 10,
	}
}

// pull is a running pull of an image. All authorized requests share it.
type pull struct {
	// ended is closed when the pull has ended; err is its result.
	ended chan struct{}
	err   error

	// done of total bytes have been transferred. told is the time of the last notification.
	done, total int64
	told        time.Time
}

// wanted is an image to pull.
type wanted struct {
	*Request

	// pinned is the reference by digest.
	pinned, digest string
	keychain       authn.Keychain
}

// outcome is the result of an attempt.
type outcome struct {
	digest string
	err    error
}

// obtain asks the registry whether the caller may pull an image, and ensures that its content is cached.
func (u *Unpacker) obtain(ctx context.Context, r *Request, e *entry) outcome {
	ref, err := name.ParseReference(r.Image)
	if err != nil {
		return outcome{err: &image.Error{Reference: r.Image, Reason: image.ReasonReference, Err: err}}
	}
	secrets, err := pullsecrets.Find(ctx, u.o.Reader, r.Catalog.Namespace, r.Catalog.Name, r.Secrets)
	if err != nil {
		return outcome{err: fmt.Errorf("finding the credentials for image %q: %w", r.Image, err)}
	}
	client, err := u.client(r, secrets.Keychain(), nil)
	if err != nil {
		return outcome{err: err}
	}
	// The record is valid for the identity that the registry authorized.
	identity := secrets.Identity(ref.Context())
	digest, err := u.find(ctx, client, ref, r.Image)
	if err != nil {
		return u.unanswered(ref, r, identity, err, secrets.Problem)
	}
	w := &wanted{Request: r, pinned: ref.Context().Digest(digest).Name(), digest: digest, keychain: secrets.Keychain()}
	if err := u.bring(ctx, w, e); err != nil {
		return outcome{err: as(r.Image, complain(err, secrets.Problem))}
	}
	u.remember(ctx, w, identity)
	return outcome{digest: digest}
}

// find asks the registry for the digest of an image.
func (u *Unpacker) find(ctx context.Context, client *image.Client, ref name.Reference, reference string) (string, error) {
	release, err := u.questions.take(ctx, ref.Context().RegistryStr())
	if err != nil {
		return "", fmt.Errorf("waiting to ask for image %q: %w", reference, err)
	}
	defer release()
	return client.Find(ctx, reference) //nolint:wrapcheck // it names the image
}

// complain adds the unusable credentials to an error about authorization.
func complain(err error, problem string) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok || problem == "" || known.Reason != image.ReasonUnauthorized && known.Reason != image.ReasonNotFound {
		return err
	}
	return &image.Error{Reference: known.Reference, Reason: known.Reason, Err: fmt.Errorf("%w; Secret %s", known.Err, problem)}
}

// unanswered uses the previous answer of a registry that cannot be reached.
func (u *Unpacker) unanswered(ref name.Reference, r *Request, identity string, err error, problem string) outcome {
	digest, ok := u.store.Recall(grant(r.Image, identity))
	if !ok {
		return outcome{err: complain(err, problem)}
	}
	pinned := ref.Context().Digest(digest).Name()
	reason := image.ReasonOf(err)
	if reason == image.ReasonUnauthorized || reason == image.ReasonNotFound {
		u.store.Forget(grant(r.Image, identity))
		u.store.Forget(grant(pinned, identity))
	}
	if reason == image.ReasonUnreachable {
		objects, heldErr := u.held(pinned, digest)
		if heldErr == nil && objects != nil {
			return outcome{digest: digest}
		}
	}
	return outcome{err: complain(err, problem)}
}

// grant returns the key under which an authorization is stored.
func grant(reference, identity string) string { return reference + " " + identity }

// remember stores an authorization, for times when the registry cannot be reached.
func (u *Unpacker) remember(ctx context.Context, w *wanted, identity string) {
	for _, one := range []string{w.Image, w.pinned} {
		if err := u.store.Remember(grant(one, identity), w.digest); err != nil {
			log.FromContext(ctx).Error(err, "Cannot note that an image may be had", "image", one)
		}
	}
}

// client returns a client with the credentials and the bounds of a request.
func (u *Unpacker) client(r *Request, keychain authn.Keychain, progress func(done, total int64)) (*image.Client, error) {
	timeout := u.timeout(r)
	client, err := image.New(image.Options{
		Keychain: keychain, PlainHTTP: u.o.PlainHTTP, SkipTLSVerify: u.o.SkipTLSVerify,
		PullTimeout: timeout, ResolveTimeout: min(timeout, maxQuestion), Attempts: 3, Limits: limits(), Progress: progress, UserAgent: "chandlery-supervisor",
	})
	if err != nil {
		return nil, fmt.Errorf("asking for image %q: %w", r.Image, err)
	}
	return client, nil
}

// maxQuestion is the maximum time for a registry to resolve a reference.
const maxQuestion = 20 * time.Second

// timeout returns the maximum duration of an attempt.
func (u *Unpacker) timeout(r *Request) time.Duration {
	timeout := r.Timeout
	if timeout < 0 {
		timeout = u.o.Timeout
	}
	if timeout == 0 {
		return math.MaxInt64
	}
	return timeout
}

// bring ensures that the content of an image is cached. Concurrent requests for the same image share one pull.
func (u *Unpacker) bring(ctx context.Context, w *wanted, e *entry) error {
	patience := time.NewTimer(u.timeout(w.Request))
	defer patience.Stop()
	for {
		p, joined, err := u.join(w, e)
		if p == nil {
			return err
		}
		expired := patience.C
		if !joined {
			// The pull has its own timeout, and the wait for a slot does not count.
			expired = nil
		}
		select {
		case <-p.ended:
		case <-expired:
			return &image.Error{Reference: w.pinned, Reason: image.ReasonUnreachable, Err: fmt.Errorf("%w %s", image.ErrTimeout, u.timeout(w.Request))}
		case <-ctx.Done():
			return context.Cause(ctx) //nolint:wrapcheck // the caller ends as well
		}
		// The error of a shared pull may be due to the credentials of another request.
		known, isImage := errors.AsType[*image.Error](p.err)
		if p.err == nil || !joined || isImage && !known.MayPass() {
			return p.err
		}
	}
}

// join returns the pull of an image, and reports whether another request started it. It returns nil if there is
// nothing to pull.
func (u *Unpacker) join(w *wanted, e *entry) (p *pull, joined bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.broken[w.pinned]; err != nil {
		return nil, false, err
	}
	if u.memory.get(w.pinned) != nil {
		return nil, false, nil
	}
	p, joined = u.pulls[w.pinned]
	if !joined {
		p = &pull{ended: make(chan struct{})}
		u.pulls[w.pinned] = p
		u.work.Go(func() { u.run(p, w) })
	}
	e.pull = p
	return p, joined, nil
}

// run pulls an image.
func (u *Unpacker) run(p *pull, w *wanted) {
	err := u.pull(p, w)
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, ok := errors.AsType[*image.Error](err); ok && !known.MayPass() {
		if len(u.broken) >= maxBroken {
			clear(u.broken)
		}
		u.broken[w.pinned] = err
	}
	p.err = err
	delete(u.pulls, w.pinned)
	close(p.ended)
}

// maxBroken is the maximum number of unusable images that are remembered.
const maxBroken = 1000

func (u *Unpacker) pull(p *pull, w *wanted) error {
	objects, err := u.held(w.pinned, w.digest)
	if err != nil || objects != nil {
		return err
	}
	client, err := u.client(w.Request, w.keychain, func(done, total int64) { u.progress(p, done, total) })
	if err != nil {
		return err
	}
	release, err := u.transfers.take(u.ctx, host(w.pinned))
	if err != nil {
		return fmt.Errorf("waiting to pull image %q: %w", w.Image, err)
	}
	defer release()
	pullsRunning.Inc()
	defer pullsRunning.Dec()
	began := u.o.Clock.Now()
	kept, err := u.store.Get(u.ctx, client, w.pinned, w.digest, image.Bundle())
	if err == nil {
		_, err = u.decode(kept, w.pinned)
	}
	observe(err, u.o.Clock.Since(began))
	room := u.o.Size
	if errors.Is(err, syscall.ENOSPC) {
		room = 0
	}
	u.shrink(u.ctx, room)
	return err
}

// progress records the number of transferred bytes.
func (u *Unpacker) progress(p *pull, done, total int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p.done, p.total = done, total
	now := u.o.Clock.Now()
	if now.Sub(p.told) < time.Second {
		return
	}
	p.told = now
	for _, e := range u.entries {
		if e.running != nil && e.pull == p {
			u.news.add(e.namespaces)
		}
	}
}

// settle ends an attempt, records its outcome, and notifies its namespaces.
func (u *Unpacker) settle(e *entry, r *Request, result outcome) {
	logger := log.FromContext(u.ctx).WithName("unpack").WithValues("image", r.Image, "catalog", r.Catalog.String())
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.o.Clock.Now()
	e.running, e.pull = nil, nil
	same := e.digest == result.digest && result.err == nil
	switch {
	case u.ctx.Err() != nil:
		return
	case result.err != nil:
		e.fail(result.err, r.RetryInterval, now)
		logger.Info("Image cannot be unpacked", "error", result.err.Error(), "attempt", e.attempts, "retryAt", e.retryAt)
	default:
		e.succeed(result.digest, now)
		if pinned, err := pin(r.Image, result.digest); err == nil && pinned != r.Image {
			// A request that is authorized for a tag is authorized for its digest.
			byDigest := *r
			byDigest.Image = pinned
			u.entry(&byDigest, now).succeed(result.digest, now)
		}
		if !same {
			logger.Info("Image is unpacked", "digest", result.digest)
		}
	}
	u.news.add(e.namespaces)
	clear(e.namespaces)
}

// held returns the objects of an image from memory or disk; nil if they are in neither.
func (u *Unpacker) held(pinned, digest string) ([]string, error) {
	u.mu.Lock()
	objects := u.memory.get(pinned)
	u.mu.Unlock()
	if objects != nil {
		return objects, nil
	}
	kept, err := u.store.Open(u.local, pinned, digest, image.Bundle())
	if err != nil {
		return nil, nil //nolint:nilerr // what is not there, or damaged, is brought here again
	}
	return u.decode(kept, pinned)
}

// decode reads the manifests of an image, and keeps them in memory for a while.
func (u *Unpacker) decode(kept *image.Kept, pinned string) ([]string, error) {
	defer kept.Release()
	u.reading <- struct{}{}
	defer func() { <-u.reading }()
	root, err := os.OpenRoot(kept.Path)
	if err != nil {
		return nil, &image.Error{Reference: pinned, Reason: image.ReasonLocal, Err: fmt.Errorf("opening its manifests: %w", err)}
	}
	defer root.Close() //nolint:errcheck // nothing was written
	objects, err := manifests.Read(root.FS(), u.o.Limits)
	if err != nil {
		return nil, contentError(pinned, kept.Dir, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.memory.put(pinned, objects)
	return objects, nil
}

// contentError returns an error about the manifests of an image.
func contentError(pinned, dir string, err error) error {
	reason := image.ReasonInvalid
	for _, problem := range bundles.AsProblems(err) {
		if problem.Unreadable {
			reason = image.ReasonLocal
		}
	}
	return &image.Error{Reference: pinned, Reason: reason, Err: fmt.Errorf("its directory %s cannot be used as a bundle: %w", dir, err)}
}

// as returns an error that names the image by the requested reference.
func as(reference string, err error) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok {
		return err
	}
	return &image.Error{Reference: reference, Reason: known.Reason, Err: known.Err}
}

// pin returns a reference with a digest in place of the tag.
func pin(reference, digest string) (string, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return "", &image.Error{Reference: reference, Reason: image.ReasonReference, Err: err}
	}
	return ref.Context().Digest(digest).Name(), nil
}

// host returns the registry of a reference.
func host(reference string) string {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return ""
	}
	return ref.Context().RegistryStr()
}
