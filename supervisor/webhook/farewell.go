package webhook

import (
	"bytes"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

const (
	// Linger is how long a terminating pod that converts objects continues before its containers are stopped. In this
	// time, callers learn of the termination and close their connections.
	Linger = 15 * time.Second
	// Rerouting is the maximum time until no new connection reaches a terminating pod.
	Rerouting = 5 * time.Second
	// parted is the beginning of the last line of a bundle, which names the terminating pods. Text outside
	// certificates has no other meaning. The API server has separate connections for each configuration, so it
	// replaces its connections when the line changes.
	parted = "# no connections to "
	// defaultGrace is the default termination grace period of pods, in seconds.
	defaultGrace = 30
)

// AddLinger delays the termination of the pods of a Deployment. It does not change containers with their own
// preStop hook, nor Deployments with the strategy Recreate.
func AddLinger(d *appsv1.Deployment) {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return
	}
	seconds := int64(Linger.Seconds())
	spec, added := &d.Spec.Template.Spec, false
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			continue
		}
		if c.Lifecycle == nil {
			c.Lifecycle = &corev1.Lifecycle{}
		}
		c.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: seconds}}
		added = true
	}
	if added {
		spec.TerminationGracePeriodSeconds = new(ptr.Deref(spec.TerminationGracePeriodSeconds, defaultGrace) + seconds)
	}
}

// Leaving returns the terminating pods behind a Service that still serve, by UID. stay reports whether the
// Service has other ready pods.
func Leaving(endpoints []discoveryv1.EndpointSlice) (pods map[types.UID]string, stay bool) {
	pods = map[types.UID]string{}
	for i := range endpoints {
		for _, e := range endpoints[i].Endpoints {
			switch {
			case ptr.Deref(e.Conditions.Terminating, false):
				if ptr.Deref(e.Conditions.Serving, true) && e.TargetRef != nil {
					pods[e.TargetRef.UID] = e.TargetRef.Name
				}
			case ptr.Deref(e.Conditions.Ready, true):
				stay = true
			}
		}
	}
	return pods, stay
}

// Part returns the change by which API servers close their connections to pods. No new connection may reach
// these pods any more. It returns nil if the Service does not convert the definition, or if the change was
// already made.
func Part(live *apiextensionsv1.CustomResourceDefinition, service types.NamespacedName, pods []string) *Change {
	have := webhookOf(live)
	if have == nil || have.ClientConfig.Service == nil ||
		have.ClientConfig.Service.Namespace != service.Namespace || have.ClientConfig.Service.Name != service.Name {
		return nil
	}
	bundle, known := unparted(have.ClientConfig.CABundle)
	// Without an authority to trust, there are no connections.
	if len(bundle) == 0 || !slices.ContainsFunc(pods, func(pod string) bool { return !slices.Contains(known, pod) }) {
		return nil
	}
	pods = slices.Compact(slices.Sorted(slices.Values(pods)))
	line := parted + strings.Join(pods, " ") + "\n"
	return &Change{Conversion: withBundle(live.Spec.Conversion, append(bytes.TrimSpace(bytes.Clone(bundle)), "\n"+line...))}
}

// unparted returns a bundle without the line that names pods, and the names.
func unparted(bundle []byte) (plain []byte, pods []string) {
	i := bytes.LastIndex(bundle, []byte(parted))
	if i < 0 {
		return bundle, nil
	}
	return bundle[:i], strings.Fields(string(bundle[i+len(parted):]))
}

// withoutParted returns a definition's conversion without the names of pods.
func withoutParted(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return c
	}
	plain, pods := unparted(c.Webhook.ClientConfig.CABundle)
	if pods == nil {
		return c
	}
	return withBundle(c, plain)
}
