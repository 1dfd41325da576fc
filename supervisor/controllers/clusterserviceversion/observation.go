package clusterserviceversion

import "github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"

type (
	Observation  = phase.Observation
	Requirements = phase.Requirements
	Components   = phase.Components
	Webhooks     = phase.Webhooks
	ClusterRBAC  = phase.ClusterRBAC
	Access       = phase.Access
	Neighbour    = phase.Neighbour
	Replacement  = phase.Replacement
)
