package subscription

import (
	"context"
	"errors"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/resolver"
	"github.com/chandlery/chandlery/supervisor/rollback"
)

// goBack prepares the return of Subscriptions to older versions. It checks whether they may return,
// withdraws versions that never worked, and removes each spec.replaces that contradicts the return.
func (r *Reconciler) goBack(ctx context.Context, o *observation, decisions []*decision) {
	for _, d := range decisions {
		obstacles, again, err := r.look(ctx, o, d)
		switch {
		case err != nil:
			d.failBack(&planError{err: err})
		case len(obstacles) > 0:
			d.refuseBack(obstacles)
			o.soonest(again)
		}
		if err := r.withdraw(ctx, d); err != nil {
			d.failBack(&planError{err: err})
		}
		for _, csv := range o.crossed(d) {
			if err := r.cut(ctx, csv, d.install.Bundle); err != nil {
				d.fail(&planError{err: err})
			}
		}
	}
	r.keepVersions(ctx, o, decisions)
}

// obstacles returns why a Subscription must not get the version that it is pinned to; nil when it
// may.
func (r *Reconciler) obstacles(ctx context.Context, o *observation, d *decision) ([]string, error) {
	var list []string
	if d.withdraw != nil {
		if leaving(d.withdraw) {
			return nil, nil
		}
		var err error
		if list, err = r.obstaclesToReturn(ctx, d.withdraw, o.version(d, d.withdraw.Spec.Replaces)); err != nil {
			return nil, err
		}
	}
	older := d.reverts()
	if older == nil || o.checked(d) {
		return list, nil
	}
	bundle, err := r.bundleOf(ctx, o, d, older)
	if _, waits := errors.AsType[lookups](err); waits && !older.Back {
		// The plan shows the progress of its bundle image, and gets its steps only afterwards.
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	more, err := r.obstaclesTo(ctx, o, d, bundle, older.Bundle)
	return append(list, more...), err
}

// bundleOf returns the ClusterServiceVersion and the definitions of a version that may be
// installed.
func (r *Reconciler) bundleOf(ctx context.Context, o *observation, d *decision, choice *resolver.Choice) (rollback.Bundle, error) {
	alone := &decision{subscription: d.subscription, present: d.present, install: choice}
	r.learn(ctx, o, []*decision{alone})
	o.identify(alone)
	if alone.err != nil {
		return rollback.Bundle{}, alone.err
	}
	bundles, err := r.contents(ctx, o, &assignment{versions: alone.identities, choices: alone.choices()})
	if err != nil {
		return rollback.Bundle{}, err
	}
	bundle, err := rollback.Read(bundles[0].Objects)
	if err != nil {
		return rollback.Bundle{}, fmt.Errorf("bundle %s of package %s: %w", bundles[0].Name, bundles[0].Package, err)
	}
	return bundle, nil
}

// obstaclesToReturn returns the obstacles for an existing version that becomes current again, with
// the definitions that its successor brought.
func (r *Reconciler) obstaclesToReturn(ctx context.Context, withdrawn, back *operatorsv1alpha1.ClusterServiceVersion) ([]string, error) {
	if back == nil {
		return nil, nil
	}
	live := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, name := range append(rollback.Converted(withdrawn), rollback.Owned(back)...) {
		crd, err := r.definition(ctx, name)
		if err != nil {
			return nil, err
		}
		live[name] = crd
	}
	return append(rollback.Missing(back, live), rollback.Unconverted(withdrawn, back, live)...), nil
}

// obstaclesTo returns the obstacles for a version that brings its own definitions.
func (r *Reconciler) obstaclesTo(ctx context.Context, o *observation, d *decision, older rollback.Bundle, name string) ([]string, error) {
	var list []string
	for _, crd := range older.Definitions {
		live, err := r.definition(ctx, crd.Name)
		if err != nil {
			return nil, err
		}
		if live == nil {
			continue
		}
		list = append(list, older.Obstacles(live, crd)...)
		others, err := r.relying(ctx, o, d, crd)
		if err != nil {
			return nil, err
		}
		used, err := rollback.Objects{Reader: r.live, Lender: r.lender}.Using(ctx, live, older.Lost(live, crd), name)
		if err != nil {
			return nil, err
		}
		list = append(append(list, others...), used...)
	}
	return list, nil
}

// definition reads a CustomResourceDefinition; nil when there is none.
func (r *Reconciler) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here, and documented
	}
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	return crd, nil
}

// relying returns the versions of the API that an older definition does not serve, and on which
// other operators rely.
func (r *Reconciler) relying(ctx context.Context, o *observation, d *decision, older *apiextensionsv1.CustomResourceDefinition) ([]string, error) {
	all := &operatorsv1alpha1.ClusterServiceVersionList{}
	if err := r.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ClusterServiceVersions that rely on CustomResourceDefinition %s: %w", older.Name, err)
	}
	var list []string
	for i := range all.Items {
		csv := &all.Items[i]
		replaced := csv.Namespace == o.namespace && o.claims.packages[csv.Name] == d.subscription.Spec.Package
		if !replaced && !csv.IsCopied() && csv.DeletionTimestamp.IsZero() {
			list = append(list, rollback.Unserved(older, csv)...)
		}
	}
	return list, nil
}

// cut removes spec.replaces from a version that the replaced version will replace.
func (r *Reconciler) cut(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, from string) error {
	after := csv.DeepCopy()
	after.Spec.Replaces = ""
	patch := client.MergeFromWithOptions(csv, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, after, patch, client.FieldOwner(api.FieldManager)); err != nil {
		return fmt.Errorf("taking spec.replaces from ClusterServiceVersion %s/%s, since %s is to take over from it: %w", csv.Namespace, csv.Name, from, err)
	}
	csv.Spec.Replaces, csv.ResourceVersion = "", after.ResourceVersion
	log.FromContext(ctx).Info("Took spec.replaces from version", "version", csv.Name, "replaces", from)
	return nil
}
