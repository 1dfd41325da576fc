package owners_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// state holds the objects of a namespace.
type state struct {
	subscriptions operatorsv1alpha1.SubscriptionList
	versions      operatorsv1alpha1.ClusterServiceVersionList
	plans         operatorsv1alpha1.InstallPlanList
	names         map[types.UID]string // of the Subscriptions
}

// look reads the objects.
func (a *actor) look(ctx context.Context, from client.Reader) (*state, error) {
	s := &state{names: map[types.UID]string{}}
	in := client.InNamespace(a.namespace)
	err := errors.Join(from.List(ctx, &s.subscriptions, in), from.List(ctx, &s.versions, in), from.List(ctx, &s.plans, in))
	for i := range s.subscriptions.Items {
		s.names[s.subscriptions.Items[i].UID] = s.subscriptions.Items[i].Name
	}
	return s, err
}

// rest waits until everything is as expected. The cache of the test shows when to check, and the
// server is then read.
func (a *actor) rest(ctx context.Context) error {
	var last *state
	err := until(ctx, func() string {
		for _, from := range []client.Reader{a.cache, a.Client} {
			s, err := a.look(ctx, from)
			if err != nil {
				return err.Error()
			}
			if left := a.unrest(s); left != "" {
				return left
			}
			last = s
		}
		return ""
	})
	if err != nil {
		return err
	}
	a.settled = map[types.UID][]types.UID{}
	for i := range last.plans.Items {
		for _, ref := range last.plans.Items[i].OwnerReferences {
			a.settled[last.plans.Items[i].UID] = append(a.settled[last.plans.Items[i].UID], ref.UID)
		}
	}
	if found := bare(a.witness.of(a.namespace), a.stripped, a.gone); len(found) > 0 {
		return errors.New(strings.Join(found, "\n"))
	}
	return nil
}

// unrest returns what is not as expected; empty for nothing.
func (a *actor) unrest(s *state) string {
	installed := map[string]int{}
	for i := range s.versions.Items {
		v := &s.versions.Items[i]
		if v.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("version %s is in phase %q: %s", v.Name, v.Status.Phase, v.Status.Message)
		}
		pkg, number, _ := strings.Cut(v.Name, ".v")
		installed[pkg] = max(installed[pkg], int(number[0]-'0'))
	}
	for pkg, number := range installed {
		if s.waits(version(pkg, number)) && cutShort(a.witness.of(a.namespace), s.present(), version(pkg, number)) {
			delete(installed, pkg)
		}
	}
	var asks []ask
	for i := range s.subscriptions.Items {
		sub := &s.subscriptions.Items[i]
		asks = append(asks, ask{name: sub.Name, pkg: sub.Spec.Package, channel: sub.Spec.Channel, manual: sub.Spec.InstallPlanApproval == operatorsv1alpha1.ApprovalManual})
	}
	want := expect(asks, installed)
	var got []wanted
	for i := range s.plans.Items {
		p := &s.plans.Items[i]
		switch {
		case len(s.owners(p)) == 0 && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete:
			// The served Subscriptions were deleted, and the garbage collector deletes the
			// InstallPlan unless its owners were removed. If it serves a Subscription, the code
			// below reports it.
		case p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
			w := wanted{versions: slices.Sorted(slices.Values(p.Spec.ClusterServiceVersionNames)), owners: s.owners(p), manual: p.Spec.Approval == operatorsv1alpha1.ApprovalManual && !p.Spec.Approved}
			got = append(got, w)
		case p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete:
			return fmt.Sprintf("plan %s for %v is in phase %q: %s", p.Name, p.Spec.ClusterServiceVersionNames, p.Status.Phase, p.Status.Message)
		case len(asks) == 0 && p.Annotations[api.AnnotationApproval] == "":
			// A removed record is written again when the next Subscription comes.
		case p.Annotations[api.AnnotationApproval] == "" || (len(p.Spec.ClusterServiceVersionNames) > 1 && p.Annotations[api.AnnotationVersions] == ""):
			return fmt.Sprintf("plan %s for %v does not say what it is for: %v", p.Name, p.Spec.ClusterServiceVersionNames, p.Annotations)
		default:
			if left := a.served(s, p); left != "" {
				return left
			}
		}
	}
	if a, b := lines(want), lines(got); a != b {
		return fmt.Sprintf("plans that wait are\n%s\nbut have to be\n%s\nwith %v installed\n%s", b, a, installed, s)
	}
	return ""
}

// waits reports whether an InstallPlan for a version waits for approval.
func (s *state) waits(csv string) bool {
	return slices.ContainsFunc(s.plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
		return slices.Contains(p.Spec.ClusterServiceVersionNames, csv) && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	})
}

// present returns the UIDs of the existing InstallPlans.
func (s *state) present() map[types.UID]bool {
	present := map[types.UID]bool{}
	for i := range s.plans.Items {
		present[s.plans.Items[i].UID] = true
	}
	return present
}

// String returns the state as text.
func (s *state) String() string {
	var texts []string
	for i := range s.subscriptions.Items {
		sub := &s.subscriptions.Items[i]
		texts = append(texts, fmt.Sprintf("Subscription %s for %s: state %q, current %q, installed %q", sub.Name, sub.Spec.Package, sub.Status.State, sub.Status.CurrentCSV, sub.Status.InstalledCSV))
		if ref := sub.Status.InstallPlanRef; ref != nil {
			texts = append(texts, "  plan "+ref.Name)
		}
		for _, c := range sub.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				texts = append(texts, fmt.Sprintf("  %s: %s %s", c.Type, c.Reason, c.Message))
			}
		}
	}
	for i := range s.plans.Items {
		p := &s.plans.Items[i]
		texts = append(texts, fmt.Sprintf("InstallPlan %s for %v of %v: phase %q, approved %v", p.Name, p.Spec.ClusterServiceVersionNames, s.owners(p), p.Status.Phase, p.Spec.Approved))
	}
	return strings.Join(texts, "\n")
}

// lines returns InstallPlans as text.
func lines(plans []wanted) string {
	var texts []string
	for _, w := range plans {
		texts = append(texts, fmt.Sprintf("%s, manual %v", w, w.manual))
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// owners returns the names of the existing owners of an InstallPlan.
func (s *state) owners(p *operatorsv1alpha1.InstallPlan) []string {
	var names []string
	for _, ref := range p.OwnerReferences {
		if name := s.names[ref.UID]; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// served returns the problem with the owners of a completed InstallPlan. It keeps its owners, and
// gains none that never requested what it installed.
func (a *actor) served(s *state, p *operatorsv1alpha1.InstallPlan) string {
	var has []types.UID
	for _, ref := range p.OwnerReferences {
		has = append(has, ref.UID)
		asked := slices.ContainsFunc(a.wished[ref.UID], func(pkg string) bool {
			_, labelled := p.Labels[plansteps.ComponentLabel(pkg, a.namespace)]
			return labelled || slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool { return strings.HasPrefix(csv, pkg+".v") })
		})
		if s.names[ref.UID] != "" && a.wished[ref.UID] != nil && !asked {
			return fmt.Sprintf("plan %s for %v belongs to Subscription %s, which never asked for that", p.Name, p.Spec.ClusterServiceVersionNames, ref.Name)
		}
	}
	for _, uid := range a.settled[p.UID] {
		if !a.gone[uid] && s.names[uid] != "" && !slices.Contains(has, uid) {
			return fmt.Sprintf("plan %s for %v does not belong to Subscription %s any more", p.Name, p.Spec.ClusterServiceVersionNames, s.names[uid])
		}
	}
	return ""
}
