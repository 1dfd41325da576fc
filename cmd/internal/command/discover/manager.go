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
	"github.com/chandlery/chandlery/supervisor/rival"
)

// likelyOLM are the labels of OLM's Deployments. Others bear them, too: they are asked for
// only where it is said, then, that they cannot be read.
const likelyOLM = "app in (olm-operator, catalog-operator)"

// manager tells how to find who looks after the kinds of operators.coreos.com: OLM where
// it works, else the supervisor, by its Lease.
func manager(ctx context.Context, c client.Client, supervisorNamespace string) discovery.Keeper {
	keeper := discovery.Keeper{Lease: types.NamespacedName{Namespace: supervisorNamespace, Name: api.LeaseName}}
	olm, err := workingOLM(ctx, c)
	switch {
	case err != nil:
		// Who asks for the kinds meets the same error, and tells it.
		keeper.Selector = likelyOLM
	case olm != types.NamespacedName{}:
		return discovery.Keeper{Deployment: olm}
	}
	return keeper
}

// workingOLM is a Deployment of an OLM that works; zero where there is none. One whose
// service account may not do OLM's work only looks like it.
func workingOLM(ctx context.Context, c client.Client) (types.NamespacedName, error) {
	const page = 250
	var (
		token      string
		candidates []rival.Workload
	)
	for {
		var list appsv1.DeploymentList
		if err := c.List(ctx, &list, client.Limit(page), client.Continue(token)); err != nil {
			return types.NamespacedName{}, fmt.Errorf("looking for OLM among Deployments: %w", err)
		}
		candidates = append(candidates, rival.WorkloadsAmong(list.Items)...)
		if token = list.Continue; token == "" {
			break
		}
	}
	access, err := rival.NewAccessReviewer(c, rival.VerbOLM, clock.RealClock{}).Review(ctx, rival.Accounts(candidates))
	if err != nil {
		return types.NamespacedName{}, err //nolint:wrapcheck // names the service account
	}
	found := rival.Recognise(rival.Observation{Workloads: candidates, Judge: access.JudgeAsSeen})
	if active := found.Active(); len(active) > 0 {
		return types.NamespacedName{Namespace: active[0].Namespace, Name: active[0].Name}, nil
	}
	return types.NamespacedName{}, nil
}
