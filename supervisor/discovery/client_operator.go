package discovery

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pageSize is the maximum number of objects in one answer.
const pageSize = "250"

// probeOperator reads the objects that may show which operator reconciles the kind.
func (k *check) probeOperator(ctx context.Context) []evidence {
	ref := k.result.Target.Operator
	var all []evidence
	if ref.Owned {
		all = append(all, k.probeOwners(ctx))
	}
	if ref.Deployment.Name != "" || ref.Selector != "" {
		all = append(all, k.probeDeployments(ctx, ref))
	}
	if ref.Lease.Name != "" {
		all = append(all, k.probeLease(ctx, ref))
	}
	return all
}

// unread returns the evidence of an object that could not be read.
func unread(what string, err error) evidence {
	switch answer := answerTo(err); answer {
	case NotFound:
		return evidence{OperatorMissing, Operator{Detail: what + " does not exist"}}
	case Denied:
		return evidence{OperatorUnknown, Operator{Detail: "you lack permission to read " + what}}
	default:
		return evidence{OperatorUnknown, Operator{Detail: fmt.Sprintf("reading %s: %s", what, firstMessage(err))}}
	}
}

func (k *check) probeDeployments(ctx context.Context, ref OperatorRef) evidence {
	path := "/apis/apps/v1"
	where := ""
	if ref.Deployment.Namespace != "" {
		path += "/namespaces/" + ref.Deployment.Namespace
		where = " in namespace " + ref.Deployment.Namespace
	}
	path += "/deployments"
	if ref.Deployment.Name != "" {
		var d appsv1.Deployment
		if err := k.get(ctx, path+"/"+ref.Deployment.Name, nil, &d); err != nil {
			return unread("Deployment "+ref.Deployment.String(), err)
		}
		return fromDeployments([]appsv1.Deployment{d})
	}
	var list appsv1.DeploymentList
	what := "Deployments with the labels " + ref.Selector + where
	if err := k.get(ctx, path, map[string]string{"labelSelector": ref.Selector, "limit": pageSize}, &list); err != nil {
		return unread(what, err)
	}
	if len(list.Items) == 0 {
		return evidence{OperatorMissing, Operator{Detail: "there are no " + what}}
	}
	return fromDeployments(list.Items)
}

func (k *check) probeLease(ctx context.Context, ref OperatorRef) evidence {
	if ref.Lease.Namespace == "" {
		return k.probeLeases(ctx, ref.Lease.Name)
	}
	var lease coordinationv1.Lease
	path := fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s", ref.Lease.Namespace, ref.Lease.Name)
	if err := k.get(ctx, path, nil, &lease); err != nil {
		return unread("Lease "+ref.Lease.String(), err)
	}
	return fromLease(&lease, k.now())
}

// probeLeases reads the Leases of a name in all namespaces. One held Lease suffices: others may remain from
// operators in other namespaces.
func (k *check) probeLeases(ctx context.Context, name string) evidence {
	var list coordinationv1.LeaseList
	params := map[string]string{"fieldSelector": "metadata.name=" + name, "limit": pageSize}
	if err := k.get(ctx, "/apis/coordination.k8s.io/v1/leases", params, &list); err != nil {
		return unread("Leases "+name+" of all namespaces", err)
	}
	if len(list.Items) == 0 {
		return evidence{OperatorMissing, Operator{Detail: "no namespace has a Lease " + name}}
	}
	all := make([]evidence, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, fromLease(&list.Items[i], k.now()))
	}
	held := slices.IndexFunc(all, func(e evidence) bool { return e.state == OperatorRunning })
	return all[max(held, 0)]
}

// versionList holds the fields of a list of ClusterServiceVersions that are read.
type versionList struct {
	metav1.ListMeta `json:"metadata"`

	Items []struct {
		metav1.ObjectMeta `json:"metadata"`

		Spec struct {
			Version                   string
			CustomResourceDefinitions struct {
				Owned []struct{ Name string }
			}
		}
		Status struct{ Phase, Message string }
	}
}

// probeOwners finds the ClusterServiceVersions that own the CustomResourceDefinition. It omits copies, which have
// the content of their original.
func (k *check) probeOwners(ctx context.Context) evidence {
	const what = "ClusterServiceVersions"
	definition := k.result.Target.Resource + "." + k.result.Target.Group
	params := map[string]string{"labelSelector": "!olm.copiedFrom", "limit": pageSize}
	var owners []owner
	for {
		var page versionList
		if err := k.get(ctx, "/apis/operators.coreos.com/v1alpha1/clusterserviceversions", params, &page); err != nil {
			return unread(what, err)
		}
		for _, item := range page.Items {
			owns := slices.ContainsFunc(item.Spec.CustomResourceDefinitions.Owned, func(d struct{ Name string }) bool { return d.Name == definition })
			if owns {
				owners = append(owners, owner{item.Namespace, item.Name, item.Spec.Version, item.Status.Phase, item.Status.Message})
			}
		}
		if page.Continue == "" {
			break
		}
		params["continue"] = page.Continue
	}
	if len(owners) == 0 {
		return evidence{OperatorMissing, Operator{Detail: "no ClusterServiceVersion owns " + definition}}
	}
	return fromOwners(owners)
}
