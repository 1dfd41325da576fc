package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Router finds the sources of images. It must be safe for concurrent use.
type Router interface {
	// Route returns the sources of an image. The error says why they are unknown.
	Route(image name.Reference) (Route, error)
}

// Sources are the sources of images.
type Sources struct {
	// Router finds them; nil if each image comes from the registry in its name.
	Router Router
	// Asked is called after each source that a rule of the Router names; nil for nothing.
	Asked func(Attempt)
	// Proxy returns the proxy for a request, nil for none. If it is nil, the environment's proxies are used.
	Proxy func(*http.Request) (*url.URL, error)
}

// Route is the places that may have an image.
type Route struct {
	// Sources are asked in this order, until one has the image.
	Sources []Source
	// Skipped are places that must not be asked.
	Skipped []Skipped
}

// HasRule reports whether a rule applies to the image.
func (r *Route) HasRule() bool {
	return len(r.Skipped) > 0 || slices.ContainsFunc(r.Sources, func(s Source) bool { return s.Rule != "" })
}

// Source is a place that may have an image.
type Source struct {
	Endpoint

	// Reference is the image at this place.
	Reference name.Reference
	// Rule is the rule that names this place; empty if no rule applies to the image.
	Rule string
}

// Endpoint configures the connection to a registry.
type Endpoint struct {
	// PlainHTTP allows plain HTTP. HTTPS is tried first.
	PlainHTTP bool
	// SkipTLSVerify accepts any certificate.
	SkipTLSVerify bool
	// RootCAs are PEM texts with certificates to trust besides the system's.
	RootCAs [][]byte
	// Certificates authenticate the client.
	Certificates []tls.Certificate
	// BasePath replaces /v2 in the URLs of the registry; empty for /v2.
	BasePath string
	// Namespace is the registry that this one stands for. Requests name it; empty for none.
	Namespace string
	// Header is added to requests.
	Header http.Header
	// DialTimeout bounds a connection attempt; zero for the default.
	DialTimeout time.Duration
}

// Skipped is a place that must not be asked for an image.
type Skipped struct {
	// Place is the reference or the registry. Rule is the rule that excludes it, and Why is the reason.
	Place, Rule, Why string
	// Blocked is true if a rule forbids to get images from the place.
	Blocked bool
}

// Attempt is the answer of one source.
type Attempt struct {
	// Image is the requested reference. Place is the reference at the source.
	Image, Place string
	// Rule is the rule that names the source; empty if there is none.
	Rule string
	// Reason is the kind of Err. Both are zero if the source has the image.
	Reason Reason
	Err    error
}

// String returns the answer as a message shows it.
func (a *Attempt) String() string {
	if a.Rule == "" {
		return fmt.Sprintf("%s: %v", a.Place, a.Err)
	}
	return fmt.Sprintf("%s (%s): %v", a.Place, a.Rule, a.Err)
}

// SourcesError is the error of an image that no source has.
type SourcesError struct {
	// Attempts are the answers of all sources, in the order in which they were asked.
	Attempts []Attempt
	// Skipped are the places that were not asked.
	Skipped []Skipped
}

// maxAnswers bounds the text of a SourcesError, in bytes. It is less than the length at which messages are cut.
const maxAnswers = 900

// Error lists each place with its answer. If they are too long together, each answer is cut, so that no place is missing.
func (e *SourcesError) Error() string {
	places := make([]string, 0, len(e.Attempts)+len(e.Skipped))
	for i := range e.Attempts {
		places = append(places, e.Attempts[i].String())
	}
	for _, s := range e.Skipped {
		places = append(places, fmt.Sprintf("%s (%s): not asked, %s", s.Place, s.Rule, s.Why))
	}
	const begin, separator, ellipsis = "no source has it: ", "; ", "…"
	text := begin + strings.Join(places, separator)
	if len(text) <= maxAnswers {
		return text
	}
	share := (maxAnswers-len(begin))/len(places) - len(separator)
	for i, place := range places {
		if len(place) > share {
			// The last character may be cut in the middle.
			places[i] = strings.ToValidUTF8(place[:max(0, share-len(ellipsis))], "") + ellipsis
		}
	}
	return begin + strings.Join(places, separator)
}

// Unwrap returns the errors of all sources.
func (e *SourcesError) Unwrap() []error {
	all := make([]error, 0, len(e.Attempts))
	for i := range e.Attempts {
		all = append(all, e.Attempts[i].Err)
	}
	return all
}

// reason returns the reason of the source that came furthest.
func (e *SourcesError) reason() Reason {
	found, highest := ReasonBlocked, 0
	for i := range e.Attempts {
		if rank := e.Attempts[i].rank(); rank > highest {
			found, highest = e.Attempts[i].Reason, rank
		}
	}
	return found
}

// rank returns how far an operation came that failed.
func (a *Attempt) rank() int {
	if isForeign(a.Err) {
		return 1
	}
	switch a.Reason {
	case ReasonBlocked:
		return 0
	case ReasonUnreachable:
		return 2
	case ReasonUntrusted, ReasonPlainHTTP:
		return 3
	case ReasonNotFound:
		return 4
	case ReasonUnauthorized, ReasonCredentials:
		return 5
	default:
		return 6
	}
}

// IsAway reports whether an image may exist at a source that is unreachable. The other sources have
// not refused access.
func IsAway(err error) bool {
	e, ok := errors.AsType[*SourcesError](err)
	if !ok {
		return ReasonOf(err) == ReasonUnreachable
	}
	away := false
	for i := range e.Attempts {
		switch a := &e.Attempts[i]; {
		case a.Reason == ReasonUnreachable:
			away = true
		case a.Reason != ReasonNotFound && !isForeign(a.Err):
			return false
		}
	}
	return away
}

// Route returns the sources of an image. The error is an [*Error].
func (c *Client) Route(reference string) (Route, error) {
	ref, err := c.parse(reference)
	if err != nil {
		return Route{}, describe(reference, err)
	}
	if c.options.Sources.Router == nil {
		return Route{Sources: []Source{{Reference: ref}}}, nil
	}
	route, err := c.options.Sources.Router.Route(ref)
	if err != nil {
		return Route{}, describe(reference, &failure{ReasonConfiguration, err})
	}
	for i := range route.Sources {
		if c.options.PlainHTTP || route.Sources[i].PlainHTTP {
			if route.Sources[i].Reference, err = insecure(route.Sources[i].Reference); err != nil {
				return Route{}, describe(reference, err)
			}
		}
	}
	return route, nil
}

// insecure returns a reference whose registry may use plain HTTP.
func insecure(ref name.Reference) (name.Reference, error) {
	out, err := name.ParseReference(ref.Name(), name.Insecure)
	if err != nil {
		return nil, fail(ReasonReference, "is no reference to an image: %w", err)
	}
	return out, nil
}

// endpoint returns how to connect to the registry in a reference.
func (c *Client) endpoint(ref name.Reference) (*Endpoint, error) {
	route, err := c.Route(ref.String())
	if err != nil {
		return nil, err
	}
	for i := range route.Sources {
		if route.Sources[i].Reference.Context().RegistryStr() == ref.Context().RegistryStr() {
			return &route.Sources[i].Endpoint, nil
		}
	}
	return &Endpoint{}, nil
}

// Locate returns the first source that has an image, with options for package remote to read it there.
func (c *Client) Locate(ctx context.Context, reference string) (name.Reference, []remote.Option, error) {
	if c.options.Sources.Router == nil {
		ref, err := c.Reference(reference)
		if err != nil {
			return nil, nil, err
		}
		options, err := c.Remote(ctx, ref)
		return ref, options, err
	}
	var source *Source
	err := c.within(ctx, reference, c.options.ResolveTimeout, func(ctx context.Context, s *session) error {
		_, err := s.find(ctx)
		source = s.source
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	options, err := c.remote(ctx, source.Reference, &source.Endpoint)
	return source.Reference, options, err
}

// walk runs an operation at the sources of an image.
type walk struct {
	client    *Client
	reference string
	run       operation
}

// along runs the operation at one source of a route after the other, until one succeeds. If none does,
// the error names all.
func (w *walk) along(ctx context.Context, route Route) error {
	failed := &SourcesError{Skipped: route.Skipped}
	for i := range route.Sources {
		source := &route.Sources[i]
		err := w.askInShare(ctx, source, len(route.Sources)-1-i)
		attempt := Attempt{Image: w.reference, Place: source.Reference.Name(), Rule: source.Rule, Err: err}
		if err != nil {
			attempt.Reason = classify(err)
		}
		if w.client.options.Sources.Asked != nil && source.Rule != "" {
			w.client.options.Sources.Asked(attempt)
		}
		if err == nil {
			return nil
		}
		failed.Attempts = append(failed.Attempts, attempt)
		if ctx.Err() != nil || attempt.isFinal(source) {
			break
		}
	}
	if len(failed.Attempts) == 1 && len(failed.Skipped) == 0 && failed.Attempts[0].Rule == "" {
		return failed.Attempts[0].Err
	}
	return &failure{failed.reason(), failed}
}

// isFinal reports whether other sources cannot have a better answer: the local file system fails, or the content with the
// requested digest cannot be used.
func (a *Attempt) isFinal(source *Source) bool {
	switch a.Reason {
	case ReasonLocal:
		return true
	case ReasonPlatform, ReasonNoTree, ReasonFormat, ReasonTooLarge:
		// The registry client checks digests. A tag may name something else elsewhere.
		_, isDigest := source.Reference.(name.Digest)
		return isDigest && !isForeign(a.Err)
	default:
		return false
	}
}

// askInShare asks a source, and leaves time for those that follow.
func (w *walk) askInShare(ctx context.Context, source *Source, following int) error {
	deadline, bounded := ctx.Deadline()
	if following == 0 || !bounded {
		return w.ask(ctx, source, following > 0)
	}
	share := time.Until(deadline) / time.Duration(following+1)
	ctx, cancel := context.WithTimeoutCause(ctx, share, fmt.Errorf("%w %s, its share of the time", ErrTimeout, share.Round(time.Millisecond)))
	defer cancel()
	err := w.ask(ctx, source, true)
	if err != nil && ctx.Err() != nil {
		return fail(ReasonUnreachable, "%w: %w", context.Cause(ctx), err)
	}
	return err
}

// ask runs an operation at one source. It tries all credentials that fit the repository there, as the
// kubelet does, until the registry accepts one. If there are credentials, it never tries without.
func (w *walk) ask(ctx context.Context, source *Source, hasNext bool) error {
	c := w.client
	base, err := newTransport(&c.options, &source.Endpoint)
	if err != nil {
		return fail(ReasonCredentials, "trusting certificates: %w", err)
	}
	defer base.CloseIdleConnections()
	all, err := candidates(c.options.Keychain, source.Reference.Context())
	if err != nil {
		return err
	}
	return w.try(ctx, &session{client: c, source: source, ref: source.Reference, guard: newGuard(c, base, source), hasNext: hasNext}, all)
}

// try runs an operation with one credential after the other, until the registry accepts one. If the
// registry accepts none, the error names all.
func (w *walk) try(ctx context.Context, blank *session, all []login) error {
	var (
		tried []string
		err   error
	)
	for _, one := range all {
		s := *blank
		if err = s.run(ctx, one.auth, w.run); err == nil || s.admitted || !denied(err) {
			return err
		}
		tried = append(tried, one.name)
	}
	return fail(classify(err), "%w; tried %s", err, strings.Join(tried, ", "))
}

// adapted returns a transport that adapts requests to the registry in a reference.
func adapted(base http.RoundTripper, ref name.Reference, endpoint *Endpoint) http.RoundTripper {
	registry := ref.Context().RegistryStr()
	return &realms{inner: &rewriter{inner: base, registry: registry, endpoint: endpoint}, registry: registry}
}

// rewriter adapts requests to a registry that stands for another one.
type rewriter struct {
	inner    http.RoundTripper
	registry string
	endpoint *Endpoint
}

// RoundTrip sends a request. Requests to other hosts, such as redirects, stay as they are.
func (r *rewriter) RoundTrip(request *http.Request) (*http.Response, error) {
	rest, isAPI := strings.CutPrefix(request.URL.Path, "/v2/")
	if request.URL.Host != r.registry || !isAPI {
		return r.inner.RoundTrip(request) //nolint:wrapcheck // as if it were the transport itself
	}
	adapted := request.Clone(request.Context())
	if r.endpoint.BasePath != "" {
		adapted.URL.Path, adapted.URL.RawPath = strings.TrimSuffix(r.endpoint.BasePath, "/")+"/"+rest, ""
	}
	if r.endpoint.Namespace != "" && rest != "" {
		query := adapted.URL.Query()
		query.Set("ns", r.endpoint.Namespace)
		adapted.URL.RawQuery = query.Encode()
	}
	maps.Copy(adapted.Header, r.endpoint.Header)
	response, err := r.inner.RoundTrip(adapted)
	if response != nil {
		// The HTTP client follows redirects from the original request.
		response.Request = request
	}
	return response, err //nolint:wrapcheck // as if it were the transport itself
}
