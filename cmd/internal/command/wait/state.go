package wait

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/cmd/internal/plansummary"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/explain"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// Goal is the state of a Subscription to wait for.
type Goal string

// The goals.
const (
	// Installed means that a version runs.
	Installed Goal = "installed"
	// Latest means that a version runs, and no newer one is known.
	Latest Goal = "latest"
	// Approval means that an InstallPlan waits for approval.
	Approval Goal = "approval"
)

func goals() []string { return []string{string(Installed), string(Latest), string(Approval)} }

// Objects are the objects that show the state of a Subscription. Objects that do not exist are nil.
type Objects struct {
	Subscription *operatorsv1alpha1.Subscription
	// Plan is the InstallPlan that the Subscription refers to.
	Plan *operatorsv1alpha1.InstallPlan
	// Installed and Current are the ClusterServiceVersions of status.installedCSV and status.currentCSV.
	Installed, Current *operatorsv1alpha1.ClusterServiceVersion
}

// names returns the names of the installed ClusterServiceVersion and of the InstallPlan.
func (o *Objects) names() (installed, plan string) {
	if o.Subscription != nil {
		installed = o.Subscription.Status.InstalledCSV
	}
	if o.Plan != nil {
		plan = o.Plan.Name
	}
	return installed, plan
}

// Pending reports whether the InstallPlan waits for approval.
func (o *Objects) Pending() bool {
	return o.Plan != nil && !o.Plan.Spec.Approved && o.Plan.Status.Phase == operatorsv1alpha1.InstallPlanPhaseRequiresApproval
}

// SubscriptionState returns the state of a Subscription. version is the number or the ClusterServiceVersion that has to
// be installed; empty for any.
func SubscriptionState(name string, o *Objects, goal Goal, version string) console.WaitState {
	s := console.WaitState{Object: "Subscription " + name}
	switch failure := o.failure(version); {
	case o.Subscription == nil:
		s.Is, s.Done, s.Failed = "does not exist; check the name and --namespace", true, true
	case o.Subscription.DeletionTimestamp != nil:
		s.Is, s.Done, s.Failed = "is being deleted", true, true
	case goal == Approval && o.Pending():
		s.Is, s.Done = "waits for approval of "+planText(o.Plan), true
	case failure != "":
		s.Is, s.Done, s.Failed = "failed: "+failure, true, true
	case goal != Approval && o.reached(goal, version):
		s.Is, s.Done = "has "+o.Installed.Name+" installed", true
	default:
		s.Is = o.progress()
	}
	return s
}

// failure returns why the InstallPlan or the newest version failed; empty if neither did. version is the awaited version,
// empty for any.
func (o *Objects) failure(version string) string {
	if p := o.Plan; p != nil && p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
		return "InstallPlan " + p.Name + ": " + bundles.OneLine(cmp.Or(planMessage(p), "phase Failed"))
	}
	csv := o.Current
	if csv == nil || csv.Status.Phase != operatorsv1alpha1.CSVPhaseFailed || o.isReplaced(csv, version) {
		return ""
	}
	return "ClusterServiceVersion " + csv.Name + ": " + bundles.OneLine(cmp.Or(csv.Status.Message, "phase Failed"))
}

// isReplaced reports whether another version than the newest existing one is awaited: an unfinished InstallPlan installs it,
// or the newest existing one was installed before. An OperatorGroup may allow that a version replaces a failed one.
func (o *Objects) isReplaced(csv *operatorsv1alpha1.ClusterServiceVersion, version string) bool {
	p := o.Plan
	if p != nil && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete && !slices.Contains(p.Spec.ClusterServiceVersionNames, csv.Name) {
		return true
	}
	return o.Subscription.Status.InstalledCSV == csv.Name && !isVersion(csv, version)
}

func planMessage(p *operatorsv1alpha1.InstallPlan) string {
	i := slices.IndexFunc(p.Status.Conditions, func(c operatorsv1alpha1.InstallPlanCondition) bool {
		return c.Type == operatorsv1alpha1.InstallPlanInstalled && c.Message != ""
	})
	if i < 0 {
		return p.Status.Message
	}
	return p.Status.Conditions[i].Message
}

// reached reports whether a Subscription is in the state of a goal other than Approval.
func (o *Objects) reached(goal Goal, version string) bool {
	csv := o.Installed
	if csv == nil || csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		return false
	}
	if goal == Latest && o.Subscription.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
		return false
	}
	return isVersion(csv, version)
}

// isVersion reports whether a ClusterServiceVersion has a number or a name, which is empty for any.
func isVersion(csv *operatorsv1alpha1.ClusterServiceVersion, version string) bool {
	return version == "" || version == csv.Name || strings.TrimPrefix(version, "v") == plansummary.Declared(csv)
}

// progress describes a Subscription that has not reached its goal.
func (o *Objects) progress() string {
	shown := &o.Subscription.Status
	reason, message := explain.MainCondition(o.Subscription)
	installation := o.installation()
	switch {
	case o.Pending():
		return "waits for approval of " + planText(o.Plan)
	case reason != "" && (installation == "" || !o.allowsInstallation(reason)):
		return withMessage(reason, message)
	case installation != "":
		return installation
	case shown.InstalledCSV != "":
		return fmt.Sprintf("has %s installed, state %s", shown.InstalledCSV, cmp.Or(string(shown.State), "none yet"))
	default:
		return "has no version yet"
	}
}

// allowsInstallation reports whether the reason is of a condition that does not stop an installation in progress.
func (o *Objects) allowsInstallation(reason string) bool {
	for _, kind := range []operatorsv1alpha1.SubscriptionConditionType{
		operatorsv1alpha1.SubscriptionInstallPlanPending, operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy, operatorsv1alpha1.SubscriptionDeprecated,
	} {
		if c := o.Subscription.Status.GetCondition(kind); c.Status == corev1.ConditionTrue && cmp.Or(c.Reason, string(kind)) == reason {
			return true
		}
	}
	return false
}

// installation describes the InstallPlan and the version that are in progress; empty if neither is.
func (o *Objects) installation() string {
	var parts []string
	if p := o.Plan; p != nil && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseFailed {
		parts = append(parts, planProgress(p))
	}
	if csv := o.Current; csv != nil && csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		text := fmt.Sprintf("installs %s: phase %s", csv.Name, cmp.Or(string(csv.Status.Phase), "none yet"))
		if reason := string(csv.Status.Reason); reason != "" {
			text += ", " + reason
		}
		parts = append(parts, withMessage(text, csv.Status.Message))
	}
	return strings.Join(parts, "; ")
}

// planProgress describes the progress of an InstallPlan: its phase, the number of applied steps, and the next step.
func planProgress(p *operatorsv1alpha1.InstallPlan) string {
	text := fmt.Sprintf("has InstallPlan %s in phase %s", p.Name, cmp.Or(string(p.Status.Phase), "none yet"))
	done, next := 0, ""
	for _, s := range p.Status.Plan {
		switch {
		case plansteps.IsApplied(s.Status):
			done++
		case next == "":
			next = ", next is " + s.Resource.Kind + " " + s.Resource.Name
		}
	}
	if steps := len(p.Status.Plan); steps > 0 {
		text += fmt.Sprintf(", %d of %d steps done%s", done, steps, next)
	}
	return withMessage(text, p.Status.Message)
}

// withMessage returns a text with a message, if there is one, in one line.
func withMessage(text, message string) string {
	return bundles.OneLine(strings.TrimSuffix(text+": "+message, ": "))
}

// planText names an InstallPlan and its versions.
func planText(p *operatorsv1alpha1.InstallPlan) string {
	return "InstallPlan " + p.Name + " (" + strings.Join(p.Spec.ClusterServiceVersionNames, ", ") + ")"
}

// ready is the state of a working connection to a catalog.
const ready = "READY"

// CatalogState returns the state of a CatalogSource, which is nil if it does not exist.
func CatalogState(name string, source *operatorsv1alpha1.CatalogSource) console.WaitState {
	s := console.WaitState{Object: "CatalogSource " + name}
	if source == nil {
		s.Is, s.Done, s.Failed = "does not exist; check the name and --namespace", true, true
		return s
	}
	state := "none yet"
	if connection := source.Status.GRPCConnectionState; connection != nil {
		state = cmp.Or(connection.LastObservedState, state)
	}
	s.Is, s.Done = "has connection state "+state, state == ready
	if !s.Done && isInvalid(source) {
		s.Done, s.Failed = true, true
	}
	if reason := string(source.Status.Reason); reason != "" && state != ready {
		s.Is += ", " + withMessage(reason, source.Status.Message)
	}
	return s
}

// isInvalid reports whether a CatalogSource stays unready until a user corrects it. The reason is not sufficient: the
// supervisor also sets it while a catalog starts without a setting that has no effect.
func isInvalid(source *operatorsv1alpha1.CatalogSource) bool {
	if source.Status.Reason != operatorsv1alpha1.CatalogSourceSpecInvalidError {
		return false
	}
	if _, problem := catalogs.SpecProblem(source); problem != "" {
		return true
	}
	progressing := apimeta.FindStatusCondition(source.Status.Conditions, api.ConditionProgressing)
	return progressing != nil && progressing.Reason == api.ReasonBlocked && progressing.ObservedGeneration == source.Generation
}
