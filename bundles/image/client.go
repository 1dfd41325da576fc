package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Options configure a [Client].
type Options struct {
	// Keychain provides the credentials; nil for none.
	Keychain authn.Keychain
	// Platform is the platform of the image to pull, as os/architecture[/variant]. Empty selects
	// linux on the architecture of this program, else the first platform of the image. That suits
	// images whose content is the same for all platforms.
	Platform string
	// PlainHTTP allows connections to registries without TLS.
	PlainHTTP bool
	// SkipTLSVerify accepts any certificate.
	SkipTLSVerify bool
	// Sources are the sources of images; zero if each image comes from the registry in its name.
	Sources Sources
	// ResolveTimeout bounds the resolution of a reference, with all attempts; 20 s by default.
	ResolveTimeout time.Duration
	// PullTimeout bounds a pull, with all attempts; 10 minutes by default.
	PullTimeout time.Duration
	// Attempts is the number of attempts of an operation that may succeed later; 4 by default.
	Attempts int
	// Backoff is the pause after the first attempt, 500 ms by default. Each later pause is twice as long.
	Backoff time.Duration
	// Limits bound the size and content of an image.
	Limits Limits
	// Progress is called with the number of transferred bytes and the total; nil for nothing.
	// Several goroutines call it, one at a time.
	Progress func(done, total int64)
	// UserAgent is the user agent of the program.
	UserAgent string
}

// Client pulls images from registries. It is safe for concurrent use. It keeps no idle connections.
type Client struct {
	options  Options
	platform *v1.Platform
	stall    time.Duration
}

// New returns a client.
func New(options Options) (*Client, error) {
	o := options
	o.ResolveTimeout = cmp.Or(o.ResolveTimeout, 20*time.Second)
	o.PullTimeout = cmp.Or(o.PullTimeout, 10*time.Minute)
	o.Attempts = cmp.Or(o.Attempts, 4)
	o.Backoff = cmp.Or(o.Backoff, 500*time.Millisecond)
	o.UserAgent = cmp.Or(o.UserAgent, "chandlery")
	o.Limits = o.Limits.withDefaults()
	if o.Keychain == nil {
		o.Keychain = authn.NewMultiKeychain()
	}
	c := &Client{options: o, stall: stallTimeout}
	if o.Platform != "" {
		platform, err := v1.ParsePlatform(o.Platform)
		if err != nil || platform.OS == "" || platform.Architecture == "" {
			return nil, fmt.Errorf("%w, found %q", errPlatform, o.Platform)
		}
		c.platform = platform
	}
	return c, nil
}

var errPlatform = errors.New("the platform must be os/architecture, as linux/amd64")

// IsDigest reports whether a reference has a digest and so always has the same content.
func IsDigest(reference string) bool {
	ref, err := ParseReference(reference)
	if err != nil {
		return false
	}
	_, ok := ref.(name.Digest)
	return ok
}

// IsReference reports whether a text is a reference to an image.
func IsReference(text string) bool {
	_, err := ParseReference(text)
	return err == nil
}

// parse parses a reference.
func (c *Client) parse(reference string) (name.Reference, error) {
	var options []name.Option
	if c.options.PlainHTTP {
		options = append(options, name.Insecure)
	}
	ref, err := ParseReference(reference, options...)
	if err != nil {
		return nil, &failure{ReasonReference, fmt.Errorf("is no reference to an image: %w", err)}
	}
	return ref, nil
}

// Reference parses the reference of an image. The error is an [*Error].
func (c *Client) Reference(text string) (name.Reference, error) {
	ref, err := c.parse(text)
	return ref, describe(text, err)
}

// Remote returns options for go-containerregistry's package remote that match the client's, for the
// registry in a reference. If several credentials fit, they use the first.
func (c *Client) Remote(ctx context.Context, ref name.Reference) ([]remote.Option, error) {
	endpoint, err := c.endpoint(ref)
	if err != nil {
		return nil, err
	}
	return c.remote(ctx, ref, endpoint)
}

func (c *Client) remote(ctx context.Context, ref name.Reference, endpoint *Endpoint) ([]remote.Option, error) {
	base, err := newTransport(&c.options, endpoint)
	if err != nil {
		return nil, fmt.Errorf("trusting certificates: %w", err)
	}
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(adapted(base, ref, endpoint)),
		remote.WithAuthFromKeychain(c.options.Keychain),
		remote.WithUserAgent(c.options.UserAgent),
	}, nil
}

// Describe returns an error from package remote, called with the options of [Client.Remote], as an
// [*Error]. If the registry denies access, the error names the credentials without their values.
func (c *Client) Describe(ref name.Reference, err error) error {
	if err == nil {
		return nil
	}
	err = plain(err)
	if !denied(err) || c.options.Keychain == nil {
		return describe(ref.String(), err)
	}
	// If several credentials fit, the options use the first one.
	if all, found := candidates(c.options.Keychain, ref.Context()); found == nil {
		err = fail(classify(err), "%w; tried %s", err, all[0].name)
	}
	return describe(ref.String(), err)
}

// session is one operation on one repository.
type session struct {
	client *Client
	source *Source
	ref    name.Reference
	guard  *guard
	puller *remote.Puller
	// options are those of the puller.
	options []remote.Option
	// hasNext is set if another source follows, which is better asked than this one twice.
	hasNext bool
	// admitted is set if the registry has answered with content.
	admitted bool
}

// operation is work in a session. It may run several times, with a session for each attempt.
type operation func(context.Context, *session) error

// within runs an operation on the sources of a reference, one after the other, with a timeout for all, and
// describes its error.
func (c *Client) within(ctx context.Context, reference string, timeout time.Duration, run operation) error {
	route, err := c.Route(reference)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w %s", ErrTimeout, timeout))
	defer cancel()
	err = (&walk{c, reference, run}).along(ctx, route)
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = fail(ReasonUnreachable, "%w: %w", context.Cause(ctx), err)
	}
	return describe(reference, err)
}

// run runs an operation with a credential.
func (s *session) run(ctx context.Context, auth authn.Authenticator, run operation) error {
	s.options = []remote.Option{
		remote.WithTransport(s.guard), remote.WithAuth(auth), remote.WithUserAgent(s.client.options.UserAgent),
		// The retry function counts attempts, because its pauses end with the context.
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	}
	puller, err := remote.NewPuller(s.options...)
	if err != nil {
		return err //nolint:wrapcheck // the caller describes it
	}
	s.puller = puller
	return run(ctx, s)
}

// newGuard returns the transport of a client to a source.
func newGuard(c *Client, base http.RoundTripper, source *Source) *guard {
	return &guard{
		inner:     adapted(base, source.Reference, &source.Endpoint),
		plainHTTP: c.options.PlainHTTP || source.PlainHTTP, maxBytes: c.options.Limits.MaxManifestBytes, stall: c.stall,
	}
}

// denied reports whether other credentials may find the image. Many registries answer "not found"
// to users without permission.
func denied(err error) bool {
	reason := classify(err)
	return reason == ReasonUnauthorized || reason == ReasonNotFound
}

// ErrTimeout is wrapped by the error of an operation that exceeded its timeout.
var ErrTimeout = errors.New("took longer than")

// retry runs a function until it succeeds, fails permanently, or the attempts are used up.
func (s *session) retry(ctx context.Context, what string, run func() error) error {
	pause, attempts := s.client.options.Backoff, s.client.options.Attempts
	if s.hasNext && !s.admitted {
		attempts = 1
	}
	for attempt := 1; ; attempt++ {
		err := s.guard.cause(run())
		if err == nil {
			return nil
		}
		if attempt >= attempts || ctx.Err() != nil || !transient(err) {
			return fmt.Errorf("%s: %w", what, plain(err))
		}
		// Clients that failed at the same time must not retry at the same time.
		jittered := pause + rand.N(pause/2+1) //nolint:gosec // nothing depends on it being hard to guess
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, plain(err))
		case <-time.After(jittered):
		}
		pause *= 2
	}
}

// Resolve returns the digest that a reference currently resolves to. For a reference with a digest
// it sends no request. The error is an [*Error].
func (c *Client) Resolve(ctx context.Context, reference string) (string, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return "", describe(reference, err)
	}
	if digest, ok := ref.(name.Digest); ok {
		return digest.DigestStr(), nil
	}
	return c.Find(ctx, reference)
}

// Labels returns the labels of an image from the registry. The error is an [*Error].
func (c *Client) Labels(ctx context.Context, reference string) (map[string]string, error) {
	var labels map[string]string
	err := c.within(ctx, reference, c.options.ResolveTimeout, func(ctx context.Context, s *session) error {
		m, err := s.manifest(ctx, s.ref)
		if err != nil {
			return err
		}
		labels, err = s.labels(ctx, s.ref, m)
		return err
	})
	return labels, err
}

// Find requests the digest of a reference from the registry, even if the reference has a digest.
// Success shows that the image exists and that the credentials suffice. The error is an [*Error].
func (c *Client) Find(ctx context.Context, reference string) (string, error) {
	var digest string
	err := c.within(ctx, reference, c.options.ResolveTimeout, func(ctx context.Context, s *session) error {
		var err error
		digest, err = s.find(ctx)
		return err
	})
	return digest, err
}

func (s *session) resolve(ctx context.Context) (string, error) {
	if digest, ok := s.ref.(name.Digest); ok {
		return digest.DigestStr(), nil
	}
	return s.find(ctx)
}

func (s *session) find(ctx context.Context) (string, error) {
	var digest string
	err := s.retry(ctx, "asking for the digest", func() error {
		found, err := s.puller.Head(ctx, s.ref)
		if err == nil {
			s.admitted = true
			digest = found.Digest.String()
			return nil
		}
		answer, answered := errors.AsType[*transport.Error](err)
		if answered && answer.StatusCode != http.StatusMethodNotAllowed || ctx.Err() != nil {
			return err
		}
		// Some registries answer HEAD requests without a digest.
		manifest, getErr := s.puller.Get(ctx, s.ref)
		if getErr != nil {
			return getErr
		}
		s.admitted = true
		digest = manifest.Digest.String()
		return nil
	})
	return digest, err
}
