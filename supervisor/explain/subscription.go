package explain

import (
	"fmt"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// rule looks for one kind of cause.
type rule struct {
	name string
	find func(*search) []*Finding
}

// rules are in the order in which causes go before others: first what stops everything,
// then what is furthest on the way from a catalog to a running pod.
func rules() []rule {
	return []rule{
		{"nobody acts on it", supervisorFindings},
		{"it is being uninstalled", uninstallFindings},
		{"its plan does not go on", subscribedPlan},
		{"its version is not well", subscribedVersion},
		{"its settings cannot be read", configFindings},
		{"its namespace has not one OperatorGroup", subscribedGroup},
		{"its catalog does not serve", subscribedCatalog},
		{"the image of its bundle is not here", bundleFindings},
		{"nothing fits", resolutionFindings},
		{"a newer version is held", heldVersion},
		{"its plan is gone", planDeleted},
		{"fields of its bundle were dropped", bundleWarnings},
		{"its catalog advises against it", deprecations},
	}
}

// subscriptionFindings finds what keeps the Subscription that is asked about.
func subscriptionFindings(s *search) []Finding {
	status := &s.sub.Status
	at := s.to(s.subject, string(status.State), summaryOf(s))
	if going := terminatingFinding(at, s.sub.Namespace); going != nil {
		// All else is as it is because of that.
		return collected(supervisorFindings(at), []*Finding{going})
	}
	var lists [][]*Finding
	for _, r := range rules() {
		lists = append(lists, r.find(at))
	}
	found := collected(lists...)
	if worst(found) == Note {
		// A resolution that has failed is never on its way, whatever the rules missed.
		lists = append(lists, unresolvedFindings(at))
		found = collected(lists...)
	}
	if worst(found) == Note && (status.InstalledCSV == "" || status.State != operatorsv1alpha1.SubscriptionStateAtLatest) &&
		status.GetCondition(api.ConditionNewerVersionHeld).Status != corev1.ConditionTrue {
		found = append([]Finding{*progressFinding(at)}, found...)
	}
	return found
}

// summaryOf is what the Subscription says of its trouble itself.
func summaryOf(s *search) string {
	for _, kind := range []operatorsv1alpha1.SubscriptionConditionType{
		api.ConditionUninstalling, operatorsv1alpha1.SubscriptionInstallPlanFailed, api.ConditionVersionUnhealthy,
		operatorsv1alpha1.SubscriptionInstallPlanPending, operatorsv1alpha1.SubscriptionBundleUnpackFailed,
		operatorsv1alpha1.SubscriptionResolutionFailed, operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy,
		api.ConditionConfigInvalid, api.ConditionNewerVersionHeld,
	} {
		if c := s.sub.Status.GetCondition(kind); c.Status == corev1.ConditionTrue {
			return fmt.Sprintf("%s (%s)", kind, c.Reason)
		}
	}
	return ""
}

// trueCondition gives the message of a condition that is True.
func trueCondition(s *search, kind operatorsv1alpha1.SubscriptionConditionType) (reason, message string, is bool) {
	c := s.sub.Status.GetCondition(kind)
	return c.Reason, c.Message, c.Status == corev1.ConditionTrue
}

// progressFinding is for a Subscription that goes on, or that nobody has looked at.
func progressFinding(s *search) *Finding {
	status := &s.sub.Status
	if len(status.Conditions) == 0 && status.CurrentCSV == "" {
		if s.Taken.Sub(s.sub.CreationTimestamp.Time) > gracePeriod {
			return s.finding(CodeNotLookedAt, Wrong, s.subject.String()+" has no status, though it is there"+since(&s.sub.CreationTimestamp))
		}
		return s.finding(CodeUnderWay, Note, s.subject.String()+" was made a moment ago")
	}
	what := "it is being looked for what to install"
	at := s
	if ref := status.InstallPlanRef; ref != nil {
		if p := s.plan(s.sub.Namespace, ref.Name); p != nil && p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
			at = at.to(refTo(KindInstallPlan, p), string(p.Status.Phase), p.Status.Message)
			what = fmt.Sprintf("InstallPlan %s is in phase %s", p.Name, orNone(string(p.Status.Phase)))
		}
	}
	if csv := s.version(s.sub.Namespace, status.CurrentCSV); csv != nil && csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
		at = at.to(refTo(KindVersion, csv), string(csv.Status.Phase), csv.Status.Message)
		what = fmt.Sprintf("ClusterServiceVersion %s is in phase %s: %s", csv.Name, orNone(string(csv.Status.Phase)), csv.Status.Message)
	} else if csv != nil {
		what = csv.Name + " runs, which the Subscription does not say yet"
	} else if status.CurrentCSV != "" {
		what = status.CurrentCSV + " is on its way: " + what
	}
	return at.finding(CodeUnderWay, Note, what)
}

func orNone(phase string) string {
	if phase == "" {
		return "none yet"
	}
	return phase
}

// uninstallFindings is for a Subscription that is being deleted and takes its operator along.
func uninstallFindings(s *search) []*Finding {
	if s.sub.DeletionTimestamp.IsZero() {
		return nil
	}
	reason, message, is := trueCondition(s, api.ConditionUninstalling)
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
		f := s.finding(CodeUninstallHeld, Waiting, fmt.Sprintf("%s is being deleted%s and its finalizers hold it: %s",
			s.subject, since(s.sub.DeletionTimestamp), strings.Join(s.sub.Finalizers, ", ")))
		if s.sub.Annotations[api.AnnotationOnDelete] == "" {
			f = f.withRemedy("see why whoever set the finalizers " + strings.Join(s.sub.Finalizers, ", ") + " does not take them away").
				withCommands(kubectl("get", s.subject, "-o yaml"))
		}
		return []*Finding{f}
	}
	severity := Waiting
	if reason == api.ReasonStillRequired {
		severity = Wrong
	}
	return []*Finding{s.finding(CodeUninstallHeld, severity, s.subject.String()+" is being uninstalled: "+message)}
}

func configFindings(s *search) []*Finding {
	_, message, is := trueCondition(s, api.ConditionConfigInvalid)
	if !is {
		return nil
	}
	return []*Finding{s.finding(CodeConfigInvalid, Wrong, s.subject.String()+": "+message).withCommands(kubectl("edit", s.subject, ""))}
}

// subscribedGroup looks at the OperatorGroups of the Subscription's namespace.
func subscribedGroup(s *search) []*Finding {
	if f := groupFinding(s, s.sub.Namespace); f != nil {
		return []*Finding{f}
	}
	return nil
}

// groupFinding finds what is wrong with the OperatorGroups of a namespace.
func groupFinding(s *search, namespace string) *Finding {
	if f := terminatingFinding(s, namespace); f != nil {
		return f
	}
	groups, seen := s.groups(namespace)
	if !seen {
		return nil
	}
	if len(groups) == 0 {
		f := s.finding(CodeGroupMissing, Wrong, "namespace "+namespace+" has no OperatorGroup, so that nothing is installed in it")
		f.Object = Ref{Kind: KindNamespace, Name: namespace}
		return f.withCommands("kubectl create -f - <<EOF\napiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata:\n  name: operators\n  namespace: " + namespace +
			"\nspec:\n  targetNamespaces: [" + namespace + "]\nEOF")
	}
	if len(groups) > 1 {
		names := make([]string, 0, len(groups))
		for _, g := range groups {
			names = append(names, g.Name)
		}
		f := s.finding(CodeGroupAmbiguous, Wrong, fmt.Sprintf("namespace %s has %d OperatorGroups (%s), so that nothing is installed in it",
			namespace, len(groups), strings.Join(names, ", ")))
		f.Object = Ref{Kind: KindNamespace, Name: namespace}
		return f.withCommands("kubectl -n " + namespace + " delete operatorgroup " + names[len(names)-1])
	}
	group := groups[0]
	at := s.to(refTo(KindOperatorGroup, group), "", "")
	for i := range group.Status.Conditions {
		c := &group.Status.Conditions[i]
		switch {
		case c.Type == operatorsv1.OperatorGroupServiceAccountCondition && c.Status == metav1.ConditionTrue:
			return groupAccountFinding(at, group.Spec.ServiceAccountName)
		case c.Type == api.ConditionTargetsResolved && c.Status == metav1.ConditionFalse:
			return at.finding(CodeGroupTargetsInvalid, Wrong, at.at().String()+": "+c.Message).withCommands(kubectl("edit", at.at(), ""))
		}
	}
	return nil
}

// groupAccountFinding is for an OperatorGroup whose ServiceAccount is missing.
func groupAccountFinding(s *search, account string) *Finding {
	group := s.at()
	return s.finding(CodeGroupAccountMissing, Wrong, fmt.Sprintf("%s names ServiceAccount %s in spec.serviceAccountName, which does not exist", group, account)).
		withCommands(fmt.Sprintf("kubectl -n %s create serviceaccount %s", group.Namespace, account))
}

// blockedOf returns the exact reason why a Subscription has no answer, and what to do; empty where OLM or a former
// release wrote the status.
func blockedOf(sub *operatorsv1alpha1.Subscription) (reason, remedy string) {
	c := sub.Status.GetCondition(api.ConditionBlocked)
	if c.Status != corev1.ConditionTrue {
		return "", ""
	}
	return c.Reason, c.Message
}

// unpacking begins the message of BundleUnpackFailed.
const unpacking = "Bundle unpacking failed - "

// bundleFindings is for a bundle image that cannot be pulled or used.
func bundleFindings(s *search) []*Finding {
	reason, message, is := trueCondition(s, operatorsv1alpha1.SubscriptionBundleUnpackFailed)
	if !is || len(subscribedPlan(s)) > 0 {
		return nil // the plan names the image
	}
	_, remedy := blockedOf(s.sub)
	code := CodeBundleUnusable
	if reason == api.ReasonBundleUnpackFailed {
		code, message = CodeBundleImage, "image of a bundle cannot be pulled: "+strings.TrimPrefix(message, unpacking)
	}
	return []*Finding{s.finding(code, Wrong, s.subject.String()+": "+message).withRemedy(remedy)}
}

// resolutionFindings is for a Subscription that nothing fits.
func resolutionFindings(s *search) []*Finding {
	general, message, is := trueCondition(s, operatorsv1alpha1.SubscriptionResolutionFailed)
	if !is {
		return nil
	}
	reason, remedy := blockedOf(s.sub)
	if reason == "" && general == api.ReasonConstraintsNotSatisfiable {
		reason = general // OLM or a former release wrote the status
	}
	spec := s.sub.Spec
	catalog := fmt.Sprintf("CatalogSource %s/%s", spec.CatalogSourceNamespace, spec.CatalogSource)
	code, cause := CodeUnsatisfiable, message
	switch reason {
	case "", api.ReasonCatalogNotFound, api.ReasonCatalogExcluded, api.ReasonCatalogUnavailable, api.ReasonOperatorGroupInvalid:
		return nil // other rules have the cause, or the last one has
	case api.ReasonResolutionFailed:
		code = CodeResolutionFailed
	case api.ReasonPackageNotFound:
		code, cause = CodePackageMissing, fmt.Sprintf("%s has no package %s (spec.name)", catalog, spec.Package)
	case api.ReasonStartingVersionNotFound:
		code, cause = CodeStartingMissing, fmt.Sprintf("channel %s of package %s in %s has no version %s (spec.startingCSV)", spec.Channel, spec.Package, catalog, spec.StartingCSV)
	case api.ReasonPinNotFound:
		code = CodeStartingMissing
	case api.ReasonChannelNotFound:
		code, cause = CodeChannelMissing, fmt.Sprintf("package %s in %s has no channel %s (spec.channel)", spec.Package, catalog, spec.Channel)
	case api.ReasonDependencyNotFound:
		code = CodeDependencyMissing
	}
	return []*Finding{s.finding(code, Wrong, s.subject.String()+": "+cause).withRemedy(remedy).withCommands(kubectl("edit", s.subject, ""))}
}

// unresolvedFindings is for a resolution that has failed for what no other rule sees.
func unresolvedFindings(s *search) []*Finding {
	_, message, is := trueCondition(s, operatorsv1alpha1.SubscriptionResolutionFailed)
	if !is {
		return nil
	}
	_, remedy := blockedOf(s.sub)
	return []*Finding{s.finding(CodeResolutionFailed, Wrong, s.subject.String()+": "+message).withRemedy(remedy).withCommands(kubectl("edit", s.subject, ""))}
}

// heldVersion is for a newer version that cannot be had now.
func heldVersion(s *search) []*Finding {
	reason, message, is := trueCondition(s, api.ConditionNewerVersionHeld)
	if !is {
		return nil
	}
	switch reason {
	case api.ReasonPinned:
		return []*Finding{s.finding(CodePinned, Note, s.subject.String()+" is pinned: "+message).
			withCommands(kubectl("annotate", s.subject, api.AnnotationPin+"-"))}
	case api.ReasonConstraintsNotSatisfiable:
		return []*Finding{s.finding(CodeHeld, Waiting, s.subject.String()+": a newer version cannot be had: "+message)}
	default:
		return nil // the version itself tells
	}
}

func planDeleted(s *search) []*Finding {
	_, message, is := trueCondition(s, operatorsv1alpha1.SubscriptionInstallPlanMissing)
	if !is {
		return nil
	}
	return []*Finding{s.finding(CodePlanGone, Note, s.subject.String()+": "+message)}
}

func deprecations(s *search) []*Finding {
	for _, kind := range []operatorsv1alpha1.SubscriptionConditionType{
		operatorsv1alpha1.SubscriptionPackageDeprecated, operatorsv1alpha1.SubscriptionChannelDeprecated, operatorsv1alpha1.SubscriptionBundleDeprecated,
	} {
		if _, message, is := trueCondition(s, kind); is {
			return []*Finding{s.finding(CodeDeprecated, Note, s.subject.String()+": the catalog advises against it: "+message)}
		}
	}
	return nil
}

// since says since when something is so; empty when that is not known.
func since(at *metav1.Time) string {
	if at.IsZero() {
		return ""
	}
	return " since " + at.UTC().Format(timeFormat)
}
