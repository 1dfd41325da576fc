package subscription

import (
	"slices"
	"strconv"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/transitionlog"
)

// planSet holds the InstallPlans of a namespace by name.
type planSet map[string]*operatorsv1alpha1.InstallPlan

// newest returns the plan of the highest generation that matches; nil for none.
func (s planSet) newest(matches func(*operatorsv1alpha1.InstallPlan) bool) *operatorsv1alpha1.InstallPlan {
	var found *operatorsv1alpha1.InstallPlan
	for _, p := range s {
		if matches(p) && (found == nil || p.Spec.Generation > found.Spec.Generation) {
			found = p
		}
	}
	return found
}

// contains reports whether any plan matches.
func (s planSet) contains(matches func(*operatorsv1alpha1.InstallPlan) bool) bool {
	return s.newest(matches) != nil
}

// referenced returns the plan that a reference is to; nil if it no longer exists, even if another
// plan has its name.
func (s planSet) referenced(ref *corev1.ObjectReference) *operatorsv1alpha1.InstallPlan {
	if ref == nil {
		return nil
	}
	if p := s[ref.Name]; p != nil && p.UID == ref.UID {
		return p
	}
	return nil
}

// installing returns the newest plan of a Subscription that installs a version; nil for none.
func (s planSet) installing(sub *operatorsv1alpha1.Subscription, csv string) *operatorsv1alpha1.InstallPlan {
	return s.newest(func(p *operatorsv1alpha1.InstallPlan) bool { return installs(p, csv) && belongsTo(p, sub) })
}

// installed reports whether the existing version of a package came from a Subscription: from its
// own plan or, where that plan is gone, by its status.
func (s planSet) installed(sub *operatorsv1alpha1.Subscription, present installation) bool {
	if present.current == nil {
		return false
	}
	for _, csv := range []*operatorsv1alpha1.ClusterServiceVersion{present.current, present.installed} {
		if csv != nil && (s.installing(sub, csv.Name) != nil || sub.Status.InstalledCSV == csv.Name) {
			return true
		}
	}
	return false
}

// lastVersion returns the name of the version that a Subscription had, when no version of its
// package exists now; empty when it never had one.
func (s planSet) lastVersion(sub *operatorsv1alpha1.Subscription, present installation) string {
	if present.current != nil {
		return ""
	}
	newest := s.newest(func(p *operatorsv1alpha1.InstallPlan) bool {
		return complete(p) && plansteps.VersionOf(p, sub.Spec.Package) != "" && belongsTo(p, sub)
	})
	if newest == nil {
		return sub.Status.InstalledCSV
	}
	return plansteps.VersionOf(newest, sub.Spec.Package)
}

// currentGeneration returns the generation of the plan of the existing version; zero where there is
// none.
func (s planSet) currentGeneration(sub *operatorsv1alpha1.Subscription, present installation) int {
	if present.current == nil {
		return 0
	}
	p := s.installing(sub, present.current.Name)
	if p == nil {
		return 0
	}
	return p.Spec.Generation
}

// unfinished returns the newest unfinished plan of a Subscription. It skips plans that are older
// than the one of the existing version. It also skips plans without steps that no status refers to.
func (s planSet) unfinished(sub *operatorsv1alpha1.Subscription, present installation) *operatorsv1alpha1.InstallPlan {
	oldest := s.currentGeneration(sub, present)
	return s.newest(func(p *operatorsv1alpha1.InstallPlan) bool {
		ref := sub.Status.InstallPlanRef
		abandoned := lacksSteps(p) && (ref == nil || ref.UID != p.UID)
		if !open(p) || abandoned || p.Spec.Generation < oldest || !belongsTo(p, sub) {
			return false
		}
		return present.current != nil || plansteps.VersionOf(p, sub.Spec.Package) != ""
	})
}

// misreferenced reports whether a Subscription refers to an existing plan that does not serve it: it
// asked for something else when the plan was created.
func (s planSet) misreferenced(sub *operatorsv1alpha1.Subscription) bool {
	p := s.referenced(sub.Status.InstallPlanRef)
	return p != nil && recordsSubscriptions(p) && !stripped(p) && plansteps.VersionOf(p, sub.Spec.Package) == "" &&
		!serves(p, sub) && generatedBy(sub) != p.Name
}

// incomplete reports whether a plan has steps that are not applied yet. A version may succeed
// before the last step. A complete plan whose steps were reset counts as complete.
func (s planSet) incomplete(p *operatorsv1alpha1.InstallPlan) bool {
	if p == nil {
		return false
	}
	now := s.referenced(&corev1.ObjectReference{Name: p.Name, UID: p.UID})
	if now == nil || complete(now) {
		return false
	}
	return slices.ContainsFunc(now.Status.Plan, func(s *operatorsv1alpha1.Step) bool { return !plansteps.IsApplied(s.Status) })
}

// latestAttempt returns the number of the latest existing plan for some versions, or else 1:
// earlier plans may have been collected.
func (s planSet) latestAttempt(versions []plansteps.Identity) int {
	latest := 1
	first := plansteps.Name(versions, 1)
	for name := range s {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, first+"-")); err == nil && strings.HasPrefix(name, first+"-") {
			latest = max(latest, n)
		}
	}
	return latest
}

// nextGeneration returns the generation of a new plan: one more than any existing one.
func (s planSet) nextGeneration(subscriptions []*operatorsv1alpha1.Subscription) int {
	highest := 0
	for _, p := range s {
		highest = max(highest, p.Spec.Generation)
	}
	for _, sub := range subscriptions {
		highest = max(highest, sub.Status.InstallPlanGeneration)
	}
	return highest + 1
}

// interrupted reports whether the plan that a Subscription refers to was deleted after it began and
// before it was complete. The version then lacks parts. The transition log has the phases, and
// unrecorded has those that are not recorded yet.
func (s planSet) interrupted(sub *operatorsv1alpha1.Subscription, unrecorded map[types.UID][]operatorsv1alpha1.InstallPlanPhase) bool {
	ref := sub.Status.InstallPlanRef
	if ref == nil || generatedBy(sub) == ref.Name || s.referenced(ref) != nil {
		return false
	}
	entries, err := transitionlog.Read(sub)
	if err != nil {
		return false
	}
	phases := slices.Clone(unrecorded[ref.UID])
	for _, t := range entries {
		if t.UID == ref.UID {
			phases = append(phases, operatorsv1alpha1.InstallPlanPhase(t.Phase))
		}
	}
	if slices.Contains(phases, operatorsv1alpha1.InstallPlanPhaseComplete) {
		return false
	}
	return slices.Contains(phases, operatorsv1alpha1.InstallPlanPhaseInstalling) || slices.Contains(phases, operatorsv1alpha1.InstallPlanPhaseFailed)
}

// inProgress returns the plan that is in progress for a Subscription: one that installs a missing
// version, or that still applies parts of the newest version. A version may succeed before its last
// part exists. Plans older than the one of the existing version do not count. It returns nil when
// there is none.
func (s planSet) inProgress(
	sub *operatorsv1alpha1.Subscription, present installation, versions []*operatorsv1alpha1.ClusterServiceVersion,
) *operatorsv1alpha1.InstallPlan {
	oldest := s.currentGeneration(sub, present)
	// missing reports whether a plan installs a missing version, to a Subscription that it serves or of
	// the package of the Subscription.
	missing := func(p *operatorsv1alpha1.InstallPlan) bool {
		if own := versionFor(p, sub); own != "" && !exists(versions, own) {
			return true
		}
		return slices.ContainsFunc(p.Spec.ClusterServiceVersionNames, func(csv string) bool {
			return !exists(versions, csv) && s.installing(sub, csv) == p
		})
	}
	return s.newest(func(p *operatorsv1alpha1.InstallPlan) bool {
		if !running(p) || p.Spec.Generation < oldest {
			return false
		}
		return missing(p) || (present.current != nil && s.installing(sub, present.current.Name) == p)
	})
}
