// Package optional lists the APIs that the supervisor uses where a cluster has them.
package optional

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

// An API is one that the supervisor can do without.
type API struct {
	// Name is its label in metrics, and that of its flag where there is one.
	Name string
	// Use says what it is used for.
	Use string
	// Target is a kind that stands for the API.
	Target discovery.Target
}

// The names of the APIs.
const (
	OpenShift   = "openshift"
	Monitoring  = "monitoring"
	Autoscaling = "autoscaling"
)

// APIs returns all of them, in the order in which people are told.
func APIs() []API {
	return []API{
		{OpenShift, "the addresses of Proxy cluster go into the containers of operators", discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}, Resource: "proxies",
		}},
		{Monitoring, "bundles may bring ServiceMonitors and PrometheusRules", discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}, Resource: "servicemonitors",
		}},
		{Autoscaling, "bundles may bring VerticalPodAutoscalers", discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"},
			Resource:         "verticalpodautoscalers",
		}},
	}
}
