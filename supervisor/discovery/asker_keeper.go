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

// askKeepers reads each object that may show who reconciles the kind.
func (q *inquiry) askKeepers(ctx context.Context) []evidence {
	k := q.result.Target.Keeper
	var all []evidence
	if k.Owned {
		all = append(all, q.askOwners(ctx))
	}
	if k.Deployment.Name != "" || k.Selector != "" {
		all = append(all, q.askDeployments(ctx, k))
	}
	if k.Lease.Name != "" {
		all = append(all, q.askLease(ctx, k))
	}
	return all
}

// unread returns the evidence of an object that could not be read.
func unread(what string, err error) evidence {
	switch answer := answerTo(err); answer {
	case NotFound:
		return evidence{KeeperMissing, Upkeeper{Detail: what + " does not exist"}}
	case Denied:
		return evidence{KeeperUnknown, Upkeeper{Detail: "you may not read " + what}}
	default:
		return evidence{KeeperUnknown, Upkeeper{Detail: fmt.Sprintf("reading %s: %s", what, firstMessage(err))}}
	}
}

func (q *inquiry) askDeployments(ctx context.Context, k Keeper) evidence {
	path := "/apis/apps/v1"
	where := ""
	if k.Deployment.Namespace != "" {
		path += "/namespaces/" + k.Deployment.Namespace
		where = " in namespace " + k.Deployment.Namespace
	}
	path += "/deployments"
	if k.Deployment.Name != "" {
		var d appsv1.Deployment
		if err := q.get(ctx, path+"/"+k.Deployment.Name, nil, &d); err != nil {
			return unread("Deployment "+k.Deployment.String(), err)
		}
		return ofDeployments([]appsv1.Deployment{d})
	}
	var list appsv1.DeploymentList
	what := "Deployments with the labels " + k.Selector + where
	if err := q.get(ctx, path, map[string]string{"labelSelector": k.Selector, "limit": pageSize}, &list); err != nil {
		return unread(what, err)
	}
	if len(list.Items) == 0 {
		return evidence{KeeperMissing, Upkeeper{Detail: "there are no " + what}}
	}
	return ofDeployments(list.Items)
}

func (q *inquiry) askLease(ctx context.Context, k Keeper) evidence {
	if k.Lease.Namespace == "" {
		return q.askLeases(ctx, k.Lease.Name)
	}
	var lease coordinationv1.Lease
	path := fmt.Sprintf("/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s", k.Lease.Namespace, k.Lease.Name)
	if err := q.get(ctx, path, nil, &lease); err != nil {
		return unread("Lease "+k.Lease.String(), err)
	}
	return ofLease(&lease, q.now())
}

// askLeases reads the Leases of a name in all namespaces. One held Lease suffices: others may remain from
// operators in other namespaces.
func (q *inquiry) askLeases(ctx context.Context, name string) evidence {
	var list coordinationv1.LeaseList
	params := map[string]string{"fieldSelector": "metadata.name=" + name, "limit": pageSize}
	if err := q.get(ctx, "/apis/coordination.k8s.io/v1/leases", params, &list); err != nil {
		return unread("Leases "+name+" of all namespaces", err)
	}
	if len(list.Items) == 0 {
		return evidence{KeeperMissing, Upkeeper{Detail: "no namespace has a Lease " + name}}
	}
	all := make([]evidence, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, ofLease(&list.Items[i], q.now()))
	}
	held := slices.IndexFunc(all, func(e evidence) bool { return e.state == Kept })
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

// askOwners finds the ClusterServiceVersions that own the CustomResourceDefinition. It omits copies, which have
// the content of their original.
func (q *inquiry) askOwners(ctx context.Context) evidence {
	const what = "ClusterServiceVersions"
	definition := q.result.Target.Resource + "." + q.result.Target.Group
	params := map[string]string{"labelSelector": "!olm.copiedFrom", "limit": pageSize}
	var owners []owner
	for {
		var page versionList
		if err := q.get(ctx, "/apis/operators.coreos.com/v1alpha1/clusterserviceversions", params, &page); err != nil {
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
		return evidence{KeeperMissing, Upkeeper{Detail: "no ClusterServiceVersion owns " + definition}}
	}
	return ofOwners(owners)
}
