package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// InstallAPI is the command that installs the API operators.coreos.com, with a file of the release. Users of the plugin of
// kubectl may lack the program supervisor.
const InstallAPI = "kubectl apply --server-side -f prerequisites.yaml"

// Explain returns the state of a Subscription, and its causes.
func Explain(o *ClusterState, sub types.NamespacedName) Explanation {
	return Object(o, Ref{Kind: KindSubscription, Namespace: sub.Namespace, Name: sub.Name})
}

// Object returns the state and the causes for a Subscription, a CatalogSource, an InstallPlan or a
// ClusterServiceVersion. For a Namespace, it explains whether it is being deleted.
func Object(o *ClusterState, subject Ref) Explanation {
	s := newSearch(o, subject)
	var findings []Finding
	healthySummary := ""
	switch subject.Kind {
	case KindSubscription:
		if s.sub = find(o.Subscriptions, subject); s.sub == nil {
			return explainAbsent(s, "subscriptions.operators.coreos.com")
		}
		findings, healthySummary = subscriptionFindings(s), installedSummary(s)
	case KindCatalogSource:
		source := s.catalog(subject)
		if source == nil {
			return explainAbsent(s, "catalogsources.operators.coreos.com")
		}
		findings, healthySummary = withSupervisor(s, func(s *search) []*Finding { return catalogFindings(s, source) }), servingSummary(source)
	case KindInstallPlan:
		p := s.plan(subject.Namespace, subject.Name)
		if p == nil {
			return explainAbsent(s, "installplans.operators.coreos.com")
		}
		findings, healthySummary = withSupervisor(s, func(s *search) []*Finding { return append(planFindings(s, p), planWarnings(s, p)...) }), "it is complete"
	case KindVersion:
		csv := s.version(subject.Namespace, subject.Name)
		if csv == nil {
			return explainAbsent(s, "clusterserviceversions.operators.coreos.com")
		}
		findings = withSupervisor(s, func(s *search) []*Finding { return versionFindings(s, csv) })
		healthySummary = "it runs" + since(csv.Status.LastTransitionTime)
	case KindNamespace:
		findings, healthySummary = namespaceFindings(s), "it is not being deleted"
	}
	return explanationOf(s, findings, healthySummary)
}

// withSupervisor checks the supervisor first, and then the object.
func withSupervisor(s *search, look func(*search) []*Finding) []Finding {
	return collected(supervisorFindings(s), look(s))
}

// explainAbsent returns the explanation of an object that does not exist, or cannot be read.
func explainAbsent(s *search, resource string) Explanation {
	for _, u := range s.Unreadable {
		if u.Resource == resource && u.Reason == UnreadableNotInstalled {
			f := s.finding(CodeNotInstalled, Wrong, "the API "+resource+" is not installed in this cluster").withCommands(InstallAPI)
			return Explanation{Subject: s.subject, State: Missing, Summary: f.Cause, Findings: []Finding{*f}}
		}
	}
	if s.needs(resource, s.subject.Namespace) {
		hidden := "it is unknown whether it exists: you cannot read " + resource
		return Explanation{Subject: s.subject, State: Unknown, Summary: hidden, Unreadable: *s.unreadable}
	}
	const none = "no object has this name"
	if f := terminatingFinding(s, s.subject.Namespace); f != nil {
		return Explanation{Subject: s.subject, State: Missing, Summary: none + ": " + f.Cause, Findings: []Finding{*f}}
	}
	return Explanation{Subject: s.subject, State: Missing, Summary: none}
}

// explanationOf summarizes findings. healthySummary is the summary if there are no problems.
func explanationOf(s *search, findings []Finding, healthySummary string) Explanation {
	e := Explanation{Subject: s.subject, Findings: findings, Unreadable: *s.unreadable}
	slices.SortFunc(e.Unreadable, func(a, b Unreadable) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	if len(findings) > 0 {
		e.Summary = causeWithoutSubject(s, &findings[0])
	}
	underWay := has(findings, CodeInProgress)
	// The approval of a plan has an effect only if a supervisor executes the plan.
	matters := e.dependsOnUnreadable(underWay || has(findings, CodePlanNeedsApproval) && hidesLeases(s))
	switch severity := worst(findings); {
	case severity == Wrong:
		e.State = Broken
	case severity == Waiting:
		e.State = Held
	case underWay && matters:
		e.State, e.Summary = Unknown, e.Summary+"; obstacles could not be checked"
	case underWay:
		e.State = Progressing
	case matters:
		e.State, e.Summary = Unknown, healthySummary+", as far as can be seen"
	default:
		e.State, e.Summary = Healthy, healthySummary
		if len(findings) > 0 {
			e.Summary += "; " + causeWithoutSubject(s, &findings[0])
		}
	}
	return e
}

// dependsOnUnreadable reports whether the explanation depends on objects that could not be read. If it does, none of
// these is minor. A hidden object may block an operation that is in progress, and a status confirms nothing if
// related objects are hidden too.
func (e *Explanation) dependsOnUnreadable(inProgress bool) bool {
	matters := slices.ContainsFunc(e.Unreadable, func(u Unreadable) bool { return inProgress || !u.Minor })
	for i := range e.Unreadable {
		e.Unreadable[i].Minor = !matters && e.Unreadable[i].Minor
	}
	return matters
}

// causeWithoutSubject returns the cause without the name of the subject before it.
func causeWithoutSubject(s *search, f *Finding) string {
	return strings.TrimPrefix(f.Cause, s.subject.String()+": ")
}

func has(findings []Finding, code string) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Code == code })
}

// collected joins the findings of rules, notes last and each cause once.
func collected(lists ...[]*Finding) []Finding {
	var found []Finding
	for _, f := range slices.Concat(lists...) {
		same := func(other Finding) bool { return other.Code == f.Code && other.Object == f.Object }
		if !slices.ContainsFunc(found, same) {
			found = append(found, *f)
		}
	}
	isNote := func(f Finding) bool { return f.Severity == Note }
	notes := slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return !isNote(f) })
	return append(slices.DeleteFunc(found, isNote), notes...)
}

// installedSummary returns a summary of the installed version of a Subscription.
func installedSummary(s *search) string {
	csv := s.version(s.sub.Namespace, s.sub.Status.InstalledCSV)
	text := s.sub.Status.InstalledCSV + " is installed"
	if csv != nil {
		text += " and runs" + since(csv.Status.LastTransitionTime)
	}
	if s.sub.Status.GetCondition(api.ConditionNewerVersionHeld).Status == corev1.ConditionTrue {
		return text
	}
	channel := "its default channel"
	if s.sub.Spec.Channel != "" {
		channel = "channel " + s.sub.Spec.Channel
	}
	return fmt.Sprintf("%s; %s of CatalogSource %s/%s has nothing newer", text, channel, s.sub.Spec.CatalogSourceNamespace, s.sub.Spec.CatalogSource)
}

func servingSummary(source *operatorsv1alpha1.CatalogSource) string {
	available := conditionOf(source.Status.Conditions, api.ConditionAvailable)
	if available == nil {
		return "it serves at " + source.Spec.Address
	}
	return "it serves: " + available.Message
}

// Examine returns all problems of a cluster: each cause once, the worst first, with the affected
// Subscriptions.
func Examine(o *ClusterState) []Finding {
	var all []Finding
	for i := range o.Subscriptions {
		sub := refTo(KindSubscription, &o.Subscriptions[i])
		all = merge(all, Object(o, sub).Findings, &sub)
	}
	for i := range o.Terminating {
		all = merge(all, Object(o, refTo(KindNamespace, &o.Terminating[i])).Findings, nil)
	}
	for i := range o.CatalogSources {
		all = merge(all, Object(o, refTo(KindCatalogSource, &o.CatalogSources[i])).Findings, nil)
	}
	for i := range o.InstallPlans {
		if p := &o.InstallPlans[i]; !referredTo(o, p) && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval {
			all = merge(all, Object(o, refTo(KindInstallPlan, p)).Findings, nil)
		}
	}
	for i := range o.Versions {
		all = merge(all, Object(o, refTo(KindVersion, &o.Versions[i])).Findings, nil)
	}
	all = merge(all, collected(packagesFindings(newSearch(o, Ref{}))), nil)
	if len(subjects(o)) == 0 {
		// Without subjects, no other finding shows that no supervisor runs.
		all = merge(all, collected(supervisorFindings(newSearch(o, Ref{}))), nil)
	}
	all = slices.DeleteFunc(all, func(f Finding) bool { return f.Code == CodeInProgress })
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(depth(a.Code), depth(b.Code)), compareRefs(a.Object, b.Object))
	})
	return all
}

// UnreadableObjects returns the objects that could not be read. An entry is minor if no explanation depends on it, and
// it hides no object that would be explained.
func UnreadableObjects(o *ClusterState) []Unreadable {
	var needed []Unreadable
	for _, subject := range subjects(o) {
		needed = append(needed, Object(o, subject).Unreadable...)
	}
	all := slices.Clone(o.Unreadable)
	for i := range all {
		u := &all[i]
		u.Minor = u.Reason == UnreadableForbidden && !u.hidesSubjects(o) && !slices.ContainsFunc(needed, func(n Unreadable) bool {
			return !n.Minor && u.covers(n.Resource, n.Namespace)
		})
	}
	return all
}

// subjects returns the objects that Examine explains.
func subjects(o *ClusterState) []Ref {
	var all []Ref
	for i := range o.Subscriptions {
		all = append(all, refTo(KindSubscription, &o.Subscriptions[i]))
	}
	for i := range o.CatalogSources {
		all = append(all, refTo(KindCatalogSource, &o.CatalogSources[i]))
	}
	for i := range o.Versions {
		all = append(all, refTo(KindVersion, &o.Versions[i]))
	}
	return all
}

// hidesSubjects reports whether an entry hides objects that would be explained: objects of the explained kinds,
// in the namespaces that were read.
func (u Unreadable) hidesSubjects(o *ClusterState) bool {
	asked := []string{
		"subscriptions.operators.coreos.com", "installplans.operators.coreos.com",
		"clusterserviceversions.operators.coreos.com", "catalogsources.operators.coreos.com",
	}
	return slices.Contains(asked, u.Resource) && (u.Namespace == "" || slices.Contains(o.Namespaces, u.Namespace))
}

// referredTo reports whether any Subscription refers to a plan.
func referredTo(o *ClusterState, p *operatorsv1alpha1.InstallPlan) bool {
	return slices.ContainsFunc(o.Subscriptions, func(sub operatorsv1alpha1.Subscription) bool { return refersTo(&sub, p) })
}

// refersTo reports whether a Subscription refers to a plan.
func refersTo(sub *operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) bool {
	ref := sub.Status.InstallPlanRef
	return sub.Namespace == p.Namespace && ref != nil && ref.Name == p.Name
}

// maxCommands is the maximum number of commands for a cause that several Subscriptions share. Each of them may
// have to be edited.
const maxCommands = 6

// merge adds findings to others, without duplicates.
func merge(all, more []Finding, affected *Ref) []Finding {
	for _, f := range more {
		i := slices.IndexFunc(all, func(known Finding) bool { return known.Code == f.Code && known.Object == f.Object })
		if i < 0 {
			i = len(all)
			all = append(all, f)
		}
		if affected != nil && !slices.Contains(all[i].Affects, *affected) {
			all[i].Affects = append(all[i].Affects, *affected)
		}
		for _, command := range f.Commands {
			if len(all[i].Commands) < maxCommands && !slices.Contains(all[i].Commands, command) {
				all[i].Commands = append(all[i].Commands, command)
			}
		}
	}
	return all
}

// timeFormat is the format of times in texts.
const timeFormat = time.RFC3339
