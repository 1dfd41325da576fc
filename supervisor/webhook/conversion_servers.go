package webhook

import (
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// ConversionServers returns the Deployments of csv, valid or not, with the definitions that they convert. It returns
// only the data that is needed to remove conversions. A description may have become invalid after its
// conversion was set up.
func ConversionServers(csv *operatorsv1alpha1.ClusterServiceVersion) []Server {
	var out []Server
	named := func(deployment string) *Server {
		i := slices.IndexFunc(out, func(s Server) bool { return s.Deployment == deployment })
		if i < 0 {
			i = len(out)
			out = append(out, Server{Deployment: deployment})
		}
		return &out[i]
	}
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		named(specs[i].Name)
	}
	for _, d := range csv.Spec.WebhookDefinitions {
		s := named(d.DeploymentName)
		if d.Type == operatorsv1alpha1.ConversionWebhook {
			s.Webhooks = append(s.Webhooks, d)
		}
	}
	return out
}
