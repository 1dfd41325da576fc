package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

const (
	// stateReady is the state of a connection that works.
	stateReady = "READY"
	// gracePeriod is how long an operation may take that usually takes seconds.
	gracePeriod = time.Minute
)

// conditionOf returns the condition of a type; nil if there is none.
func conditionOf(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// catalogFindings returns what blocks a catalog. A catalog that serves has notes only.
func catalogFindings(s *search, source *operatorsv1alpha1.CatalogSource) []*Finding {
	status := &source.Status
	state := ""
	if status.GRPCConnectionState != nil {
		state = status.GRPCConnectionState.LastObservedState
	}
	at := s.follow(refTo(KindCatalogSource, source), state, status.Message)
	found := catalogCauses(at, source)
	if len(found) == 0 && state != stateReady {
		return []*Finding{catalogStartingFinding(at, source)}
	}
	if state == stateReady {
		for _, f := range found {
			// It serves, so the problem blocks nothing.
			f.Severity = Note
		}
	}
	return append(found, compact(warningsFinding(at, source), settingsFinding(at, source))...)
}

// warningsFinding returns the problems of a catalog's ConfigMap that do not prevent serving it. They
// explain only the catalog itself.
func warningsFinding(s *search, source *operatorsv1alpha1.CatalogSource) *Finding {
	warnings := conditionOf(source.Status.Conditions, api.ConditionContentWarnings)
	if warnings == nil || s.subject != s.current() {
		return nil
	}
	return s.finding(CodeCatalogContentWarnings, Note, s.current().String()+": "+warnings.Message)
}

// settingsFinding returns that the supervisor's settings for image registries are invalid. It explains only the
// catalog itself: an image that cannot be pulled has a finding of its own.
func settingsFinding(s *search, source *operatorsv1alpha1.CatalogSource) *Finding {
	invalid := conditionOf(source.Status.Conditions, api.ConditionImageSettingsInvalid)
	if invalid == nil || s.subject != s.current() {
		return nil
	}
	return s.finding(CodeImageSettingsInvalid, Note, s.current().String()+": "+invalid.Message)
}

// catalogCauses returns the problems of the spec and of the pods, which are independent. Problems of the spec come
// first if the catalog is not used because of them, and else last.
func catalogCauses(s *search, source *operatorsv1alpha1.CatalogSource) []*Finding {
	spec := catalogSpecFinding(s, source)
	if source.Spec.Image == "" && source.Spec.ConfigMap == "" {
		return compact(spec, addressFinding(s, source))
	}
	found := catalogPodFindings(s, source)
	if len(found) == 0 {
		found = compact(catalogStatusFinding(s, source, spec != nil))
	}
	if unused := source.Status.GRPCConnectionState == nil; unused {
		return append(compact(spec), found...)
	}
	return append(found, compact(spec)...)
}

// compact returns the findings that are not nil.
func compact(findings ...*Finding) []*Finding {
	return slices.DeleteFunc(findings, func(f *Finding) bool { return f == nil })
}

// catalogSpecFinding returns the problem of the spec that the status states.
func catalogSpecFinding(s *search, source *operatorsv1alpha1.CatalogSource) *Finding {
	inSpec := map[operatorsv1alpha1.ConditionReason]string{
		operatorsv1alpha1.CatalogSourceSpecInvalidError:     CodeCatalogSpecInvalid,
		operatorsv1alpha1.CatalogSourceIntervalInvalidError: CodeCatalogSpecInvalid,
		operatorsv1alpha1.CatalogSourceConfigMapError:       CodeCatalogConfigMapUnusable,
	}
	if code := inSpec[source.Status.Reason]; code != "" {
		return s.finding(code, Wrong, s.current().String()+": "+source.Status.Message).withRemedy(catalogs.SpecRemedy(source.Spec)).
			withCommands(kubectl("edit", s.current(), ""))
	}
	return nil
}

// catalogStatusFinding returns the problem of the pods that the status states. explained is true if status.message
// is about the spec.
func catalogStatusFinding(s *search, source *operatorsv1alpha1.CatalogSource, explained bool) *Finding {
	status := &source.Status
	progressing := conditionOf(status.Conditions, api.ConditionProgressing)
	if progressing != nil && progressing.Status == metav1.ConditionFalse &&
		progressing.Reason != api.ReasonRolledOut && progressing.Reason != api.ReasonSpecInvalid {
		f := s.finding(codeOfCatalog(progressing.Reason, progressing.Message), Wrong, s.current().String()+": "+progressing.Message)
		if refusal.Of(progressing.Message) == refusal.LimitExceeded {
			f = limitRangeFinding(s, f)
		} else {
			nameLimitRange(s, f)
		}
		return f.withCommands(catalogCommands(s, source)...)
	}
	if status.Message != "" && !explained {
		return s.finding(CodeCatalogFailing, Wrong, s.current().String()+": "+status.Message).withCommands(catalogCommands(s, source)...)
	}
	return nil
}

// codeOfCatalog returns the code for the condition Progressing of a catalog.
func codeOfCatalog(reason, message string) string {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName":
		return CodeCatalogImagePullFailed
	case "CrashLoopBackOff":
		return CodeCatalogCrashing
	case corev1.PodReasonUnschedulable:
		return CodeCatalogUnschedulable
	case "FailedCreate":
		return CodeCatalogPodsRefused
	case api.ReasonPolicyRefused:
		return CodeImageRefused
	}
	if codeOfRefusal(message) != "" {
		return CodeCatalogPodsRefused
	}
	return CodeCatalogFailing
}

// catalogCommands returns the commands that show a catalog, and its pods if the supervisor runs it.
func catalogCommands(s *search, source *operatorsv1alpha1.CatalogSource) []string {
	commands := []string{kubectl("get", s.current(), "-o yaml")}
	if source.Spec.Image == "" && source.Spec.ConfigMap == "" {
		return commands // the supervisor does not run it
	}
	return append([]string{fmt.Sprintf("kubectl -n %s get pods -l %s=%s", source.Namespace, api.LabelCatalogSource, source.Name)}, commands...)
}

// addressFinding returns the problem of a catalog that the supervisor does not run.
func addressFinding(s *search, source *operatorsv1alpha1.CatalogSource) *Finding {
	if catalogSpecFinding(s, source) != nil {
		return nil
	}
	if f := connectionFinding(s, source); f != nil {
		return f
	}
	state := source.Status.GRPCConnectionState
	if source.Status.Message == "" {
		return nil
	}
	if state == nil || state.LastObservedState == stateReady {
		return s.finding(CodeCatalogFailing, Wrong, s.current().String()+": "+source.Status.Message)
	}
	cause := fmt.Sprintf("%s: spec.address %s does not answer: %s", s.current(), source.Spec.Address, source.Status.Message)
	return s.finding(CodeCatalogUnreachable, Wrong, cause).
		withCommands(kubectl("edit", s.current(), ""))
}

// connectionFinding returns the problem of TLS to a catalog at an address; nil if there is none. Also a connection that
// works can have one, for example a certificate that expires soon.
func connectionFinding(s *search, source *operatorsv1alpha1.CatalogSource) *Finding {
	c := conditionOf(source.Status.Conditions, api.ConditionConnectionSecured)
	if c == nil || dialtls.Reason(c.Reason).Remedy() == "" {
		return nil
	}
	cause := fmt.Sprintf("%s: spec.address %s: %s (%s)", s.current(), source.Spec.Address, c.Message, c.Reason)
	return s.finding(CodeCatalogTLSFailing, Wrong, cause).withRemedy(dialtls.Reason(c.Reason).Remedy()).
		withCommands(kubectl("get", s.current(), "-o yaml"))
}

// catalogPodFindings returns the problems of the pods of a catalog that the supervisor runs.
func catalogPodFindings(s *search, source *operatorsv1alpha1.CatalogSource) []*Finding {
	var found []*Finding
	for _, f := range podFindings(s, s.pods(source.Namespace, labels.SelectorFromSet(labels.Set{api.LabelCatalogSource: source.Name}))) {
		found = append(found, catalogPodFinding(s, f))
	}
	return found
}

// catalogPodFinding returns the problem of a pod as one of its catalog.
func catalogPodFinding(s *search, f *Finding) *Finding {
	codes := map[string]string{
		CodeNodeLost: CodeCatalogNodeLost, CodeImagePullFailed: CodeCatalogImagePullFailed, CodeContainerCrashing: CodeCatalogCrashing,
		CodeOutOfMemory: CodeCatalogCrashing, CodePodUnschedulable: CodeCatalogUnschedulable,
	}
	if code := codes[f.Code]; code != "" {
		f.Code, f.Remedy = code, remedyOf(code)
	}
	f.Cause = s.current().String() + ": " + f.Cause
	return f
}

// catalogStartingFinding returns the finding about a catalog that does not serve yet and has no problem.
func catalogStartingFinding(s *search, source *operatorsv1alpha1.CatalogSource) *Finding {
	if s.ReadAt.Sub(source.CreationTimestamp.Time) > gracePeriod && source.Status.GRPCConnectionState == nil && len(source.Status.Conditions) == 0 {
		return s.finding(CodeNotReconciled, Wrong, s.current().String()+" has had no status"+since(&source.CreationTimestamp))
	}
	says := "its content has not been read yet"
	if c := conditionOf(source.Status.Conditions, api.ConditionProgressing); c != nil {
		says = c.Message
	}
	return s.finding(CodeCatalogStarting, Waiting, s.current().String()+": "+says).withCommands(catalogCommands(s, source)...)
}

// subscribedCatalog returns what blocks the catalog that the Subscription names.
func subscribedCatalog(s *search) []*Finding {
	spec := s.sub.Spec
	at := s.follow(Ref{Kind: KindCatalogSource, Namespace: spec.CatalogSourceNamespace, Name: spec.CatalogSource}, "", "")
	source := s.catalog(at.current())
	switch {
	case source == nil && s.hidden("catalogsources.operators.coreos.com", spec.CatalogSourceNamespace):
		return catalogBySubscription(s)
	case source == nil:
		at.path[len(at.path)-1].State = "missing"
		return []*Finding{at.finding(CodeCatalogNotFound, Wrong, fmt.Sprintf("%s does not exist, and %s names it in spec.source and spec.sourceNamespace%s",
			at.current(), s.subject, otherCatalogs(s))).withCommands(
			"kubectl get catalogsources --all-namespaces", kubectl("edit", s.subject, ""))}
	}
	if f := excludedFinding(s, at); f != nil {
		return []*Finding{f}
	}
	if f := outOfScopeFinding(s, at); f != nil {
		return []*Finding{f}
	}
	return catalogFindings(s, source)
}

// otherCatalogs lists some catalogs that the Subscription could name, as the end of a sentence.
func otherCatalogs(s *search) string {
	const most = 5
	var names []string
	for i := range s.CatalogSources {
		source := &s.CatalogSources[i]
		if source.Namespace == s.sub.Namespace || source.Namespace == s.GlobalNamespace {
			names = append(names, source.Namespace+"/"+source.Name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	return "; existing CatalogSources: " + strings.Join(names, ", ")
}

// excludedFinding returns the finding about a catalog that the OperatorGroup excludes; nil if it does not.
func excludedFinding(s, catalog *search) *Finding {
	const annotation = "olm.operatorframework.io/exclude-global-namespace-resolution"
	groups, _ := s.groups(s.sub.Namespace)
	namespace := s.sub.Spec.CatalogSourceNamespace
	if len(groups) != 1 || groups[0].Annotations[annotation] != "true" || namespace != s.GlobalNamespace || namespace == s.sub.Namespace {
		return nil
	}
	group := refTo(KindOperatorGroup, groups[0])
	return catalog.follow(group, "", "").finding(CodeCatalogExcluded, Wrong, fmt.Sprintf("%s excludes %s with its annotation %s", group, catalog.current(), annotation)).
		withCommands(kubectl("annotate", group, annotation+"-"))
}

// outOfScopeFinding returns the finding about a catalog in a namespace that is neither the Subscription's nor the
// global one. Only the supervisor knows its global namespace, so the Subscription must state that the catalog was
// not found.
func outOfScopeFinding(s, catalog *search) *Finding {
	from := catalog.current()
	reason, remedy := blockedOf(s.sub)
	if reason != api.ReasonCatalogNotFound || from.Namespace == s.sub.Namespace || from.Namespace == s.GlobalNamespace {
		return nil
	}
	global := ""
	if s.GlobalNamespace != "" {
		global = " (global: " + s.GlobalNamespace + ")"
	}
	return catalog.finding(CodeCatalogOutOfScope, Wrong, fmt.Sprintf("%s serves neither namespace %s of %s nor all namespaces%s",
		from, s.sub.Namespace, s.subject, global)).withRemedy(remedy).
		withCommands("kubectl get catalogsources --all-namespaces", kubectl("edit", s.subject, ""))
}

// catalogBySubscription returns what the Subscription states about a catalog that cannot be read.
func catalogBySubscription(s *search) []*Finding {
	c := s.sub.Status.GetCondition(operatorsv1alpha1.SubscriptionCatalogSourcesUnhealthy)
	if c.Status != corev1.ConditionTrue {
		return nil
	}
	return []*Finding{s.finding(CodeCatalogFailing, Wrong, s.subject.String()+": "+c.Message)}
}
