package snapshot

import (
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// originals excludes copies of versions.
var originals = client.MatchingLabelsSelector{Selector: notCopied()}

// objectList is an empty list, with access to its items.
type objectList[T any] struct {
	// resource is the resource of the list: its plural name, with the group.
	resource string
	list     client.ObjectList
	items    func() []T
}

// catalogSources are decoded separately: the decoder of the Go type panics if spec.updateStrategy has no
// registryPoll.
func catalogSources() objectList[operatorsv1alpha1.CatalogSource] {
	l := catalogs.NewList()
	return objectList[operatorsv1alpha1.CatalogSource]{"catalogsources.operators.coreos.com", l, func() []operatorsv1alpha1.CatalogSource {
		sources := make([]operatorsv1alpha1.CatalogSource, 0, len(l.Items))
		for i := range l.Items {
			// Objects that the API server accepted by its schema can be decoded.
			if source, err := catalogs.Decode(&l.Items[i]); err == nil {
				sources = append(sources, *source)
			}
		}
		return sources
	}}
}

func subscriptions() objectList[operatorsv1alpha1.Subscription] {
	l := &operatorsv1alpha1.SubscriptionList{}
	return objectList[operatorsv1alpha1.Subscription]{"subscriptions.operators.coreos.com", l, func() []operatorsv1alpha1.Subscription { return l.Items }}
}

func installPlans() objectList[operatorsv1alpha1.InstallPlan] {
	l := &operatorsv1alpha1.InstallPlanList{}
	return objectList[operatorsv1alpha1.InstallPlan]{"installplans.operators.coreos.com", l, func() []operatorsv1alpha1.InstallPlan { return l.Items }}
}

func versions() objectList[operatorsv1alpha1.ClusterServiceVersion] {
	l := &operatorsv1alpha1.ClusterServiceVersionList{}
	return objectList[operatorsv1alpha1.ClusterServiceVersion]{
		"clusterserviceversions.operators.coreos.com", l, func() []operatorsv1alpha1.ClusterServiceVersion { return l.Items },
	}
}

func operatorGroups() objectList[operatorsv1.OperatorGroup] {
	l := &operatorsv1.OperatorGroupList{}
	return objectList[operatorsv1.OperatorGroup]{"operatorgroups.operators.coreos.com", l, func() []operatorsv1.OperatorGroup { return l.Items }}
}

func operatorConditions() objectList[operatorsv2.OperatorCondition] {
	l := &operatorsv2.OperatorConditionList{}
	return objectList[operatorsv2.OperatorCondition]{"operatorconditions.operators.coreos.com", l, func() []operatorsv2.OperatorCondition { return l.Items }}
}

func deployments() objectList[appsv1.Deployment] {
	l := &appsv1.DeploymentList{}
	return objectList[appsv1.Deployment]{"deployments.apps", l, func() []appsv1.Deployment { return l.Items }}
}

func pods() objectList[corev1.Pod] {
	l := &corev1.PodList{}
	return objectList[corev1.Pod]{"pods", l, func() []corev1.Pod { return l.Items }}
}

func events() objectList[corev1.Event] {
	l := &corev1.EventList{}
	return objectList[corev1.Event]{"events", l, func() []corev1.Event { return l.Items }}
}

func limitRanges() objectList[corev1.LimitRange] {
	l := &corev1.LimitRangeList{}
	return objectList[corev1.LimitRange]{"limitranges", l, func() []corev1.LimitRange { return l.Items }}
}

func nodes() objectList[corev1.Node] {
	l := &corev1.NodeList{}
	return objectList[corev1.Node]{"nodes", l, func() []corev1.Node { return l.Items }}
}

func leases() objectList[coordinationv1.Lease] {
	l := &coordinationv1.LeaseList{}
	return objectList[coordinationv1.Lease]{"leases.coordination.k8s.io", l, func() []coordinationv1.Lease { return l.Items }}
}

// trimmed removes large fields of nodes that do not describe their health.
func trimmed(nodes []corev1.Node) []corev1.Node {
	for i := range nodes {
		nodes[i].Status.Images = nil
		nodes[i].ManagedFields = nil
	}
	return nodes
}
