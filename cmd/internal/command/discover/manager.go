package discover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// likelyOLM selects OLM's Deployments by their labels. Other Deployments may have the labels, too.
// The selector serves only to report that Deployments cannot be read.
const likelyOLM = "app in (olm-operator, catalog-operator)"

// manager returns the operator of the kinds of operators.coreos.com: OLM if it works, otherwise the
// supervisor, by its Lease.
func manager(ctx context.Context, c client.Client, supervisorNamespace string) discovery.OperatorRef {
	ref := discovery.OperatorRef{Lease: types.NamespacedName{Namespace: supervisorNamespace, Name: api.LeaseName}}
	olm, err := runningOLM(ctx, c)
	switch {
	case err != nil:
		// The search for the kinds meets the same error and reports it.
		ref.Selector = likelyOLM
	case olm != types.NamespacedName{}:
		return discovery.OperatorRef{Deployment: olm}
	}
	return ref
}

// runningOLM returns a Deployment of a working OLM; zero if there is none. A Deployment whose
// service account may not do OLM's work does not count.
func runningOLM(ctx context.Context, c client.Client) (types.NamespacedName, error) {
	const page = 250
	var (
		token      string
		candidates []competing.Workload
	)
	for {
		var list appsv1.DeploymentList
		if err := c.List(ctx, &list, client.Limit(page), client.Continue(token)); err != nil {
			return types.NamespacedName{}, fmt.Errorf("looking for OLM among Deployments: %w", err)
		}
		candidates = append(candidates, competing.WorkloadsAmong(list.Items)...)
		if token = list.Continue; token == "" {
			break
		}
	}
	access, err := competing.NewAccessReviewer(c, competing.VerbOLM, clock.RealClock{}).Review(ctx, competing.Accounts(candidates))
	if err != nil {
		return types.NamespacedName{}, err //nolint:wrapcheck // names the service account
	}
	found := competing.Evaluate(competing.Input{Workloads: candidates, Classify: access.ClassifyByAppearance})
	if active := found.Active(); len(active) > 0 {
		return types.NamespacedName{Namespace: active[0].Namespace, Name: active[0].Name}, nil
	}
	return types.NamespacedName{}, nil
}
