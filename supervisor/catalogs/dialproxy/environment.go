package dialproxy

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Environment holds the proxies of the environment. The zero value has none.
type Environment struct {
	// GRPC applies to gRPC connections to all addresses, HTTPS to addresses outside the cluster.
	GRPC, HTTPS string
	// No lists the exceptions, in the form of NO_PROXY.
	No string
}

// FromEnvironment reads GRPC_PROXY, HTTPS_PROXY and NO_PROXY, in upper case or else in lower case.
func FromEnvironment(getenv func(string) string) Environment {
	read := func(name string) string { return cmp.Or(getenv(name), getenv(strings.ToLower(name))) }
	return Environment{GRPC: read("GRPC_PROXY"), HTTPS: read("HTTPS_PROXY"), No: read("NO_PROXY")}
}

// For returns the proxy for HOST:PORT; nil if there is none.
//
// GRPC_PROXY applies to every address that NO_PROXY does not name, also inside the cluster. It is meant for
// supervisors whose cluster is behind a proxy. HTTPS_PROXY applies to addresses outside the cluster, so names
// inside it and IP addresses never use it.
func (e Environment) For(address string) (*Proxy, error) {
	if e.GRPC != "" {
		if !through(e.GRPC, e.No, address) {
			return nil, nil //nolint:nilnil // The doc comment says what nil means.
		}
		return parse("GRPC_PROXY", e.GRPC)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || e.HTTPS == "" || InCluster(host) || net.ParseIP(host) != nil || !through(e.HTTPS, e.No, address) {
		return nil, nil //nolint:nilerr,nilnil // What is no address is not dialled through a proxy.
	}
	return parse("HTTPS_PROXY", e.HTTPS)
}

// InCluster reports whether a host name belongs to a Service or pod: without a dot, below svc, or below
// cluster.local.
func InCluster(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(host, ".")
	const service = 2 // labels in NAME.NAMESPACE.svc before svc
	return len(labels) == 1 || strings.HasSuffix(host, ".cluster.local") || slices.Index(labels, "svc") == service
}

// through reports whether NO_PROXY has no exception for an address.
func through(proxy, no, address string) bool {
	config := httpproxy.Config{HTTPSProxy: proxy, NoProxy: no}
	chosen, err := config.ProxyFunc()(&url.URL{Scheme: "https", Host: address})
	return err != nil || chosen != nil
}

// parse reads the URL of a proxy. A URL without a scheme is an HTTP proxy.
func parse(variable, value string) (*Proxy, error) {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s is no URL of a proxy", variable)
	}
	if _, known := ports()[u.Scheme]; !known {
		return nil, fmt.Errorf("%s has the scheme %q; use one of http, https, socks5 and socks5h", variable, u.Scheme)
	}
	return &Proxy{url: u, variable: variable}, nil
}

// ports returns the default ports of the schemes of proxies.
func ports() map[string]string {
	return map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
}

// Excepting returns the value of NO_PROXY with more exceptions, which are hosts, or domains
// with a leading dot.
func (e Environment) Excepting(more ...string) string {
	entries := strings.FieldsFunc(e.No, func(r rune) bool { return r == ',' || r == ' ' })
	for _, entry := range more {
		if entry != "" && !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	return strings.Join(entries, ",")
}
