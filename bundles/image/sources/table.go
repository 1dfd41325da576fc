package sources

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"

	"github.com/chandlery/chandlery/bundles/image"
)

// Table holds the rules of one origin, such as a directory or a ConfigMap. It is immutable.
type Table struct {
	registries []registry
	// hosts are the rules of hosts.toml files by registry; defaultHost is for all others.
	hosts map[string]*hostRule
	// certificates are the settings of certs.d by registry.
	certificates map[string]*certificates
	// roots are PEM texts with certificates to trust for all registries.
	roots [][]byte
}

// certificates are what certs.d has for one registry.
type certificates struct {
	roots [][]byte
	pairs []tls.Certificate
}

// defaultHost is the name of the rule for all hosts that have none.
const defaultHost = "_default"

// Tables are the rules of several origins. The first one with a rule for an image decides its sources. The
// certificates of all apply.
type Tables []*Table

// Route returns the sources of an image.
func (t Tables) Route(ref name.Reference) (image.Route, error) {
	route := image.Route{Sources: []image.Source{{Reference: ref}}}
	for _, table := range t {
		if found, ok := table.route(ref); ok {
			route = found
			break
		}
	}
	for i := range route.Sources {
		for _, table := range t {
			table.trust(&route.Sources[i])
			table.authenticate(&route.Sources[i])
		}
	}
	return route, nil
}

// Restrict returns a route by rules of others, without the sources that a table blocks. The authorities of the tables are
// trusted. Their client certificates are not used: the others could get what they have no access to.
func (t Tables) Restrict(route image.Route) image.Route {
	allowed := image.Route{Skipped: slices.Clone(route.Skipped)}
	for i := range route.Sources {
		source := route.Sources[i]
		blocking := t.blocking(&source)
		if blocking == nil {
			for _, table := range t {
				table.trust(&source)
			}
			allowed.Sources = append(allowed.Sources, source)
			continue
		}
		allowed.Skipped = append(allowed.Skipped, image.Skipped{Place: source.Reference.Name(), Rule: blocking.rule(), Why: isBlocked, Blocked: true})
	}
	return allowed
}

// isBlocked is why a blocked place is not asked.
const isBlocked = "it is blocked"

// blocking returns the rule that blocks a source; nil if there is none.
func (t Tables) blocking(source *image.Source) *registry {
	for _, table := range t {
		if r := table.blockingSource(source); r != nil {
			return r
		}
	}
	return nil
}

// trust adds the authorities for the registry of a source.
func (t *Table) trust(source *image.Source) {
	source.RootCAs = slices.Concat(source.RootCAs, t.roots)
	if found := t.certificates[hostOf(source.Reference)]; found != nil {
		source.RootCAs = slices.Concat(source.RootCAs, found.roots)
	}
}

// authenticate adds the client certificates for the registry of a source.
func (t *Table) authenticate(source *image.Source) {
	if found := t.certificates[hostOf(source.Reference)]; found != nil {
		source.Certificates = slices.Concat(source.Certificates, found.pairs)
	}
}

// route returns the sources of an image, and whether a rule applies to it.
func (t *Table) route(ref name.Reference) (image.Route, bool) {
	logical := canonical(ref)
	if rule := t.registryOf(logical); rule != nil {
		return t.viaRegistry(ref, logical, rule), true
	}
	if blocking := t.blocking(logical); blocking != nil {
		return image.Route{Skipped: []image.Skipped{{Place: logical, Rule: blocking.rule(), Why: isBlocked, Blocked: true}}}, true
	}
	rule := t.hosts[hostOf(ref)]
	if rule == nil {
		rule = t.hosts[defaultHost]
	}
	if rule == nil {
		return image.Route{}, false
	}
	return t.withoutBlocked(rule.route(ref)), true
}

// withoutBlocked returns the route of a hosts.toml without the places that a registries.conf blocks.
func (t *Table) withoutBlocked(route image.Route) image.Route {
	allowed := image.Route{Skipped: route.Skipped}
	for i := range route.Sources {
		source := &route.Sources[i]
		if r := t.blockingSource(source); r != nil {
			allowed.Skipped = append(allowed.Skipped, image.Skipped{Place: source.Reference.Name(), Rule: r.rule(), Why: isBlocked, Blocked: true})
			continue
		}
		allowed.Sources = append(allowed.Sources, *source)
	}
	return allowed
}

// blockingSource returns the table that blocks a source; nil if there is none. A source with a base path may lead to any image of
// its host, so that a table for a part of the host blocks it.
func (t *Table) blockingSource(source *image.Source) *registry {
	place := canonical(source.Reference)
	if r := t.blocking(place); r != nil || source.BasePath == "" {
		return r
	}
	host, _, _ := strings.Cut(place, "/")
	for i := range t.registries {
		r := &t.registries[i]
		part, _, _ := strings.Cut(r.Prefix, "/")
		if r.Blocked && (part == host || part+"/" == withOtherPort(host+"/")) {
			return r
		}
	}
	return nil
}

// canonical returns a reference as registries.conf sees it. Hosts differ by more than their case.
func canonical(ref name.Reference) string {
	return CanonicalHost(ref.Context().RegistryStr()) + strings.TrimPrefix(ref.Name(), ref.Context().RegistryStr())
}

// dockerHub is the host of Docker Hub in references.
const dockerHub = "docker.io"

// CanonicalHost returns a registry in lower case, and docker.io for all names of Docker Hub.
func CanonicalHost(host string) string {
	host = strings.ToLower(host)
	switch strings.TrimSuffix(host, ":443") {
	case dockerHub, name.DefaultRegistry, "registry-1.docker.io":
		return dockerHub
	default:
		return host
	}
}

// hostOf returns the registry of a reference, in lower case.
func hostOf(ref name.Reference) string { return strings.ToLower(ref.Context().RegistryStr()) }

// registryOf returns the table with the longest prefix that a reference has; nil if there is none.
func (t *Table) registryOf(logical string) *registry {
	var found *registry
	for i := range t.registries {
		r := &t.registries[i]
		if hasPrefix(logical, r.Prefix) && (found == nil || len(r.Prefix) > len(found.Prefix)) {
			found = r
		}
	}
	return found
}

// blocking returns the table that blocks a place; nil if there is none. Without a table for its port, that of the host
// counts, so that no other spelling of the port reaches a blocked registry.
func (t *Table) blocking(place string) *registry {
	found := t.registryOf(place)
	if found == nil {
		found = t.registryOf(withOtherPort(place))
	}
	if found == nil || !found.Blocked {
		return nil
	}
	return found
}

// withOtherPort returns a place without its port, or with the port of HTTPS if it has none.
func withOtherPort(place string) string {
	registry, rest, _ := strings.Cut(place, "/")
	host, _, err := net.SplitHostPort(registry)
	switch {
	case err != nil:
		registry += ":443"
	case strings.Contains(host, ":"):
		registry = "[" + host + "]"
	default:
		registry = host
	}
	return registry + "/" + rest
}

// hasPrefix reports whether a reference has a prefix that ends at a separator. The prefix *.HOST is for all
// subdomains. The library lets a host without a port match all its ports, which its authors call unintended.
func hasPrefix(ref, prefix string) bool {
	var rest string
	if domain, wildcard := strings.CutPrefix(prefix, "*"); wildcard {
		before, after, found := strings.Cut(ref, domain)
		if !found || strings.Contains(before, "/") {
			return false
		}
		rest = after
	} else {
		after, found := strings.CutPrefix(ref, prefix)
		if !found {
			return false
		}
		rest = after
	}
	if !strings.Contains(prefix, "/") {
		return rest == "" || rest[0] == '/'
	}
	return rest == "" || strings.ContainsRune(":/@", rune(rest[0]))
}

// viaRegistry returns the sources of an image that a table names.
func (t *Table) viaRegistry(ref name.Reference, logical string, rule *registry) image.Route {
	var route image.Route
	named, err := reference.ParseNamed(withoutTagAndDigest(logical))
	if err != nil {
		return image.Route{Skipped: []image.Skipped{{Place: ref.Name(), Rule: rule.rule(), Why: err.Error()}}}
	}
	suffix := strings.TrimPrefix(logical, named.String())
	_, byDigest := ref.(name.Digest)
	for i := range rule.Mirrors {
		mirror := &rule.Mirrors[i]
		if why := notFor(&rule.Registry, mirror, byDigest); why != "" {
			route.Skipped = append(route.Skipped, image.Skipped{Place: mirror.Location, Rule: rule.rule(), Why: why})
			continue
		}
		t.add(&route, rule, mirror, named, suffix)
	}
	t.add(&route, rule, &rule.Endpoint, named, suffix)
	return route
}

// notFor returns why a mirror is not asked; empty if it is.
func notFor(rule *sysregistriesv2.Registry, mirror *sysregistriesv2.Endpoint, byDigest bool) string {
	switch {
	case !byDigest && (rule.MirrorByDigestOnly || mirror.PullFromMirror == sysregistriesv2.MirrorByDigestOnly):
		return "the mirror is for digests only"
	case byDigest && mirror.PullFromMirror == sysregistriesv2.MirrorByTagOnly:
		return "the mirror is for tags only"
	default:
		return ""
	}
}

// add adds a place to a route, unless it is blocked.
func (t *Table) add(route *image.Route, rule *registry, endpoint *sysregistriesv2.Endpoint, named reference.Named, suffix string) {
	one := sysregistriesv2.Registry{Prefix: rule.Prefix, Endpoint: *endpoint}
	places, err := one.PullSourcesFromReference(named)
	skip := func(place, rule, why string) {
		route.Skipped = append(route.Skipped, image.Skipped{Place: place, Rule: rule, Why: why})
	}
	if err != nil {
		skip(endpoint.Location, rule.rule(), err.Error())
		return
	}
	place := places[0].Reference.String() + suffix
	if blocking := t.blocking(place); blocking != nil {
		route.Skipped = append(route.Skipped, image.Skipped{Place: place, Rule: blocking.rule(), Why: isBlocked, Blocked: true})
		return
	}
	ref, err := name.ParseReference(place)
	if err != nil {
		skip(place, rule.rule(), err.Error())
		return
	}
	route.Sources = append(route.Sources, image.Source{
		Reference: ref, Rule: rule.rule(), Endpoint: image.Endpoint{PlainHTTP: endpoint.Insecure, SkipTLSVerify: endpoint.Insecure},
	})
}

// withoutTagAndDigest returns the repository of a reference.
func withoutTagAndDigest(text string) string {
	text, _, _ = strings.Cut(text, "@")
	if colon := strings.LastIndexByte(text, ':'); colon > strings.LastIndexByte(text, '/') {
		text = text[:colon]
	}
	return text
}

// route returns the sources of an image that a hosts.toml names.
func (r *hostRule) route(ref name.Reference) image.Route {
	var route image.Route
	_, byDigest := ref.(name.Digest)
	for i := range r.hosts {
		host := &r.hosts[i]
		place := host.registry + "/" + host.prefix + ref.Context().RepositoryStr()
		if byDigest && !host.pull || !byDigest && !host.resolve {
			why := map[bool]string{true: "the host lacks capability pull", false: "the host lacks capability resolve, which tags need"}[byDigest]
			route.Skipped = append(route.Skipped, image.Skipped{Place: place, Rule: r.origin, Why: why})
			continue
		}
		at, err := name.NewRepository(place)
		if err != nil {
			route.Skipped = append(route.Skipped, image.Skipped{Place: place, Rule: r.origin, Why: err.Error()})
			continue
		}
		source := image.Source{Endpoint: host.Endpoint, Rule: r.origin, Reference: at.Tag(ref.Identifier())}
		if byDigest {
			source.Reference = at.Digest(ref.Identifier())
		}
		if own := hostOf(ref); host.registry != own {
			source.Namespace = strings.Replace(own, name.DefaultRegistry, "docker.io", 1)
		}
		route.Sources = append(route.Sources, source)
	}
	if r.ownHost {
		route.Sources = append(route.Sources, image.Source{Reference: ref, Rule: r.origin})
	}
	return route
}

// normalHost returns the name of a registry as references have it.
func normalHost(host string) string {
	registry, err := name.NewRegistry(host)
	if err != nil {
		return strings.ToLower(host)
	}
	return strings.ToLower(registry.RegistryStr())
}

// isHost reports whether a text can be a registry in a reference.
func isHost(text string) bool {
	_, err := name.NewRegistry(text)
	return err == nil && text != ""
}
