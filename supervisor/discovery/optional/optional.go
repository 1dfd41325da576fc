// Package optional lists the APIs that the supervisor uses if a cluster has them.
package optional

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

// An API is one that the supervisor does not require.
type API struct {
	// Name is the label of the API in metrics, and the name of its flag if it has one.
	Name string
	// Use describes what the API is used for.
	Use string
	// Target is a kind that represents the API.
	Target discovery.Target
}

// The names of the APIs.
const (
	OpenShift   = "openshift"
	Monitoring  = "monitoring"
	Autoscaling = "autoscaling"
)

// APIs returns all of them, in the order of messages.
func APIs() []API {
	return []API{
		{OpenShift, "containers of operators get the proxies of Proxy cluster, images come from the mirrors of ImageDigestMirrorSets and such objects, and nodes pull the images of ClusterImagePolicies", discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "Proxy"}, Resource: "proxies",
		}},
		{Monitoring, "bundles may contain ServiceMonitors and PrometheusRules", discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}, Resource: "servicemonitors",
		}},
		{Autoscaling, "bundles may contain VerticalPodAutoscalers", discovery.Target{
			GroupVersionKind: schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"},
			Resource:         "verticalpodautoscalers",
		}},
	}
}
