package subscription

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/crd/rollback"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// rollbackChecker finds the blockers of rollbacks: stored objects and other operators that need the
// newer CustomResourceDefinitions.
type rollbackChecker struct {
	client  client.Reader
	live    client.Reader
	content *contentReader
	grants  *grant.Granter
}

// check returns the blockers of the version that a Subscription is pinned to; nil for none.
func (c *rollbackChecker) check(ctx context.Context, o *namespaceState, d *decision) ([]string, error) {
	var list []string
	if d.withdraw != nil {
		if beingDeleted(d.withdraw) {
			return nil, nil
		}
		var err error
		if list, err = c.blockersOfExisting(ctx, d.withdraw, d.present.named(d.withdraw.Spec.Replaces)); err != nil {
			return nil, err
		}
	}
	older := d.olderVersion()
	if older == nil || alreadyChecked(o.plans, d) {
		return list, nil
	}
	bundle, err := c.bundleOf(ctx, o, d, older)
	if _, waits := errors.AsType[imagesError](err); waits && !older.Downgrade {
		// The plan shows the progress of its bundle image, and gets its steps only afterwards.
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	more, err := c.blockersOfBundle(ctx, d, bundle, older.Bundle)
	return append(list, more...), err
}

// bundleOf returns the ClusterServiceVersion and the definitions of a version that may be
// installed.
func (c *rollbackChecker) bundleOf(ctx context.Context, o *namespaceState, d *decision, choice *resolution.Choice) (rollback.Bundle, error) {
	alone := &decision{subscription: d.subscription, selection: selection{install: choice}}
	if choice == d.install {
		alone.identities = d.identities[:1]
	} else {
		alone = c.content.identify(ctx, o.catalogs, []*decision{alone})[0]
	}
	if alone.err != nil {
		return rollback.Bundle{}, alone.err
	}
	bundles, _, err := c.content.bundles(ctx, o, newDesiredPlan([]*decision{alone}))
	if err != nil {
		return rollback.Bundle{}, err
	}
	bundle, err := rollback.Read(bundles[0].Objects)
	if err != nil {
		return rollback.Bundle{}, fmt.Errorf("bundle %s of package %s: %w", bundles[0].Name, bundles[0].Package, err)
	}
	return bundle, nil
}

// blockersOfExisting returns the blockers of an existing version that becomes current again, with
// the definitions that its successor installed.
func (c *rollbackChecker) blockersOfExisting(ctx context.Context, withdrawn, older *operatorsv1alpha1.ClusterServiceVersion) ([]string, error) {
	if older == nil {
		return nil, nil
	}
	live := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range append(rollback.Converted(withdrawn), rollback.Owned(older)...) {
		crd, err := c.definition(ctx, name)
		if err != nil {
			return nil, err
		}
		live[name] = crd
	}
	return append(rollback.Missing(older, live), rollback.Unconverted(withdrawn, older, live)...), nil
}

// blockersOfBundle returns the blockers of a version that has to be installed with its own definitions.
func (c *rollbackChecker) blockersOfBundle(ctx context.Context, d *decision, older rollback.Bundle, name string) ([]string, error) {
	var list []string
	for _, crd := range older.Definitions {
		live, err := c.definition(ctx, crd.Name)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		list = append(list, older.Obstacles(live, crd)...)
		others, err := c.dependents(ctx, d, crd)
		if err != nil {
			return nil, err
		}
		used, err := rollback.Objects{Reader: c.live, Grants: c.grants}.UsedFields(ctx, live, older.LostFields(live, crd), name)
		if err != nil {
			return nil, err
		}
		list = append(append(list, others...), used...)
	}
	return list, nil
}

// definition reads a CustomResourceDefinition; nil when there is none.
func (c *rollbackChecker) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := c.live.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here, and documented
	}
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	return crd, nil
}

// dependents returns the versions of the API that an older definition does not serve, and on which
// other operators rely.
func (c *rollbackChecker) dependents(ctx context.Context, d *decision, older *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	all := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := c.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ClusterServiceVersions that rely on CustomResourceDefinition %s: %w", older.Name, err)
	}
	var list []string
	for i := range all.Items {
		csv := &all.Items[i]
		replaced := csv.Namespace == d.subscription.Namespace && d.present.named(csv.Name) != nil
		if !replaced && !csv.IsCopied() && csv.DeletionTimestamp.IsZero() {
			list = append(list, rollback.Unserved(older, csv)...)
		}
	}
	return list, nil
}

// failedCheck holds the blockers of the rollback of a Subscription.
type failedCheck struct {
	// key identifies the requested rollback.
	key      string
	blockers []string
}

// checkBackOff holds the failed rollback checks of all Subscriptions.
type checkBackOff struct {
	checks apply.Retries[types.UID, failedCheck]
}

// newCheckBackOff returns a checkBackOff without failed checks. The controller receives no events
// about the objects that block a rollback. Each check with the same result doubles the pause, since a
// check reads objects and may need a temporary grant.
func newCheckBackOff() *checkBackOff {
	return &checkBackOff{checks: apply.Retries[types.UID, failedCheck]{
		Backoff: apply.Backoff{First: time.Minute, Max: 16 * time.Minute},
	}}
}

// last returns the blockers of the last check, until it is time to check again.
func (b *checkBackOff) last(sub *operatorsv1alpha1.Subscription, key string, now time.Time) (blockers []string, until time.Time) {
	last, until := b.checks.Last(sub.UID)
	if last.key != key || !now.Before(until) {
		return nil, time.Time{}
	}
	return slices.Clone(last.blockers), until
}

// record records the result of a check, and returns when to check again; zero without blockers.
func (b *checkBackOff) record(sub *operatorsv1alpha1.Subscription, key string, blockers []string, now time.Time) time.Time {
	if last, _ := b.checks.Last(sub.UID); len(blockers) == 0 || last.key != key {
		b.checks.Forget(sub.UID)
	}
	if len(blockers) == 0 {
		return time.Time{}
	}
	return b.checks.Fail(sub.UID, failedCheck{key: key, blockers: slices.Clone(blockers)}, now)
}
