package supervisor

import (
	"fmt"
	"net/url"
	"os"

	"k8s.io/client-go/rest"

	"github.com/chandlery/chandlery/supervisor/dialproxy"
)

// keepFromProxies keeps requests of this process to the API server, and to names inside the
// cluster, from HTTPS_PROXY, which leads out of it. It returns what the environment said of
// proxies before.
//
// It changes NO_PROXY, and has to be called before the first request. A proxy function in
// the configuration would do for the API server, but with one client-go shares no
// connections among clients. A proxy-url in a kubeconfig is not concerned.
func keepFromProxies(cfg *rest.Config) (dialproxy.Environment, error) {
	before := dialproxy.FromEnvironment(os.Getenv)
	if before.HTTPS == "" && os.Getenv("HTTP_PROXY") == "" && os.Getenv("http_proxy") == "" {
		return before, nil
	}
	server, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return before, fmt.Errorf("reading the address of the API server: %w", err)
	}
	if err := os.Setenv("NO_PROXY", before.Excepting(exceptions(server)...)); err != nil {
		return before, fmt.Errorf("setting NO_PROXY: %w", err)
	}
	return before, nil
}

// exceptions are the names that are inside the cluster.
func exceptions(server *url.URL) []string {
	return []string{server.Hostname(), ".svc", ".cluster.local"}
}
