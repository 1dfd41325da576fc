package owners_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// actor changes the Subscriptions and InstallPlans of one namespace.
type actor struct {
	*bed

	namespace string
	random    *rand.Rand
	// channels are the requested channels by package. Two Subscriptions must not request different
	// channels of one package.
	channels map[string]string
	// asks are the Subscriptions of the actor, by name.
	asks map[string]*operatorsv1alpha1.Subscription
	// gone are the Subscriptions that were deleted or changed to another package.
	gone map[types.UID]bool
	// wished are the packages that a Subscription has ever requested.
	wished map[types.UID][]string
	// stripped are the versions of InstallPlans from which owners were removed.
	stripped map[string]bool
	// settled are the owners of InstallPlans when the namespace was last idle.
	settled map[types.UID][]types.UID
	diary   []string
}

func newActor(b *bed, n int) (*actor, error) {
	namespace, err := b.namespace(n)
	a := &actor{
		bed: b, namespace: namespace, random: b.random(n), channels: map[string]string{}, asks: map[string]*operatorsv1alpha1.Subscription{},
		gone: map[types.UID]bool{}, wished: map[types.UID][]string{}, stripped: map[string]bool{}, settled: map[types.UID][]types.UID{},
	}
	for _, pkg := range packages {
		a.channels[pkg] = "stable"
	}
	return a, err
}

// notef writes to the log of the actor.
func (a *actor) notef(format string, args ...any) {
	a.diary = append(a.diary, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}

// subscribe creates a Subscription.
func (a *actor) subscribe(ctx context.Context, name, pkg string, approval operatorsv1alpha1.Approval) error {
	a.notef("create %s for %s, %s", name, pkg, approval)
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: "shop", CatalogSourceNamespace: global, Package: pkg, Channel: a.channels[pkg], InstallPlanApproval: approval,
		},
	}
	if err := a.Create(ctx, sub); err != nil {
		return fmt.Errorf("creating Subscription %s: %w", name, err)
	}
	a.asks[name], a.wished[sub.UID] = sub, []string{pkg}
	return nil
}

// unsubscribe deletes a Subscription.
func (a *actor) unsubscribe(ctx context.Context, name string) error {
	a.notef("delete %s", name)
	sub := a.asks[name]
	a.gone[sub.UID] = true
	delete(a.asks, name)
	return a.Delete(ctx, sub)
}

// change patches the spec or the labels of a Subscription.
func (a *actor) change(ctx context.Context, name, patch string) error {
	a.notef("change %s: %s", name, patch)
	return a.Patch(ctx, a.asks[name], client.RawPatch(types.MergePatchType, []byte(patch)))
}

// any returns one of the actor's Subscriptions; empty if there is none.
func (a *actor) any() string {
	var names []string
	for name := range a.asks {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return names[a.random.IntN(len(names))]
}

// approval returns a random approval, more often Manual, because only InstallPlans that wait can change.
func (a *actor) approval() operatorsv1alpha1.Approval {
	if a.random.IntN(4) == 0 {
		return operatorsv1alpha1.ApprovalAutomatic
	}
	return operatorsv1alpha1.ApprovalManual
}

// act does something random.
func (a *actor) act(ctx context.Context) error {
	name := a.any()
	if dice := a.random.IntN(14); name != "" && dice >= 2 {
		return a.disturb(ctx, name, dice)
	}
	if len(a.asks) == 4 {
		return nil
	}
	for i := 1; ; i++ {
		if name := fmt.Sprintf("sub-%d", i); a.asks[name] == nil {
			return a.subscribe(ctx, name, packages[a.random.IntN(len(packages))], a.approval())
		}
	}
}

// disturb does something to a Subscription or an InstallPlan.
func (a *actor) disturb(ctx context.Context, name string, dice int) error {
	pkg := a.asks[name].Spec.Package
	switch dice {
	case 2:
		return a.unsubscribe(ctx, name)
	case 3:
		if err := a.unsubscribe(ctx, name); err != nil {
			return err
		}
		return a.subscribe(ctx, name, pkg, a.approval())
	case 4, 5:
		return a.change(ctx, name, fmt.Sprintf(`{"spec":{"installPlanApproval":%q}}`, a.approval()))
	case 6:
		return a.turn(ctx, pkg)
	case 7, 8:
		a.gone[a.asks[name].UID] = true
		pkg = packages[a.random.IntN(len(packages))]
		a.wished[a.asks[name].UID] = append(a.wished[a.asks[name].UID], pkg)
		return a.change(ctx, name, fmt.Sprintf(`{"spec":{"name":%q,"channel":%q}}`, pkg, a.channels[pkg]))
	case 9:
		return a.change(ctx, name, fmt.Sprintf(`{"metadata":{"labels":{"colour":"%d",%q:null}}}`, a.random.IntN(9), plansteps.ComponentLabel(pkg, a.namespace)))
	case 10:
		return a.meddle(ctx, `{"spec":{"approved":true}}`)
	case 11:
		return a.meddle(ctx, `{"metadata":{"ownerReferences":null}}`)
	case 12:
		return a.meddle(ctx, `{"metadata":{"ownerReferences":null,"annotations":null,"labels":null}}`)
	default:
		return a.meddle(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.PrefixServes+string(a.asks[name].UID)))
	}
}

// turn changes all Subscriptions to a package to its other channel.
func (a *actor) turn(ctx context.Context, pkg string) error {
	if len(heads[pkg]) < 2 {
		return nil
	}
	a.channels[pkg] = map[string]string{"stable": "beta", "beta": "stable"}[a.channels[pkg]]
	for name, sub := range a.asks {
		if sub.Spec.Package != pkg {
			continue
		}
		if err := a.change(ctx, name, fmt.Sprintf(`{"spec":{"channel":%q}}`, a.channels[pkg])); err != nil {
			return err
		}
	}
	return nil
}

// meddle patches an InstallPlan of the namespace, if there is one.
func (a *actor) meddle(ctx context.Context, patch string) error {
	var plans operatorsv1alpha1.InstallPlanList
	if err := a.List(ctx, &plans, client.InNamespace(a.namespace)); err != nil {
		return fmt.Errorf("listing plans: %w", err)
	}
	if len(plans.Items) == 0 {
		return nil
	}
	p := &plans.Items[a.random.IntN(len(plans.Items))]
	a.notef("patch %s %v: %s", p.Name, p.Spec.ClusterServiceVersionNames, patch)
	if err := client.IgnoreNotFound(a.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(patch)))); err != nil {
		return fmt.Errorf("changing plan %s: %w", p.Name, err)
	}
	if strings.Contains(patch, "ownerReferences") {
		a.stripped[p.ResourceVersion] = true
	}
	return nil
}
