package bundleimage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/internal/keylimit"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// maxBroken is the maximum number of unusable images that are remembered.
const maxBroken = 1000

// puller pulls authorized images. Concurrent requests for the same image share one pull.
type puller struct {
	o *Options
	// ctx is the lifetime of pulls.
	ctx      context.Context
	work     sync.WaitGroup
	contents *contentStore
	// limiter limits the pulls from each registry, and the others those for each catalog and each namespace of catalogs.
	limiter, catalogs, namespaces *keylimit.Limiter
	// progress records the number of transferred bytes.
	progress func(p *pull, done, total int64)

	mu    sync.Mutex
	pulls map[contentKey]*pull
	// broken holds the errors of unusable images.
	broken map[contentKey]error
}

// pull is a running pull of an image. All authorized requests share it.
type pull struct {
	// ended is closed when the pull has ended; err is its result.
	ended chan struct{}
	err   error

	// done of total bytes have been transferred. reported is the time of the last notification. The
	// lock of the Cache guards them.
	done, total int64
	reported    time.Time
}

// ensure ensures that the content of an image is cached. It calls waiting with each pull that it waits for.
func (pl *puller) ensure(ctx context.Context, a *authorization, waiting func(*pull)) error {
	timer := time.NewTimer(pl.o.timeout(a.Request))
	defer timer.Stop()
	for {
		p, joined, err := pl.join(a, waiting)
		if p == nil {
			return err
		}
		expired := timer.C
		if !joined {
			// The pull has its own timeout, and the wait for a slot does not count.
			expired = nil
		}
		select {
		case <-p.ended:
		case <-expired:
			return &image.Error{Reference: a.resolved, Reason: image.ReasonUnreachable, Err: fmt.Errorf("%w %s", image.ErrTimeout, pl.o.timeout(a.Request))}
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
func (pl *puller) join(a *authorization, waiting func(*pull)) (p *pull, joined bool, err error) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if err := pl.broken[a.key()]; err != nil {
		return nil, false, err
	}
	if pl.contents.inMemory(a.key()) != nil {
		return nil, false, nil
	}
	p, joined = pl.pulls[a.key()]
	if !joined {
		p = &pull{ended: make(chan struct{})}
		pl.pulls[a.key()] = p
	}
	waiting(p)
	if !joined {
		pl.work.Go(func() { pl.run(p, a) })
	}
	return p, joined, nil
}

// run pulls an image.
func (pl *puller) run(p *pull, a *authorization) {
	err := pl.pull(p, a)
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if known, ok := errors.AsType[*image.Error](err); ok && !known.MayPass() {
		if len(pl.broken) >= maxBroken {
			clear(pl.broken)
		}
		pl.broken[a.key()] = err
	}
	p.err = err
	delete(pl.pulls, a.key())
	close(p.ended)
}

func (pl *puller) pull(p *pull, a *authorization) error {
	objects, err := pl.contents.get(a.key(), a.digest)
	if err != nil || objects != nil {
		return err
	}
	client, err := pl.o.client(a.Request, a.access, func(done, total int64) { pl.progress(p, done, total) })
	if err != nil {
		return err
	}
	release, err := pl.acquire(a)
	if err != nil {
		return fmt.Errorf("waiting to pull image %q: %w", a.Image, err)
	}
	defer release()
	pullsRunning.Inc()
	defer pullsRunning.Dec()
	began := pl.o.Clock.Now()
	kept, err := pl.contents.of(a.key()).Get(pl.ctx, client, a.resolved, a.digest, image.Bundle())
	if err == nil {
		_, err = pl.contents.decode(kept, a.key())
	}
	recordPull(err, pl.o.Clock.Since(began))
	room := pl.o.Size
	if errors.Is(err, syscall.ENOSPC) {
		room = 0
	}
	pl.contents.shrink(pl.ctx, room)
	return err
}

// acquire waits until the catalog, its namespace and the registry of an image permit another pull. It returns a function that
// ends the pull.
func (pl *puller) acquire(a *authorization) (release func(), err error) {
	var releases []func()
	release = func() {
		for _, one := range slices.Backward(releases) {
			one()
		}
	}
	for _, limit := range []struct {
		limiter *keylimit.Limiter
		key     string
	}{{pl.catalogs, a.Catalog.String()}, {pl.namespaces, a.Catalog.Namespace}, {pl.limiter, host(a.resolved)}} {
		one, err := limit.limiter.Acquire(pl.ctx, limit.key)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, one)
	}
	return release, nil
}

// client returns a client with the credentials and the bounds of a request.
func (o *Options) client(r *Request, access *imagesources.Access, progress func(done, total int64)) (*image.Client, error) {
	timeout := o.timeout(r)
	client, err := image.New(image.Options{
		Keychain: access.Keychain, Sources: access.Sources, PlainHTTP: o.PlainHTTP, SkipTLSVerify: o.SkipTLSVerify,
		PullTimeout: timeout, ResolveTimeout: min(timeout, maxQuery), Attempts: 3, Limits: image.BundleLimits(),
		Progress: progress, UserAgent: "chandlery-supervisor",
	})
	if err != nil {
		return nil, fmt.Errorf("asking for image %q: %w", r.Image, err)
	}
	return client, nil
}

// timeout returns the maximum duration of an attempt.
func (o *Options) timeout(r *Request) time.Duration {
	timeout := r.Timeout
	if timeout < 0 {
		timeout = o.Timeout
	}
	if timeout == 0 {
		return math.MaxInt64
	}
	return timeout
}

// withReference returns an error that names the image by the requested reference.
func withReference(reference string, err error) error {
	known, ok := errors.AsType[*image.Error](err)
	if !ok {
		return err
	}
	return &image.Error{Reference: reference, Reason: known.Reason, Err: known.Err}
}

// withDigest returns a reference with a digest in place of the tag.
func withDigest(reference, digest string) (string, error) {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return "", &image.Error{Reference: reference, Reason: image.ReasonReference, Err: err}
	}
	return ref.Context().Digest(digest).Name(), nil
}

// host returns the registry of a reference.
func host(reference string) string {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return ""
	}
	return ref.Context().RegistryStr()
}
