package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/plansummary"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// Verdict is the overall state.
type Verdict string

const (
	// Well means that nothing is wrong. Something may wait for approval.
	Well Verdict = "Well"
	// Wrong means that something does not progress without intervention.
	Wrong Verdict = "Wrong"
	// Unknown means that nothing is known to be wrong, and that something could not be read.
	Unknown Verdict = "Unknown"
)

// exit returns the error that sets the exit code.
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

// Status is the state of the operators of a cluster and of what reconciles them.
type Status struct {
	// ReadAt is the time at which the objects were read.
	ReadAt time.Time `json:"taken"`
	// Cluster is the cluster that was read.
	Cluster console.Cluster `json:"cluster"`
	// Namespaces are the namespaces that were read; empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Fallback is the namespace that was read because the user may not read all.
	Fallback string `json:"fallback,omitempty"`
	// Verdict sums it up.
	Verdict Verdict `json:"verdict"`
	// Supervisors are the Leases of supervisors. A correct installation has one. Without a Lease, they are the namespaces
	// with pods of supervisors.
	Supervisors []Supervisor `json:"supervisors"`
	// Others are Deployments of another lifecycle manager. They are known if all namespaces were
	// read and the user may list all Deployments.
	Others        []competing.Workload `json:"others,omitempty"`
	Catalogs      []Catalog            `json:"catalogs"`
	Subscriptions []Subscription       `json:"subscriptions"`
	// Approvals are the InstallPlans that wait for approval.
	Approvals []Approval `json:"approvals"`
	// Findings are problems, waits and notes, the worst first. InstallPlans that wait for approval
	// are in Approvals only.
	Findings []explain.Finding `json:"findings"`
	// Unreadable is what could not be read, with the missing permission.
	Unreadable []Unreadable `json:"unseen"`
}

// Approval is an InstallPlan that waits for approval.
type Approval struct {
	Namespace   string `json:"namespace"`
	InstallPlan string `json:"installPlan"`
	// Versions are the ClusterServiceVersions that the InstallPlan installs.
	Versions []string `json:"versions"`
	// Subscriptions are the Subscriptions that the InstallPlan serves.
	Subscriptions []string `json:"subscriptions,omitempty"`
	// Since is the creation time of the InstallPlan.
	Since time.Time `json:"since"`
}

// Unreadable is something that could not be read.
type Unreadable struct {
	explain.Unreadable

	// Rule is the missing permission; nil if the cause is another.
	Rule *rbacv1.PolicyRule `json:"rule,omitempty"`
}

// Of returns the status of a cluster.
func Of(o *explain.ClusterState) Status {
	s := Status{
		ReadAt: o.ReadAt, Namespaces: o.Namespaces, Supervisors: supervisors(o), Catalogs: catalogsOf(o),
		Subscriptions: subscriptions(o), Approvals: approvals(o), Findings: []explain.Finding{}, Unreadable: []Unreadable{},
	}
	others := competing.Evaluate(competing.Input{Workloads: competing.WorkloadsAmong(o.Deployments), Classify: o.ManagerAccess.ClassifyByAppearance})
	s.Others = others.Workloads
	s.Findings = append(s.Findings, s.competingManagers(others.Active())...)
	s.Findings = append(s.Findings, suspectedManagers(&others)...)
	for _, finding := range explain.Examine(o) {
		switch {
		case finding.Code == explain.CodePlanNeedsApproval:
		case finding.Code == explain.CodeSupervisorNotRunning && len(others.Active()) > 0:
			s.Findings = append(s.Findings, reconciledByOLM(finding, others.Active(), supervisorsIn(o.Pods)))
		default:
			s.Findings = append(s.Findings, finding)
		}
	}
	for _, unreadable := range explain.UnreadableObjects(o) {
		one := Unreadable{Unreadable: unreadable}
		if unreadable.Reason == explain.UnreadableForbidden {
			rule := unreadable.Rule()
			one.Rule = &rule
		}
		s.Unreadable = append(s.Unreadable, one)
	}
	s.Verdict = s.verdict()
	return s
}

// showMigration shows what a migration from OLM would change.
const showMigration = "kubectl chandlery migrate --dry-run"

// CodeCompetingManager is the code of the finding that another lifecycle manager works beside a supervisor.
const CodeCompetingManager = "AnotherManagerRuns"

// isLed reports whether a supervisor leads.
func (s *Status) isLed() bool {
	return slices.ContainsFunc(s.Supervisors, func(one Supervisor) bool { return one.Leads })
}

// waits reports whether there are pods of supervisors, and none leads.
func (s *Status) waits() bool {
	return !s.isLed() && slices.ContainsFunc(s.Supervisors, func(one Supervisor) bool { return len(one.Standbys) > 0 })
}

// competingManagers returns findings if another manager and a supervisor write the same objects.
func (s *Status) competingManagers(active []competing.Workload) []explain.Finding {
	if !s.isLed() {
		return nil
	}
	var found []explain.Finding
	for i := range active {
		w := &active[i]
		found = append(found, explain.Finding{
			Code: CodeCompetingManager, Severity: explain.Wrong, Object: explain.Ref{Kind: explain.KindDeployment, Namespace: w.Namespace, Name: w.Name},
			Cause:  w.Describe() + " runs beside the supervisor, and both write the same objects",
			Remedy: "Migrate from it, or stop the supervisor.", Commands: []string{showMigration},
		})
	}
	return found
}

// CodeSuspect is the code of the finding that a Deployment only looks like another lifecycle manager.
const CodeSuspect = "ManagerSuspected"

// suspectedManagers returns a finding for each Deployment that looks like OLM's and that supervisors
// ignore. It is a note, as any user of a namespace can create such a Deployment.
func suspectedManagers(f *competing.Finding) []explain.Finding {
	found := make([]explain.Finding, 0, len(f.Suspects))
	for i := range f.Suspects {
		w := &f.Suspects[i]
		ref := explain.Ref{Kind: explain.KindDeployment, Namespace: w.Namespace, Name: w.Name}
		found = append(found, explain.Finding{
			Code: CodeSuspect, Severity: explain.Note, Object: ref,
			Cause:  ref.String() + " looks like OLM's " + w.Program + ", and its service account " + w.ServiceAccount + " lacks permission to write ClusterServiceVersions or InstallPlans in all namespaces; supervisors ignore it",
			Remedy: "Find out who created it, and delete it. If it manages operators with other permissions, name its namespace in --manager-namespaces of the supervisor.",
		})
	}
	return found
}

// reconciledByOLM changes the finding of a cluster without a leading supervisor to a note if another lifecycle manager
// reconciles the operators. waiting are the pods of supervisors.
func reconciledByOLM(f explain.Finding, active []competing.Workload, waiting []string) explain.Finding {
	names := make([]string, 0, len(active))
	for i := range active {
		names = append(names, active[i].Namespace+"/"+active[i].Name)
	}
	f.Severity, f.Affects, f.Commands = explain.Note, nil, []string{showMigration}
	f.Cause = "no supervisor runs in this cluster; OLM manages the operators: " + strings.Join(names, ", ")
	if len(waiting) > 0 {
		f.Cause = "supervisors wait until OLM has stopped (" + strings.Join(waiting, ", ") + "); OLM manages the operators: " + strings.Join(names, ", ")
	}
	f.Remedy = "To manage them with supervisors, migrate."
	return f
}

func (s *Status) verdict() Verdict {
	wrong := func(f explain.Finding) bool { return f.Severity == explain.Wrong }
	hidden := func(u Unreadable) bool { return u.Reason != explain.UnreadableNotInstalled && !u.Minor }
	switch {
	case slices.ContainsFunc(s.Findings, wrong), slices.ContainsFunc(s.Unreadable, lacksKind):
		return Wrong
	case slices.ContainsFunc(s.Unreadable, hidden), s.Fallback != "":
		return Unknown
	default:
		return Well
	}
}

// lacksKind reports whether the cluster lacks a kind that operators require.
func lacksKind(u Unreadable) bool {
	return u.Reason == explain.UnreadableNotInstalled && isOperators(u.Resource)
}

// SetFallback records that one namespace was read instead of all.
func (s *Status) SetFallback(namespace string) {
	s.Fallback = namespace
	s.Verdict = s.verdict()
}

// isOperators reports whether a resource belongs to operators.coreos.com.
func isOperators(resource string) bool {
	return strings.HasSuffix(resource, "."+operatorsv1alpha1.GroupName)
}

// approvals returns the InstallPlans that wait, the oldest first.
func approvals(o *explain.ClusterState) []Approval {
	waiting := []Approval{}
	for i := range o.InstallPlans {
		p := &o.InstallPlans[i]
		if p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseRequiresApproval || p.Spec.Approved || p.DeletionTimestamp != nil {
			continue
		}
		waiting = append(waiting, Approval{
			Namespace: p.Namespace, InstallPlan: p.Name, Since: p.CreationTimestamp.Time,
			Versions: append([]string{}, p.Spec.ClusterServiceVersionNames...), Subscriptions: plansummary.Subscriptions(p),
		})
	}
	slices.SortFunc(waiting, func(a, b Approval) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.InstallPlan, b.InstallPlan))
	})
	return waiting
}

// Subscription is a Subscription with its installed and its next version.
type Subscription struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Package   string `json:"package"`
	Channel   string `json:"channel,omitempty"`
	// Catalog is the CatalogSource as NAMESPACE/NAME.
	Catalog  string `json:"catalog"`
	Approval string `json:"approval,omitempty"`
	// Installed is the installed ClusterServiceVersion, and InstalledVersion is its version.
	Installed        string `json:"installed,omitempty"`
	InstalledVersion string `json:"installedVersion,omitempty"`
	// Available is the next ClusterServiceVersion, if there is one.
	Available        string `json:"available,omitempty"`
	AvailableVersion string `json:"availableVersion,omitempty"`
	State            string `json:"state,omitempty"`
	// Phase is the phase of the installed ClusterServiceVersion.
	Phase string `json:"phase,omitempty"`
	// Reason and Message come from the most important condition.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func subscriptions(o *explain.ClusterState) []Subscription {
	all := []Subscription{}
	for i := range o.Subscriptions {
		all = append(all, subscription(o, &o.Subscriptions[i]))
	}
	slices.SortFunc(all, func(a, b Subscription) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all
}

func subscription(o *explain.ClusterState, sub *operatorsv1alpha1.Subscription) Subscription {
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
	s.Reason, s.Message = explain.MainCondition(sub)
	return s
}

func findVersion(o *explain.ClusterState, namespace, name string) *operatorsv1alpha1.ClusterServiceVersion {
	i := slices.IndexFunc(o.Versions, func(csv operatorsv1alpha1.ClusterServiceVersion) bool {
		return csv.Namespace == namespace && csv.Name == name
	})
	if i < 0 || name == "" {
		return nil
	}
	return &o.Versions[i]
}

// versionOf returns the version of a ClusterServiceVersion: its own version, the version in its
// InstallPlan, or the suffix of its name.
func versionOf(o *explain.ClusterState, sub *operatorsv1alpha1.Subscription, name string) string {
	if csv := findVersion(o, sub.Namespace, name); csv != nil {
		return cmp.Or(plansummary.Declared(csv), plansummary.Suffix(name))
	}
	for i := range o.InstallPlans {
		if p := &o.InstallPlans[i]; p.Namespace == sub.Namespace {
			if version := plansummary.VersionIn(p, name); version != "" {
				return version
			}
		}
	}
	return plansummary.Suffix(name)
}
