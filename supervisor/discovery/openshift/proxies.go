// Package openshift reads the settings of an OpenShift cluster: the proxies for connections to addresses
// outside the cluster.
package openshift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

// proxyName is the name of the Proxy that OpenShift uses.
const proxyName = "cluster"

// ErrUnknown means that the proxies could not be determined.
var ErrUnknown = errors.New("the proxy settings in OpenShift's Proxy cluster are unknown")

// Proxies holds the settings of Proxy cluster, as variables for containers.
type Proxies struct {
	reader  client.Reader
	changes chan event.GenericEvent

	mu    sync.Mutex
	known bool
	env   []corev1.EnvVar
	why   error
}

// NewProxies returns Proxies that use reader. It must not be a cache: the kind may be missing.
func NewProxies(reader client.Reader) *Proxies {
	return &Proxies{reader: reader, changes: make(chan event.GenericEvent, 1), why: ErrUnknown}
}

// Env returns the variables; none if there are no proxies, or no OpenShift. The error wraps [ErrUnknown]. A
// caller must not treat it as an empty result, which would remove proxies from operators.
func (p *Proxies) Env() ([]corev1.EnvVar, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known {
		return nil, p.why
	}
	return slices.Clone(p.env), nil
}

// Changes returns a channel with an event for each change of the variables.
func (p *Proxies) Changes() <-chan event.GenericEvent { return p.changes }

// Found reads the Proxy if the API is installed. If it cannot be read, the previous variables remain.
func (p *Proxies) Found(ctx context.Context, result discovery.Result) {
	switch result.Outcome {
	case discovery.Skipped, discovery.NotInstalled:
		p.set(nil)
	case discovery.Installed:
		proxy := &unstructured.Unstructured{}
		proxy.SetGroupVersionKind(result.Target.GroupVersionKind)
		err := p.reader.Get(ctx, client.ObjectKey{Name: proxyName}, proxy)
		if err != nil && !apierrors.IsNotFound(err) {
			p.setError(ctx, fmt.Errorf("%w: reading it: %w; %s", ErrUnknown, err, remedyFor(apierrors.IsForbidden(err))))
			return
		}
		p.set(Env(proxy))
	default:
		p.setError(ctx, fmt.Errorf("%w: %w; %s", ErrUnknown, result.Err(), remedyFor(result.Outcome == discovery.Forbidden)))
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

func (p *Proxies) set(env []corev1.EnvVar) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && slices.Equal(p.env, env) {
		return
	}
	p.known, p.env = true, env
	select {
	case p.changes <- event.GenericEvent{Object: &unstructured.Unstructured{}}:
	default: // An event is already pending.
	}
}

func (p *Proxies) setError(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known && p.why.Error() != err.Error() {
		ctrl.LoggerFrom(ctx).Error(err, "Operators wait until their proxies are known")
	}
	p.why = err
}

// Env returns the variables from the status of a Proxy, which OpenShift writes when it has accepted the spec.
// Empty values are omitted.
func Env(proxy *unstructured.Unstructured) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, v := range []struct{ name, field string }{
		{"HTTP_PROXY", "httpProxy"}, {"HTTPS_PROXY", "httpsProxy"}, {"NO_PROXY", "noProxy"},
	} {
		value, _, err := unstructured.NestedString(proxy.Object, "status", v.field)
		if err == nil && value != "" {
			env = append(env, corev1.EnvVar{Name: v.name, Value: value})
		}
	}
	return env
}
