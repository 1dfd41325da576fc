package catalogsource

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// maxNamedChannels is the maximum number of channels that a message names.
const maxNamedChannels = 10

// packageManifestsIncomplete returns the condition about channels that PackageManifests leave out; nil if there are none.
func packageManifestsIncomplete(source *operatorsv1alpha1.CatalogSource, state catalogs.State) *metav1.Condition {
	broken := state.BrokenChannels
	if len(broken) == 0 || state.Address != catalogs.Address(source) {
		return nil
	}
	named := strings.Join(broken[:min(len(broken), maxNamedChannels)], ", ")
	if rest := len(broken) - maxNamedChannels; rest > 0 {
		named += fmt.Sprintf(" and %d more", rest)
	}
	return &metav1.Condition{
		Type: api.ConditionPackageManifestsIncomplete, Status: metav1.ConditionTrue, Reason: api.ReasonBrokenChannels,
		Message: "PackageManifests do not show channels whose newest bundle cannot be read: " + named +
			"; the supervisor's log has the causes; the catalog's publisher must correct the bundles",
	}
}
