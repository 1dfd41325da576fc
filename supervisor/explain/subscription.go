package explain

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// rule finds one kind of cause.
type rule struct {
	name string
	find func(*search) []*Finding
}

// rules returns the rules in their order: causes that stop everything come first, and then those that are furthest
// from the catalog.
func rules() []rule {
	return []rule{
		{"no supervisor leads", supervisorFindings},
		{"it is being uninstalled", uninstallFindings},
		{"its plan is blocked", subscribedPlan},
		{"its version is blocked", subscribedVersion},
		{"its settings cannot be read", configFindings},
		{"its namespace does not have one OperatorGroup", subscribedGroup},
		{"its catalog is blocked", subscribedCatalog},
		{"its bundle image is missing", bundleFindings},
		{"the resolution failed", resolutionFindings},
		{"a newer version is held", heldVersion},
		{"its plan was deleted", planDeleted},
		{"fields of its bundle were dropped", bundleWarnings},
		{"its catalog deprecates it", deprecations},
	}
}

// subscriptionFindings returns what blocks the Subscription of the question.
func subscriptionFindings(s *search) []Finding {
	status := &s.sub.Status
	at := s.follow(s.subject, string(status.State), summaryOf(s.sub))
	if terminating := terminatingFinding(at, s.sub.Namespace); terminating != nil {
		// It causes all other problems.
		return collected(supervisorFindings(at), []*Finding{terminating})
	}
	var lists [][]*Finding
	for _, r := range rules() {
		lists = append(lists, r.find(at))
	}
	found := collected(lists...)
	if worst(found) == Note {
		// A failed resolution is not in progress.
		lists = append(lists, unresolvedFindings(at))
		found = collected(lists...)
	}
	if worst(found) == Note && (status.InstalledCSV == "" || status.State != operatorsv1alpha1.SubscriptionStateAtLatest) &&
		status.GetCondition(api.ConditionNewerVersionHeld).Status != corev1.ConditionTrue {
		found = append([]Finding{*progressFinding(at)}, found...)
	}
	return found
}

// summaryOf returns the most important condition of a Subscription with its reason; empty if none is True.
func summaryOf(sub *operatorsv1alpha1.Subscription) string {
	for _, kind := range []operatorsv1alpha1.SubscriptionConditionType{
		api.ConditionUninstalling, operatorsv1alpha1.SubscriptionInstallPlanFailed, api.ConditionVersionUnhealthy,
		operatorsv1alpha1.SubscriptionInstallPlanPending, operatorsv1alpha1.SubscriptionBundleUnpackFailed,
		operatorsv1alpha1.SubscriptionResolutionFailed, operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
		api.ConditionConfigInvalid, api.ConditionNewerVersionHeld,
	} {
		if c := sub.Status.GetCondition(kind); c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s (%s)", kind, c.Reason)
		}
	}
	return ""
}

// trueCondition returns the reason and the message of a condition, and whether it is True.
func trueCondition(sub *operatorsv1alpha1.Subscription, kind operatorsv1alpha1.SubscriptionConditionType) (reason, message string, is bool) {
	c := sub.Status.GetCondition(kind)
	return c.Reason, c.Message, c.Status == corev1.ConditionTrue
}

// progressFinding returns the finding about a Subscription that nothing blocks, or that has no status yet.
func progressFinding(s *search) *Finding {
	status := &s.sub.Status
	if len(status.Conditions) == 0 && status.CurrentCSV == "" {
		if s.ReadAt.Sub(s.sub.CreationTimestamp.Time) > gracePeriod {
			return s.finding(CodeNotReconciled, Wrong, s.subject.String()+" has had no status"+since(&s.sub.CreationTimestamp))
		}
		return s.finding(CodeInProgress, Note, s.subject.String()+" was created a moment ago")
	}
	what := "resolving dependencies"
	at := s
	if ref := status.InstallPlanRef; ref != nil {
		if p := s.plan(s.sub.Namespace, ref.Name); p != nil && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			at = at.follow(refTo(KindInstallPlan, p), string(p.Status.Phase), p.Status.Message)
			what = fmt.Sprintf("InstallPlan %s is in phase %s", p.Name, orNone(string(p.Status.Phase)))
		}
	}
	if csv := s.version(s.sub.Namespace, status.CurrentCSV); csv != nil && csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		at = at.follow(refTo(KindVersion, csv), string(csv.Status.Phase), csv.Status.Message)
		what = fmt.Sprintf("ClusterServiceVersion %s is in phase %s: %s", csv.Name, orNone(string(csv.Status.Phase)), problemOf(csv))
	} else if csv != nil {
		what = csv.Name + " runs; the status of the Subscription does not show this yet"
	} else if status.CurrentCSV != "" {
		what = status.CurrentCSV + " is being installed: " + what
	}
	return at.finding(CodeInProgress, Note, what)
}

// orNone returns a phase, or words for an empty one.
func orNone(phase string) string {
	if phase == "" {
		return "none yet"
	}
	return phase
}

// uninstallFindings returns what blocks the deletion of a Subscription.
func uninstallFindings(s *search) []*Finding {
	if s.sub.DeletionTimestamp.IsZero() {
		return nil
	}
	reason, message, is := trueCondition(s.sub, api.ConditionUninstalling)
	for _, name := range []string{s.sub.Status.InstalledCSV, s.sub.Status.CurrentCSV} {
		csv := find(s.Versions, Ref{Namespace: s.sub.Namespace, Name: name})
		if csv == nil || csv.DeletionTimestamp.IsZero() || reason != api.ReasonWaitingOnCleanup {
			continue
		}
		if found := cleanupFinding(s, csv); found != nil {
			return []*Finding{found}
		}
	}
	if !is {
		f := s.finding(CodeUninstallBlocked, Waiting, fmt.Sprintf("%s is being deleted%s, but has finalizers: %s",
			s.subject, since(s.sub.DeletionTimestamp), strings.Join(s.sub.Finalizers, ", ")))
		if s.sub.Annotations[api.AnnotationOnDelete] == "" {
			f = f.withRemedy("find out why the controller of the finalizers " + strings.Join(s.sub.Finalizers, ", ") + " does not remove them").
				withCommands(kubectl("get", s.subject, "-o yaml"))
		}
		return []*Finding{f}
	}
	severity := Waiting
	if reason == api.ReasonStillRequired {
		severity = Wrong
	}
	return []*Finding{s.finding(CodeUninstallBlocked, severity, s.subject.String()+" is being uninstalled: "+message)}
}

// configFindings returns the finding about settings that cannot be read.
func configFindings(s *search) []*Finding {
	_, message, is := trueCondition(s.sub, api.ConditionConfigInvalid)
	if !is {
		return nil
	}
	return []*Finding{s.finding(CodeConfigInvalid, Wrong, s.subject.String()+": "+message).withCommands(kubectl("edit", s.subject, ""))}
}

// since returns the time as the end of a sentence; empty for a zero time.
func since(at *metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return " since " + at.UTC().Format(timeFormat)
}
