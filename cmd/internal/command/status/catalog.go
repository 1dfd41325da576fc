package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/explain"
)

// Catalog is a CatalogSource with its replicas.
type Catalog struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	// Source is the image, ConfigMap or address of the catalog.
	Source string `json:"source,omitempty"`
	// Ready and Wanted are numbers of replicas. They are nil for a catalog that runs elsewhere and
	// if the Deployment could not be read.
	Ready  *int32 `json:"ready,omitempty"`
	Wanted *int32 `json:"wanted,omitempty"`
	// State is the gRPC connectivity state.
	State string `json:"state,omitempty"`
	// Reason and Message describe the catalog's problem.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Digest is the digest that the image's tag last resolved to.
	Digest string `json:"digest,omitempty"`
	// Since is the time at which this content was rolled out.
	Since *time.Time `json:"since,omitempty"`
	// Polled is the time of the last poll of the image.
	Polled *time.Time `json:"polled,omitempty"`
	// Replicas are the pods that run.
	Replicas []Replica `json:"replicas,omitempty"`
}

// Replica is a pod of a catalog.
type Replica struct {
	Pod   string `json:"pod"`
	Node  string `json:"node,omitempty"`
	Ready bool   `json:"ready"`
}

func catalogsOf(o *explain.ClusterState) []Catalog {
	all := []Catalog{}
	for i := range o.CatalogSources {
		all = append(all, catalog(o, &o.CatalogSources[i]))
	}
	slices.SortFunc(all, func(a, b Catalog) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

func catalog(o *explain.ClusterState, source *operatorsv1alpha1.CatalogSource) Catalog {
	c := Catalog{
		Namespace: source.Namespace, Name: source.Name, DisplayName: source.Spec.DisplayName,
		Source: cmp.Or(source.Spec.Image, source.Spec.ConfigMap, source.Spec.Address),
		Reason: string(source.Status.Reason), Message: source.Status.Message,
	}
	if connection := source.Status.GRPCConnectionState; connection != nil {
		c.State = connection.LastObservedState
	}
	if polled := source.Status.LatestImageRegistryPoll; polled != nil {
		c.Polled = new(polled.Time)
	}
	if !catalogs.Hosted(source) {
		return c
	}
	for i := range o.Deployments {
		if d := &o.Deployments[i]; d.Namespace == source.Namespace && d.Labels[api.LabelCatalogSource] == source.Name {
			c.deployed(d)
		}
	}
	for i := range o.Pods {
		pod := &o.Pods[i]
		if pod.Namespace == source.Namespace && pod.Labels[api.LabelCatalogSource] == source.Name && pod.Labels[api.LabelManaged] != "" {
			c.Replicas = append(c.Replicas, Replica{Pod: pod.Name, Node: pod.Spec.NodeName, Ready: ready(pod)})
		}
	}
	slices.SortFunc(c.Replicas, func(a, b Replica) int { return strings.Compare(a.Pod, b.Pod) })
	return c
}

// deployed adds fields from the Deployment of a catalog.
func (c *Catalog) deployed(d *appsv1.Deployment) {
	c.Ready, c.Wanted = new(d.Status.ReadyReplicas), new(int32(1))
	if d.Spec.Replicas != nil {
		*c.Wanted = *d.Spec.Replicas
	}
	c.Digest = d.Annotations[api.AnnotationImageDigest]
	for i := range d.Status.Conditions {
		// Only a new ReplicaSet updates this condition.
		if rolled := &d.Status.Conditions[i]; rolled.Type == appsv1.DeploymentProgressing && rolled.Reason == "NewReplicaSetAvailable" {
			c.Since = new(rolled.LastUpdateTime.Time)
		}
	}
}

// nodes returns the nodes of the ready replicas.
func (c *Catalog) nodes() []string {
	var names []string
	for _, r := range c.Replicas {
		if r.Ready {
			names = append(names, r.Node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
