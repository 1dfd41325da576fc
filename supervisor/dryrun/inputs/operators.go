package inputs

import (
	"context"
	"fmt"
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/dryrun"
)

// operators are the objects of all namespaces that determine which versions are copied.
type operators struct {
	versions []operatorsv1alpha1.ClusterServiceVersion
	groups   []operatorsv1.OperatorGroup
	// copiesDisabled is true if versions that serve all namespaces are not copied.
	copiesDisabled bool
}

// readOperators reads the versions and OperatorGroups of all namespaces, without copies.
func readOperators(ctx context.Context, c *Cluster) (*operators, error) {
	original, err := labels.NewRequirement(operatorsv1alpha1.CopiedLabelKey, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting ClusterServiceVersions: %w", err)
	}
	var groups operatorsv1.OperatorGroupList
	if err := c.list(ctx, "operatorgroups", corev1.NamespaceAll, &groups); err != nil {
		return nil, err
	}
	var versions operatorsv1alpha1.ClusterServiceVersionList
	selected := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*original)}
	if err := c.list(ctx, "clusterserviceversions", corev1.NamespaceAll, &versions, selected); err != nil {
		return nil, err
	}
	var config operatorsv1.OLMConfig
	err = c.reader.Get(ctx, client.ObjectKey{Name: "cluster"}, &config)
	// Users of namespaces may not read it. Copies are enabled by default.
	if client.IgnoreNotFound(err) != nil && !apimeta.IsNoMatchError(err) && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("getting OLMConfig cluster: %w", err)
	}
	return &operators{versions: versions.Items, groups: groups.Items, copiesDisabled: !config.CopiedCSVsAreEnabled()}, nil
}

// addOperators adds to a request what operators of other namespaces prevent: the versions with the names of the copies
// that its namespace will get, and the APIs of other OperatorGroups. A new namespace has no copy yet.
func addOperators(ctx context.Context, c *Cluster, r *dryrun.Request, own *Objects) {
	if len(own.Subscriptions) == 0 {
		return
	}
	found, err := readOperators(ctx, c)
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the plan for namespace %s ignores operators of other namespaces, which can prevent an installation: %v", r.Input.Namespace, err))
		return
	}
	for name, from := range futureCopies(r.Input.Namespace, found) {
		// A version with the same name prevents the copy.
		exists := slices.ContainsFunc(own.Versions, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return csv.Name == name })
		if !exists {
			r.Copied[name] = from
		}
	}
	r.Groups = dryrun.Groups{Own: effectiveGroup(own.Groups), All: found.groups}
}

// effectiveGroup returns the OperatorGroup of a namespace with the targets of its spec in its status; nil if there is not
// exactly one. A new group has no status yet.
func effectiveGroup(groups []*operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup {
	if len(groups) != 1 {
		return nil
	}
	group := groups[0].DeepCopy()
	switch {
	case len(group.Spec.TargetNamespaces) > 0:
		group.Status.Namespaces = group.Spec.TargetNamespaces
	case group.Spec.Selector == nil:
		group.Status.Namespaces = []string{corev1.NamespaceAll}
	}
	return group
}

// futureCopies returns the namespaces of the versions that are copied to a namespace, by the names of the versions.
func futureCopies(namespace string, o *operators) map[string]string {
	groups := map[string][]*operatorsv1.OperatorGroup{}
	for i := range o.groups {
		group := &o.groups[i]
		groups[group.Namespace] = append(groups[group.Namespace], group)
	}
	copies := map[string]string{}
	for i := range o.versions {
		csv := &o.versions[i]
		// A version of a namespace with several OperatorGroups is not copied.
		if in := groups[csv.Namespace]; len(in) == 1 && csv.Namespace != namespace && isCopiedFrom(csv) && o.targets(in[0], namespace) {
			copies[csv.Name] = csv.Namespace
		}
	}
	return copies
}

// targets reports whether the versions of an OperatorGroup are copied to a namespace.
func (o *operators) targets(group *operatorsv1.OperatorGroup, namespace string) bool {
	if slices.Contains(group.Status.Namespaces, corev1.NamespaceAll) {
		return !o.copiesDisabled
	}
	return slices.Contains(group.Status.Namespaces, namespace)
}

// isCopiedFrom reports whether a version is an original that is copied, and remains.
func isCopiedFrom(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	if csv.Labels[operatorsv1alpha1.CopiedLabelKey] != "" || !csv.DeletionTimestamp.IsZero() {
		return false
	}
	phase := csv.Status.Phase
	return phase != operatorsv1alpha1.CSVPhaseReplacing && phase != operatorsv1alpha1.CSVPhaseDeleting && api.MayBeCopied(csv)
}
