package image

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// realms lets a registry name a token service by a private address. The registry client refuses such addresses except the
// registry's own, because a registry could direct requests into the client's network. A registry that is in this network
// itself may name them. For it, the client gets URLs of the registry, which realms replaces.
type realms struct {
	inner    http.RoundTripper
	registry string

	mu sync.Mutex
	// services are the URLs of token services. Requests have their index in servicePath.
	services []*url.URL
}

// servicePath is the start of the paths that stand for token services. No registry has it.
const servicePath = "/.token-service/"

// realmParameter is the address of a token service in a challenge.
var realmParameter = regexp.MustCompile(`(?i)(\brealm=")(https?://[^"\\]+)(")`)

// RoundTrip sends a request.
func (r *realms) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != r.registry {
		return r.inner.RoundTrip(request) //nolint:wrapcheck // as if it were the transport itself
	}
	response, err := r.inner.RoundTrip(r.restore(request))
	if response == nil {
		return nil, err //nolint:wrapcheck // as if it were the transport itself
	}
	// The HTTP client follows redirects from the original request.
	response.Request = request
	if response.StatusCode != http.StatusUnauthorized {
		return response, err //nolint:wrapcheck // as if it were the transport itself
	}
	challenges := response.Header.Values("WWW-Authenticate")
	for i := range challenges {
		challenges[i] = realmParameter.ReplaceAllStringFunc(challenges[i], func(text string) string {
			parts := realmParameter.FindStringSubmatch(text)
			service, failed := r.replace(parts[2])
			if failed != nil {
				err = failed
			}
			return parts[1] + service + parts[3]
		})
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, err //nolint:wrapcheck // names the token service
	}
	return response, nil
}

// restore returns a request for a token service with its URL.
func (r *realms) restore(request *http.Request) *http.Request {
	index, isService := strings.CutPrefix(request.URL.Path, servicePath)
	if !isService {
		return request
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(r.services) {
		return request
	}
	restored := request.Clone(request.Context())
	restored.URL.Scheme, restored.URL.Host = r.services[i].Scheme, r.services[i].Host
	restored.URL.Path, restored.URL.RawPath = r.services[i].Path, r.services[i].RawPath
	restored.Host = r.services[i].Host
	return restored
}

// replace returns the URL for the client of a token service. The error says why the registry may not name it.
func (r *realms) replace(text string) (string, error) {
	service, err := url.Parse(text)
	if err != nil || service.Host == r.registry {
		return text, nil
	}
	to, err := netip.ParseAddr(service.Hostname())
	if err != nil || !isPrivate(to) {
		return text, nil
	}
	if !mayName(r.registry, to) {
		return "", &failure{ReasonUnauthorized, &privateServiceError{r.registry, service.Scheme + "://" + service.Host}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.services, func(known *url.URL) bool { return *known == *service })
	if i < 0 {
		i = len(r.services)
		r.services = append(r.services, service)
	}
	replaced := *service
	replaced.Host, replaced.Path, replaced.RawPath = r.registry, servicePath+strconv.Itoa(i), ""
	return replaced.String(), nil
}

// mayName reports whether a registry may name a token service at an address: at its own, and if it is in a private network
// itself, at another one. Loopback addresses are only for registries on this machine, and link-local addresses for none,
// because clouds have their metadata there.
func mayName(registry string, service netip.Addr) bool {
	host := (&url.URL{Host: registry}).Hostname()
	from, err := netip.ParseAddr(host)
	switch {
	case err != nil && host == "localhost":
		return service.IsLoopback()
	case err != nil:
		return false
	}
	from, service = from.Unmap(), service.Unmap()
	return from == service || from.IsLoopback() && service.IsLoopback() || (from.IsPrivate() || from.IsLoopback()) && service.IsPrivate()
}

// isPrivate reports whether the registry client refuses an address.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsPrivate() || a.IsUnspecified()
}

// privateServiceError is the error of a registry that names a token service which it may not name.
type privateServiceError struct{ registry, service string }

// Error names both.
func (e *privateServiceError) Error() string {
	return fmt.Sprintf("registry %s wants tokens of %s, a private address to which it may not direct requests", e.registry, e.service)
}

// remedy returns what to do.
func (e *privateServiceError) remedy() string {
	return fmt.Sprintf("configure the registry to name its token service %s by a host name, or name both by private IP addresses", e.service)
}
