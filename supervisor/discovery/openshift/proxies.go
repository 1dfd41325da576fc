// Package openshift reads the settings of an OpenShift cluster: the proxies for connections to addresses
// outside the cluster, and the objects of other kinds that may be missing.
package openshift

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
)

// proxyName is the name of the Proxy that OpenShift uses.
const proxyName = "cluster"

// errUnknown means that the proxies could not be determined.
var errUnknown = errors.New("the proxy settings in OpenShift's Proxy cluster are unknown")

// Proxies holds the settings of Proxy cluster, as variables for containers.
type Proxies struct {
	*operatorproxy.Variables

	reader client.Reader
}

// NewProxies returns Proxies that use reader. It must not be a cache: the kind may be missing.
func NewProxies(reader client.Reader) *Proxies {
	return &Proxies{operatorproxy.NewVariables(errUnknown), reader}
}

// Found reads the Proxy if the API is installed. If it cannot be read, the previous variables remain.
func (p *Proxies) Found(ctx context.Context, result discovery.Result) {
	switch result.Outcome {
	case discovery.Skipped, discovery.NotInstalled:
		p.Set(nil)
	case discovery.Installed:
		proxy := &unstructured.Unstructured{}
		proxy.SetGroupVersionKind(result.Target.GroupVersionKind)
		err := p.reader.Get(ctx, client.ObjectKey{Name: proxyName}, proxy)
		if err != nil && !apierrors.IsNotFound(err) {
			p.SetError(ctx, fmt.Errorf("%w: reading it: %w; %s", errUnknown, err, remedyFor(apierrors.IsForbidden(err))))
			return
		}
		p.Set(Env(proxy))
	default:
		p.SetError(ctx, fmt.Errorf("%w: %w; %s", errUnknown, result.Err(), remedyFor(result.Outcome == discovery.Forbidden)))
	}
}

// remedyFor returns the remedy for a missing permission, or for another failure.
func remedyFor(rights bool) string {
	const disable = "run the supervisor with --openshift=disabled if its operators need no proxies"
	if rights {
		return "allow the supervisor to get and list proxies of config.openshift.io, or " + disable
	}
	return "or " + disable
}

// Env returns the variables from the status of a Proxy, which OpenShift writes when it has accepted the spec.
// Empty values are omitted.
func Env(proxy *unstructured.Unstructured) []corev1.EnvVar {
	field := func(name string) string {
		value, _, err := unstructured.NestedString(proxy.Object, "status", name)
		if err != nil {
			return ""
		}
		return value
	}
	return operatorproxy.Of(field("httpProxy"), field("httpsProxy"), field("noProxy"))
}
