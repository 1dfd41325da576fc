package subscription

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// groups are the OperatorGroups of a namespace.
type groups struct {
	names []string
	// excludesGlobal and failForward are the settings of a single OperatorGroup.
	excludesGlobal, failForward bool
	// unpackTimeout and unpackRetry are too; negative if not set.
	unpackTimeout, unpackRetry time.Duration
}

// groupsError reports that a namespace does not have exactly one OperatorGroup. Nothing can be
// resolved in it.
type groupsError struct {
	namespace string
	names     []string
}

// cause returns the sentence of OLM about the number of OperatorGroups.
func (e *groupsError) cause() string { return olmtext.ExpectedOneGroup(len(e.names)) }

// Error returns the number of OperatorGroups and what to do.
func (e *groupsError) Error() string { return e.cause() + "; " + e.remedy() }

// remedy returns what to do.
func (e *groupsError) remedy() string {
	if len(e.names) == 0 {
		return fmt.Sprintf("create an OperatorGroup in namespace %s that names the namespaces its operators serve", e.namespace)
	}
	return fmt.Sprintf("delete all but one of the OperatorGroups %s of namespace %s", strings.Join(e.names, ", "), e.namespace)
}

// explain returns an error with the remedy for a catalog that the OperatorGroup excludes. The
// resolver does not know about the exclusion.
func (g groups) explain(err error, excluded bool, global string) error {
	missing, ok := errors.AsType[*resolution.UnsatisfiableError](err)
	if !excluded || !ok || missing.KeptBy != "" {
		return err
	}
	detailed := *missing
	detailed.Reason = api.ReasonCatalogExcluded
	detailed.Remedy = fmt.Sprintf("OperatorGroup %s excludes the catalogs of namespace %s by its annotation %s; remove it, or name a catalog of the Subscription's own namespace",
		strings.Join(g.names, ", "), global, api.AnnotationExcludeGlobal)
	return &detailed
}

// problem returns why nothing can be resolved in a namespace; nil otherwise.
func (g groups) problem(namespace string) error {
	if len(g.names) == 1 {
		return nil
	}
	return &groupsError{namespace: namespace, names: g.names}
}

// groupsOf returns the settings of the OperatorGroups of a namespace.
func groupsOf(list []*operatorsv1.OperatorGroup) groups {
	g := groups{unpackTimeout: -1, unpackRetry: -1}
	for _, group := range list {
		g.names = append(g.names, group.Name)
	}
	slices.Sort(g.names)
	if len(list) == 1 {
		g.excludesGlobal = list[0].Annotations[api.AnnotationExcludeGlobal] == "true"
		g.unpackTimeout = durationOf(list[0].Annotations[api.AnnotationUnpackTimeout])
		g.unpackRetry = durationOf(list[0].Annotations[api.AnnotationUnpackRetry])
		g.failForward = list[0].UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward
	}
	return g
}

// failForwardHint returns how to replace a failed version; empty for other versions, and where the
// OperatorGroup allows it already.
func (g groups) failForwardHint(csv *operatorsv1alpha1.ClusterServiceVersion) string {
	if csv.Status.Phase != operatorsv1alpha1.CSVPhaseFailed || g.failForward || len(g.names) != 1 {
		return ""
	}
	return fmt.Sprintf(", or at once if spec.upgradeStrategy of OperatorGroup %s is %s", g.names[0], operatorsv1.UpgradeStrategyUnsafeFailForward)
}

// durationOf parses a duration; negative for none.
func durationOf(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return -1
	}
	return d
}
