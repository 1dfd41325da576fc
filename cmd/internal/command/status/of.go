package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/proposal"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/rival"
)

// Verdict says in a word how things are.
type Verdict string

const (
	// Well is when nothing is wrong. Something may wait for somebody.
	Well Verdict = "Well"
	// Wrong is when something does not go on by itself.
	Wrong Verdict = "Wrong"
	// Unknown is when nothing that could be seen is wrong, and not everything could be.
	Unknown Verdict = "Unknown"
)

// exit is how the command ends.
func (v Verdict) exit() error {
	switch v {
	case Wrong:
		return console.Verdict(console.Negative)
	case Unknown:
		return console.Verdict(console.Forbidden)
	default:
		return nil
	}
}

// Status is how the operators of a cluster are, and what looks after them.
type Status struct {
	// Taken is when it was read.
	Taken time.Time `json:"taken"`
	// Namespaces are those that were looked at; empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Fallback is the namespace that was looked at because one may not look at all.
	Fallback string `json:"fallback,omitempty"`
	// Verdict sums it up.
	Verdict Verdict `json:"verdict"`
	// Supervisors are the Leases of supervisors: one, where nobody made a mistake.
	Supervisors []Supervisor `json:"supervisors"`
	// Others are Deployments of another lifecycle manager: in all namespaces when those were
	// looked at, and Deployments of all may be read.
	Others        []rival.Workload `json:"others,omitempty"`
	Catalogs      []Catalog        `json:"catalogs"`
	Subscriptions []Subscription   `json:"subscriptions"`
	// Approvals are the plans that wait for somebody.
	Approvals []Approval `json:"approvals"`
	// Findings are what is wrong, what waits and what is to be known, the worst first.
	// A plan that waits for approval is among Approvals alone.
	Findings []explain.Finding `json:"findings"`
	// Unseen is what could not be read, with what a role would have to allow.
	Unseen []Unseen `json:"unseen"`
}

// Approval is an InstallPlan that waits to be approved.
type Approval struct {
	Namespace   string `json:"namespace"`
	InstallPlan string `json:"installPlan"`
	// Versions are the ClusterServiceVersions that it installs.
	Versions []string `json:"versions"`
	// Subscriptions are those that it serves.
	Subscriptions []string `json:"subscriptions,omitempty"`
	// Since is when the plan was made.
	Since time.Time `json:"since"`
}

// Unseen is something that could not be read.
type Unseen struct {
	explain.Unseen

	// Rule is what a role would have to allow; nil where that is not what is missing.
	Rule *rbacv1.PolicyRule `json:"rule,omitempty"`
}

// Of gives the status of what was observed.
func Of(o *explain.Observation) Status {
	s := Status{
		Taken: o.Taken, Namespaces: o.Namespaces, Supervisors: supervisors(o), Catalogs: catalogsOf(o),
		Subscriptions: subscriptions(o), Approvals: approvals(o), Findings: []explain.Finding{}, Unseen: []Unseen{},
	}
	others := rival.Recognise(rival.Observation{Workloads: rival.WorkloadsAmong(o.Deployments), Judge: o.ManagerAccess.JudgeAsSeen})
	s.Others = others.Workloads
	s.Findings = append(s.Findings, s.rivalry(others.Active())...)
	s.Findings = append(s.Findings, suspects(&others)...)
	for _, finding := range explain.Examine(o) {
		switch {
		case finding.Code == explain.CodePlanNeedsApproval:
		case finding.Code == explain.CodeSupervisorNotRunning && len(others.Active()) > 0:
			s.Findings = append(s.Findings, leftToOthers(finding, others.Active()))
		default:
			s.Findings = append(s.Findings, finding)
		}
	}
	for _, unseen := range explain.Overlooked(o) {
		one := Unseen{Unseen: unseen}
		if unseen.Why == explain.WhyForbidden {
			rule := unseen.Rule()
			one.Rule = &rule
		}
		s.Unseen = append(s.Unseen, one)
	}
	s.Verdict = s.verdict()
	return s
}

// CodeRival is that of the finding that another lifecycle manager works beside a
// supervisor.
const CodeRival = "AnotherManagerRuns"

// rivalry says that two write the same objects, when they do.
func (s *Status) rivalry(active []rival.Workload) []explain.Finding {
	if !slices.ContainsFunc(s.Supervisors, func(one Supervisor) bool { return one.Leads }) {
		return nil
	}
	var found []explain.Finding
	for i := range active {
		w := &active[i]
		found = append(found, explain.Finding{
			Code: CodeRival, Severity: explain.Wrong, Object: explain.Ref{Kind: explain.KindDeployment, Namespace: w.Namespace, Name: w.Name},
			Cause:  w.Describe() + " works beside the supervisor, and both write the same objects",
			Remedy: "Take over from it (the command takeover says first what that changes), or stop the supervisor.",
		})
	}
	return found
}

// CodeSuspect is that of the finding that a Deployment only looks like another lifecycle
// manager.
const CodeSuspect = "ManagerSuspected"

// suspects returns a finding for each Deployment that looks like OLM's and that supervisors
// ignore. It is a note, as any user of a namespace can create such a Deployment.
func suspects(f *rival.Finding) []explain.Finding {
	found := make([]explain.Finding, 0, len(f.Suspects))
	for i := range f.Suspects {
		w := &f.Suspects[i]
		ref := explain.Ref{Kind: explain.KindDeployment, Namespace: w.Namespace, Name: w.Name}
		found = append(found, explain.Finding{
			Code: CodeSuspect, Severity: explain.Note, Object: ref,
			Cause:  ref.String() + " looks like OLM's " + w.Program + ", and its service account " + w.ServiceAccount + " may not write ClusterServiceVersions or InstallPlans in all namespaces; supervisors ignore it",
			Remedy: "Find out who made it, and delete it. If it does OLM's work with other rights, name its namespace in --manager-namespaces of the supervisor.",
		})
	}
	return found
}

// leftToOthers says of a cluster without a supervisor that another lifecycle manager
// looks after it: nothing is wrong with that.
func leftToOthers(f explain.Finding, active []rival.Workload) explain.Finding {
	names := make([]string, 0, len(active))
	for i := range active {
		names = append(names, active[i].Namespace+"/"+active[i].Name)
	}
	f.Severity, f.Affects, f.Commands = explain.Note, nil, nil
	f.Cause = "no supervisor works here; OLM does, and looks after the operators: " + strings.Join(names, ", ")
	f.Remedy = "To let supervisors do it, take over: the command takeover says first what that changes."
	return f
}

func (s *Status) verdict() Verdict {
	wrong := func(f explain.Finding) bool { return f.Severity == explain.Wrong }
	hidden := func(u Unseen) bool { return u.Why != explain.WhyNotInstalled && !u.Minor }
	switch {
	case slices.ContainsFunc(s.Findings, wrong), slices.ContainsFunc(s.Unseen, absent):
		return Wrong
	case slices.ContainsFunc(s.Unseen, hidden), s.Fallback != "":
		return Unknown
	default:
		return Well
	}
}

// absent says that the cluster lacks a kind without which there are no operators.
func absent(u Unseen) bool { return u.Why == explain.WhyNotInstalled && isOperators(u.Resource) }

// FellBack notes that one namespace was looked at in place of all.
func (s *Status) FellBack(namespace string) {
	s.Fallback = namespace
	s.Verdict = s.verdict()
}

// isOperators says whether a resource is of the API group that everything is about.
func isOperators(resource string) bool {
	return strings.HasSuffix(resource, "."+operatorsv1alpha1.GroupName)
}

// approvals lists the plans that wait, the oldest first.
func approvals(o *explain.Observation) []Approval {
	waiting := []Approval{}
	for i := range o.InstallPlans {
		p := &o.InstallPlans[i]
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval || p.Spec.Approved || p.DeletionTimestamp != nil {
			continue
		}
		waiting = append(waiting, Approval{
			Namespace: p.Namespace, InstallPlan: p.Name, Since: p.CreationTimestamp.Time,
			Versions: append([]string{}, p.Spec.ClusterServiceVersionNames...), Subscriptions: proposal.Served(p),
		})
	}
	slices.SortFunc(waiting, func(a, b Approval) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.InstallPlan, b.InstallPlan))
	})
	return waiting
}

// Subscription is one, with what it got and what it waits for.
type Subscription struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	Channel   string `json:"channel,omitempty"`
	// Catalog is the CatalogSource, with its namespace before a slash.
	Catalog  string `json:"catalog"`
	Approval string `json:"approval,omitempty"`
	// Installed is the ClusterServiceVersion that is there, and InstalledVersion its
	// version.
	Installed        string `json:"installed,omitempty"`
	InstalledVersion string `json:"installedVersion,omitempty"`
	// Available is the one that is to come, where there is one.
	Available        string `json:"available,omitempty"`
	AvailableVersion string `json:"availableVersion,omitempty"`
	State            string `json:"state,omitempty"`
	// Phase is that of the ClusterServiceVersion that is there.
	Phase string `json:"phase,omitempty"`
	// Reason and Message are those of the condition that says most.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// telling are the conditions of a Subscription that say what keeps it, the one that says
// most leading.
func telling() []operatorsv1alpha1.SubscriptionConditionType {
	return []operatorsv1alpha1.SubscriptionConditionType{
		operatorsv1alpha1.SubscriptionInstallPlanFailed,
		operatorsv1alpha1.SubscriptionBundleUnpackFailed,
		operatorsv1alpha1.SubscriptionResolutionFailed,
		"ClusterServiceVersionUnhealthy",
		operatorsv1alpha1.SubscriptionInstallPlanMissing,
		operatorsv1alpha1.SubscriptionInstallPlanPending,
		operatorsv1alpha1.SubscriptionBundleUnpacking,
		operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
		operatorsv1alpha1.SubscriptionDeprecated,
	}
}

func subscriptions(o *explain.Observation) []Subscription {
	all := []Subscription{}
	for i := range o.Subscriptions {
		all = append(all, subscription(o, &o.Subscriptions[i]))
	}
	slices.SortFunc(all, func(a, b Subscription) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

func subscription(o *explain.Observation, sub *operatorsv1alpha1.Subscription) Subscription {
	s := Subscription{
		Namespace: sub.Namespace, Name: sub.Name, State: string(sub.Status.State), Installed: sub.Status.InstalledCSV,
	}
	if spec := sub.Spec; spec != nil {
		s.Package, s.Channel, s.Catalog = spec.Package, spec.Channel, spec.CatalogSourceNamespace+"/"+spec.CatalogSource
		s.Approval = cmp.Or(string(spec.InstallPlanApproval), string(operatorsv1alpha1.ApprovalAutomatic))
	}
	s.InstalledVersion = versionOf(o, sub, s.Installed)
	if csv := findVersion(o, sub.Namespace, s.Installed); csv != nil {
		s.Phase = string(csv.Status.Phase)
	}
	if sub.Status.CurrentCSV != s.Installed {
		s.Available = sub.Status.CurrentCSV
		s.AvailableVersion = versionOf(o, sub, s.Available)
	}
	for _, kind := range telling() {
		if c := sub.Status.GetCondition(kind); c.Status == corev1.ConditionTrue {
			s.Reason, s.Message = cmp.Or(c.Reason, string(kind)), c.Message
			break
		}
	}
	return s
}

func findVersion(o *explain.Observation, namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
	i := slices.IndexFunc(o.Versions, func(csv operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == namespace && csv.Name == name
	})
	if i < 0 || name == "" {
		return nil
	}
	return &o.Versions[i]
}

// versionOf gives the version of a ClusterServiceVersion: as it says itself, as the plan
// that brings it says, or else what its name ends with.
func versionOf(o *explain.Observation, sub *operatorsv1alpha1.Subscription, name string) string {
	if csv := findVersion(o, sub.Namespace, name); csv != nil {
		return cmp.Or(proposal.Declared(csv), proposal.Suffix(name))
	}
	for i := range o.InstallPlans {
		if p := &o.InstallPlans[i]; p.Namespace == sub.Namespace {
			if version := proposal.VersionIn(p, name); version != "" {
				return version
			}
		}
	}
	return proposal.Suffix(name)
}
