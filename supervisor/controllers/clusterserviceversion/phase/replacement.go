package phase

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

// ReplacementOf returns the place of csv among the others.
func ReplacementOf(csv *operatorsv1alpha1.ClusterServiceVersion, others versions.List) Replacement {
	var r Replacement
	if p := others.Predecessor(csv); p != nil {
		r.Predecessor = neighbour(p)
	}
	if replaces := csv.Spec.Replaces; replaces != "" && replaces != csv.Name && others.Named(replaces) == nil {
		r.MissingPredecessor = replaces
	}
	for _, other := range others.Cycle(csv) {
		r.Cycle = append(r.Cycle, other.Name)
	}
	if len(r.Cycle) > 0 {
		r.Cycle = append([]string{csv.Name}, r.Cycle...)
	}
	successors := others.Successors(csv)
	if len(successors) > 0 {
		r.Successor = neighbour(successors[0])
		r.Last = neighbour(successors[len(successors)-1])
	}
	return r
}

func neighbour(csv *operatorsv1alpha1.ClusterServiceVersion) *Neighbour {
	return &Neighbour{
		Name: csv.Name, Phase: csv.Status.Phase, Reason: csv.Status.Reason, Deleting: !csv.DeletionTimestamp.IsZero(),
	}
}
