package cleanup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apiserver/pager"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
)

// maxTerminating bounds how many custom resources of one ClusterServiceVersion may be terminating at a
// time. Resources that have been stuck for long do not count: they cause no work.
const maxTerminating = 50

// scope is the namespaces with the custom resources of an operator.
type scope struct {
	// allNamespaces reports that it is all namespaces except those in except.
	allNamespaces bool
	// in are the sorted namespaces if everywhere is false.
	in []string
	// except are namespaces of another operator for the same kind.
	except sets.Set[string]
	// shared is true when another operator owns the kind.
	shared bool
	// undecided is another operator of the kind that has no phase yet, so that its namespaces are
	// unknown.
	undecided *operatorsv1alpha1.ClusterServiceVersion
	// keepReason states why all objects stay; empty otherwise.
	keepReason string
}

// targets returns the namespaces in the annotation of a ClusterServiceVersion; ok is false without
// the annotation.
func targets(csv *operatorsv1alpha1.ClusterServiceVersion) (namespaces []string, ok bool) {
	value, ok := csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	if !ok {
		return nil, false
	}
	return strings.Split(value, ","), true
}

// watched returns the namespaces that a ClusterServiceVersion watched; ok is false where they are
// unknown. The annotation does not count if the install modes do not support it. A group that
// selects nothing has the same annotation as one that selects everything.
func watched(csv *operatorsv1alpha1.ClusterServiceVersion) (namespaces []string, ok bool) {
	namespaces, known := targets(csv)
	modes, err := operatorsv1alpha1.NewInstallModeSet(csv.Spec.InstallModes)
	if !known || err != nil || modes.Supports(csv.Namespace, namespaces) != nil ||
		reasonBefore(csv) == operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup {
		return nil, false
	}
	return namespaces, true
}

// reasonBefore returns the reason of the phase before the clean-up began.
func reasonBefore(csv *operatorsv1alpha1.ClusterServiceVersion) operatorsv1alpha1.ConditionReason {
	if csv.Status.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete {
		return csv.Status.Reason
	}
	for _, c := range slices.Backward(csv.Status.Conditions) {
		if c.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete {
			return c.Reason
		}
	}
	return ""
}

// scopeOf returns the namespaces in which only csv manages the objects of a
// CustomResourceDefinition.
func scopeOf(csv *operatorsv1alpha1.ClusterServiceVersion, crd string, others versions.List) scope {
	t := scope{except: sets.New[string]()}
	namespaces, known := watched(csv)
	if !known {
		t.keepReason = "the namespaces of the version are unknown"
		return t
	}
	t.allNamespaces = slices.Contains(namespaces, corev1.NamespaceAll)
	for _, other := range others {
		if other.UID == csv.UID || !other.DeletionTimestamp.IsZero() || !other.OwnsCRD(crd) {
			continue
		}
		t.shared = true
		theirs, known := targets(other)
		switch {
		case known && slices.Contains(theirs, corev1.NamespaceAll):
			return scope{shared: true, keepReason: fmt.Sprintf("csv %s/%s serves all namespaces", other.Namespace, other.Name)}
		case known:
			t.except.Insert(theirs...)
		case other.Status.Phase == operatorsv1alpha1.CSVPhaseNone:
			t.undecided = other
		case hasRun(other):
			return scope{shared: true, keepReason: fmt.Sprintf("the namespaces of csv %s/%s are unknown", other.Namespace, other.Name)}
		default:
			t.except.Insert(other.Namespace)
		}
	}
	if !t.allNamespaces {
		t.in = sets.List(sets.New(namespaces...).Difference(t.except))
	}
	return t
}

// hasRun reports whether a ClusterServiceVersion has ever installed its Deployments, by the phases
// in its conditions.
func hasRun(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(csv.Status.Conditions, func(c operatorsv1alpha1.ClusterServiceVersionCondition) bool {
		return c.Phase == operatorsv1alpha1.CSVPhaseInstalling || c.Phase == operatorsv1alpha1.CSVPhaseSucceeded
	})
}

// fewNamespaces is the largest number of namespaces that are listed one by one. For more, all
// namespaces are listed at once.
const fewNamespaces = 8

// lists returns the namespaces to list objects in; the empty one stands for all.
func (t scope) lists(scope apiextensionsv1.ResourceScope) []string {
	switch {
	case !t.allNamespaces && len(t.in) == 0:
		return nil
	case scope == apiextensionsv1.ClusterScoped && t.shared:
		return nil
	case scope == apiextensionsv1.ClusterScoped || t.allNamespaces || len(t.in) > fewNamespaces:
		return []string{corev1.NamespaceAll}
	}
	return t.in
}

// contains reports whether an object that was listed in the namespaces of lists is in scope.
func (t scope) contains(namespace string) bool {
	switch {
	case namespace == "":
		return true
	case t.allNamespaces:
		return !t.except.Has(namespace)
	}
	return slices.Contains(t.in, namespace)
}

// resourceCleaner deletes the custom resources of a deleted version.
type resourceCleaner struct {
	client   client.Client
	live     client.Reader // reads past the cache
	crds     client.Reader
	accounts *impersonate.Accounts
	grants   *grant.Granter
	limit    *rate.Limiter // of deletions; each is work for an operator
}

// resourcePass deletes custom resources within the limits of one pass.
type resourcePass struct {
	cleanup *cleanup
	cleaner resourceCleaner

	policy  deletionPolicy
	deleter resourceDeleter
	// forbiddenIn are the namespaces in which the deleter lacks permission to delete objects of a kind.
	forbiddenIn sets.Set[string]
	// terminating is the number of resources that are terminating.
	terminating int
	// limitReached is true when this pass may delete no more.
	limitReached bool
	// left are the resources that existed when they were read.
	left stageResult
	// refused states why one resource of a kind is not deleted.
	refused string
}

// clean deletes the custom resources of the kinds that a ClusterServiceVersion owns, if it
// requests that. It then waits for them: only their operator can remove their finalizers. If
// another version takes over, resources of users stay. A kind that cannot be listed does not block
// the others, nor does an object that cannot be deleted.
func (r resourceCleaner) clean(ctx context.Context, c *cleanup) (stageResult, error) {
	if !c.csv.Spec.Cleanup.Enabled || c.skips() || c.withdrawn() || c.replaced() {
		return stageResult{}, nil
	}
	p, err := r.newPass(ctx, c)
	if err != nil {
		return stageResult{}, err
	}
	if why := p.policy.pending(); why != "" {
		return stageResult{note: why + "; " + c.skipCommand()}, nil
	}
	notes := p.cleanOwned(ctx)
	if p.left.stuck != "" || len(notes) > 0 {
		notes = append(notes, c.skipCommand())
	}
	p.left.note = strings.Join(notes, "; ")
	return p.left, nil
}

// cleanOwned deletes the custom resources of all kinds that the version owns, and returns the
// obstacles.
func (p *resourcePass) cleanOwned(ctx context.Context) (notes []string) {
	for _, d := range p.cleanup.csv.Spec.CustomResourceDefinitions.Owned {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := p.cleaner.crds.Get(ctx, client.ObjectKey{Name: d.Name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = p.cleanDefinition(ctx, crd)
		}
		switch {
		case err != nil:
			notes = append(notes, fmt.Sprintf("%s cannot be cleaned up: %v", d.Name, err))
		case p.refused != "":
			notes = append(notes, p.refused)
		}
	}
	return notes
}

// newPass returns the pass over custom resources of a clean-up.
func (r resourceCleaner) newPass(ctx context.Context, c *cleanup) (*resourcePass, error) {
	policy, err := r.observePolicy(ctx, c.csv.Namespace)
	if err != nil {
		return nil, err
	}
	d, err := r.deleter(policy)
	if err != nil {
		return nil, err
	}
	return &resourcePass{cleanup: c, cleaner: r, policy: policy, deleter: d}, nil
}

// cleanDefinition deletes the custom resources of a definition where that is allowed.
func (p *resourcePass) cleanDefinition(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	before := p.left
	p.refused = ""
	if t := p.policy.scope(p.cleanup.csv, crd, p.cleanup.others); t.keepReason == "" && t.undecided == nil {
		// The cache may lack the recreation of the definition, or the removal of its record.
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := p.cleaner.live.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
			return client.IgnoreNotFound(err) //nolint:wrapcheck // the caller names the definition
		}
		crd = live
	}
	gvk, ok := listable(crd)
	if !ok {
		return nil
	}
	t := p.policy.scope(p.cleanup.csv, crd, p.cleanup.others)
	switch {
	case t.keepReason != "":
		p.left.kept = append(p.left.kept, crd.Name+" (because "+t.keepReason+")")
		return nil
	case t.undecided != nil:
		p.refused = fmt.Sprintf("csv %s/%s owns %s too, and its namespaces are not known yet",
			t.undecided.Namespace, t.undecided.Name, crd.Name)
		return nil
	}
	err := p.cleaner.grants.With(ctx, crd, p.deleter.permission(), func() error {
		p.left, p.refused, p.forbiddenIn = before, "", sets.New[string]() // nothing is counted twice
		return p.cleanKind(ctx, crd, gvk, t)
	})
	return err //nolint:wrapcheck // the caller names the definition
}

func (p *resourcePass) cleanKind(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, gvk schema.GroupVersionKind, t scope) error {
	for _, namespace := range t.lists(crd.Spec.Scope) {
		next := ""
		for more := !p.limitReached; more; more = next != "" {
			var (
				items []metav1.PartialObjectMetadata
				after int64
				err   error
			)
			// Deletions may take long, so other lists do not wait for them.
			next, err = pager.ReadPage(ctx, p.cleaner.live, metadataList(gvk), func(page *metav1.PartialObjectMetadataList) {
				items, after = t.of(page, gvk), remainingItems(page)
			}, client.InNamespace(namespace), client.Continue(next))
			if err != nil {
				return fmt.Errorf("listing %s: %w", crd.Name, err)
			}
			if err := p.cleanPage(ctx, crd, items); err != nil {
				return err
			}
			if next != "" && p.limitReached {
				p.left.count += after
				next = ""
			}
		}
	}
	return nil
}

// cleanPage deletes the custom resources of a page that may be deleted.
func (p *resourcePass) cleanPage(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, items []metav1.PartialObjectMetadata) error {
	for i := range items {
		o := &items[i]
		p.left.add(o)
		switch {
		case isStuck(o, p.cleanup.now):
			p.left.recordStuck(o, crd.Name)
			continue
		case !o.DeletionTimestamp.IsZero():
			p.terminating++
			continue
		case p.forbiddenIn.Has(o.Namespace):
			continue
		case p.limitReached || p.terminating >= maxTerminating:
			p.limitReached = true
			continue
		case !p.cleaner.limit.Allow():
			p.limitReached, p.left.progressed = true, true
			continue
		}
		if err := p.deleteOne(ctx, crd, o); err != nil {
			return err
		}
	}
	return nil
}

// deleteOne deletes a custom resource. It ignores later writes of its operator, as no version takes
// such objects over.
func (p *resourcePass) deleteOne(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, o *metav1.PartialObjectMetadata) error {
	err := p.deleter.delete(ctx, o)
	switch {
	case err == nil:
		p.terminating++
		p.left.progressed = true
	case ctx.Err() != nil:
		return err
	case p.deleter.actingAs != "" && apierrors.IsForbidden(err):
		if p.deleter.isForbidden(ctx, crd, o.Namespace) {
			p.forbiddenIn.Insert(o.Namespace)
			err = fmt.Errorf("%w; grant it this permission", err)
		}
		p.refused = cmp.Or(p.refused, err.Error())
	case grant.IsForbidden(err):
		return err
	case apierrors.IsConflict(err): // another object has the name now
		p.left.progressed = true
	default:
		// For example, a webhook of the operator refuses it.
		p.refused = cmp.Or(p.refused, err.Error())
	}
	return nil
}

// of returns the objects of a page that are in scope, as cleanupMetadata returns them.
func (t scope) of(page *metav1.PartialObjectMetadataList, gvk schema.GroupVersionKind) []metav1.PartialObjectMetadata {
	var out []metav1.PartialObjectMetadata
	for i := range page.Items {
		if t.contains(page.Items[i].Namespace) {
			out = append(out, cleanupMetadata(&page.Items[i], gvk))
		}
	}
	return out
}

// remainingItems returns the number of objects after a page, as far as the API server states it.
func remainingItems(page *metav1.PartialObjectMetadataList) int64 {
	if n := page.RemainingItemCount; n != nil {
		return *n
	}
	return 1
}

// listable returns the version in which to read the objects of a kind. It prefers the storage
// version, which needs no conversion. ok is false when no version is served.
func listable(crd *apiextensionsv1.CustomResourceDefinition) (gvk schema.GroupVersionKind, ok bool) {
	for _, v := range crd.Spec.Versions {
		if v.Served && (!ok || v.Storage) {
			gvk, ok = schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}, true
		}
	}
	return gvk, ok
}
