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
	// Linger is how long a pod that converts objects goes on when it is to end, before
	// it is told: callers have to hear of it first, and part with it.
	Linger = 15 * time.Second
	// Rerouting is how long it may take until nobody is led to a pod any more that is
	// about to go.
	Rerouting = 5 * time.Second
	// parted begins the last line of a bundle, which names the pods that are on their way
	// out. What is not between the lines of a certificate counts for nothing, but for
	// this: the API server has connections of its own for each configuration, so that it
	// parts with those that it has when the line changes.
	parted = "# no connections to "
	// defaultGrace is how long pods have to end that do not say.
	defaultGrace = 30
)

// AddLinger lets the pods of a Deployment go on for a while when they are to end. What
// says itself what to do then is left alone, as are pods that end before others begin.
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

// Leaving are the pods behind a Service that serve still and are about to go, by UID;
// stay says that there are others to take over.
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

// Part is the change by which API servers part with their connections to pods, which
// must not be led to any more by then; nil if the definition does not convert by the
// Service, or they have done so already.
func Part(live *apiextensionsv1.CustomResourceDefinition, service types.NamespacedName, pods []string) *Change {
	have := webhookOf(live)
	if have == nil || have.ClientConfig.Service == nil ||
		have.ClientConfig.Service.Namespace != service.Namespace || have.ClientConfig.Service.Name != service.Name {
		return nil
	}
	bundle, known := unparted(have.ClientConfig.CABundle)
	// Without an authority to believe there are no connections.
	if len(bundle) == 0 || !slices.ContainsFunc(pods, func(pod string) bool { return !slices.Contains(known, pod) }) {
		return nil
	}
	pods = slices.Compact(slices.Sorted(slices.Values(pods)))
	line := parted + strings.Join(pods, " ") + "\n"
	return &Change{Conversion: withBundle(live.Spec.Conversion, append(bytes.TrimSpace(bytes.Clone(bundle)), "\n"+line...))}
}

// unparted is a bundle without the line that names pods, and their names.
func unparted(bundle []byte) (plain []byte, pods []string) {
	i := bytes.LastIndex(bundle, []byte(parted))
	if i < 0 {
		return bundle, nil
	}
	return bundle[:i], strings.Fields(string(bundle[i+len(parted):]))
}

// withoutParted is a definition's conversion without the names of pods.
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
