package supervisor

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/chandlery/chandlery/supervisor/catalogs/dialproxy"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
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

// operatorProxies returns the proxies for the containers of operators: those in the ConfigMap of the flag, else those
// of OpenShift. It also watches the other optional APIs. Users of the objects of OpenShift get each result.
func (s *startup) operatorProxies(ctx context.Context, mgr ctrl.Manager, crds cache.Cache, users ...openShiftUser) (*operatorproxy.Variables, error) {
	found, err := s.watchOptionalAPIs(ctx, mgr, crds, users)
	if err != nil {
		return nil, err
	}
	if s.options.OperatorProxy == "" {
		return found.Variables, nil
	}
	key, err := operatorproxy.ParseName(s.options.OperatorProxy)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the flag
	}
	// In a pod, the variable is the address at which operators reach the API server, too.
	config := operatorproxy.NewConfigMap(mgr.GetAPIReader(), key, os.Getenv("KUBERNETES_SERVICE_HOST"), ".svc", ".cluster.local")
	if err := mgr.Add(config); err != nil {
		return nil, fmt.Errorf("adding the proxies for operators: %w", err)
	}
	return config.Variables, nil
}
