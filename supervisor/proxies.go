package supervisor

import (
	"fmt"
	"net/url"
	"os"

	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
)

// excludeFromProxies excludes the API server and names inside the cluster from HTTPS_PROXY, which is for addresses
// outside. It returns the proxy settings of the environment from before.
//
// It changes NO_PROXY, and must be called before the first request. A proxy function in the configuration would
// suffice for the API server, but client-go then shares no connections among clients. A proxy-url in a
// kubeconfig is not affected.
func excludeFromProxies(cfg *rest.Config) (dialproxy.Environment, error) {
	before := dialproxy.FromEnvironment(os.Getenv)
	if before.HTTPS == "" && os.Getenv("HTTP_PROXY") == "" && os.Getenv("http_proxy") == "" {
		return before, nil
	}
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return before, fmt.Errorf("reading the address of the API server: %w", err)
	}
	if err := os.Setenv("NO_PROXY", before.Excepting(clusterHosts(server)...)); err != nil {
		return before, fmt.Errorf("setting NO_PROXY: %w", err)
	}
	return before, nil
}

// clusterHosts returns the names inside the cluster.
func clusterHosts(server *url.URL) []string {
	return []string{server.Hostname(), ".svc", ".cluster.local"}
}
