package discover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/supervisor/rival"
)

// likelyOLM are the labels of OLM's Deployments. Others bear them, too: they are asked for
// only where it is said, then, that they cannot be read.
const likelyOLM = "app in (olm-operator, catalog-operator)"

// manager tells how to find who looks after the kinds of operators.coreos.com: OLM where
// it works, else the supervisor, by its Lease.
func manager(ctx context.Context, reader client.Reader, supervisorNamespace string) discovery.Keeper {
	keeper := discovery.Keeper{Lease: types.NamespacedName{Namespace: supervisorNamespace, Name: rival.LeaseName}}
	olm, err := workingOLM(ctx, reader)
	switch {
	case err != nil:
		// Who asks for the kinds meets the same error, and tells it.
		keeper.Selector = likelyOLM
	case olm != types.NamespacedName{}:
		return discovery.Keeper{Deployment: olm}
	}
	return keeper
}

// workingOLM is a Deployment of an OLM that works; zero where there is none.
func workingOLM(ctx context.Context, reader client.Reader) (types.NamespacedName, error) {
	const page = 250
	var token string
	for {
		var list appsv1.DeploymentList
		if err := reader.List(ctx, &list, client.Limit(page), client.Continue(token)); err != nil {
			return types.NamespacedName{}, fmt.Errorf("looking for OLM among Deployments: %w", err)
		}
		found := rival.Recognise(rival.Observation{Deployments: list.Items})
		if active := found.Active(); len(active) > 0 {
			return types.NamespacedName{Namespace: active[0].Namespace, Name: active[0].Name}, nil
		}
		if token = list.Continue; token == "" {
			return types.NamespacedName{}, nil
		}
	}
}
