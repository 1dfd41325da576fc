package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/opcondition"
)

// subscribedVersion returns what blocks the current version of the Subscription, or its installed one.
func subscribedVersion(s *search) []*Finding {
	csv := s.version(s.sub.Namespace, s.sub.Status.CurrentCSV)
	if csv == nil {
		csv = s.version(s.sub.Namespace, s.sub.Status.InstalledCSV)
	}
	if csv == nil {
		if csv = versionBySubscription(s); csv == nil {
			return versionDeleted(s)
		}
	}
	at := s
	if ref := s.sub.Status.InstallPlanRef; ref != nil {
		if p := s.plan(csv.Namespace, ref.Name); p != nil && slices.Contains(p.Spec.ClusterServiceVersionNames, csv.Name) {
			at = s.follow(refTo(KindInstallPlan, p), string(p.Status.Phase), "")
		}
	}
	return versionFindings(at, csv)
}

// versionBySubscription returns a version that cannot be read, with the status that the Subscription states; nil if
// it states none.
func versionBySubscription(s *search) *operatorsv1alpha1.ClusterServiceVersion {
	reason, message, is := trueCondition(s.sub, api.ConditionVersionUnhealthy)
	if !is || !s.hidden("clusterserviceversions.operators.coreos.com", s.sub.Namespace) {
		return nil
	}
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Namespace, csv.Name = s.sub.Namespace, s.sub.Status.CurrentCSV
	csv.Status.Phase, csv.Status.Reason, csv.Status.Message = operatorsv1alpha1.CSVPhaseUnknown, operatorsv1alpha1.ConditionReason(reason), message
	return csv
}

// versionDeleted returns the finding about a version that a complete plan created and that does not exist. Plans are
// read before versions, so the version is not merely younger.
func versionDeleted(s *search) []*Finding {
	const resource = "clusterserviceversions.operators.coreos.com"
	name, ref := s.sub.Status.CurrentCSV, s.sub.Status.InstallPlanRef
	if name == "" || ref == nil || s.hidden(resource, s.sub.Namespace) {
		return nil
	}
	p := s.plan(s.sub.Namespace, ref.Name)
	if p == nil || p.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete || !slices.Contains(p.Spec.ClusterServiceVersionNames, name) {
		return nil
	}
	plan := s.follow(refTo(KindInstallPlan, p), string(p.Status.Phase), "")
	at := plan.follow(Ref{Kind: KindVersion, Namespace: s.sub.Namespace, Name: name}, "missing", "")
	return []*Finding{at.finding(CodeVersionDeleted, Wrong, fmt.Sprintf("%s was deleted after %s created it", at.current(), plan.current())).
		withCommands(kubectl("delete", plan.current(), ""))}
}

// versionFindings returns what blocks a version. If it waits for another version, that is what blocks the other one.
func versionFindings(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) []*Finding {
	self := refTo(KindVersion, csv)
	if s.visited[self] {
		return nil
	}
	s.visited[self] = true
	if !csv.DeletionTimestamp.IsZero() {
		if f := cleanupFinding(s, csv); f != nil {
			return []*Finding{f}
		}
		return nil
	}
	at := s.follow(self, string(csv.Status.Phase), csv.Status.Message)
	switch csv.Status.Phase {
	case operatorsv1alpha1.CSVPhaseSucceeded:
		return shortageFindings(at, csv)
	case operatorsv1alpha1.CSVPhaseReplacing, operatorsv1alpha1.CSVPhaseDeleting:
		return nil
	case operatorsv1alpha1.CSVPhaseNone:
		if s.ReadAt.Sub(csv.CreationTimestamp.Time) > gracePeriod {
			return []*Finding{at.finding(CodeNotReconciled, Wrong, self.String()+" has had no status"+since(&csv.CreationTimestamp))}
		}
		return nil
	default:
		return failingVersion(at, csv)
	}
}

// failingVersion returns what blocks a version in a phase in which it does not run.
func failingVersion(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) []*Finding {
	if f := reasonFinding(s, csv); f != nil {
		return []*Finding{f}
	}
	if found := componentFindings(s, csv); len(found) > 0 {
		return found
	}
	if f := lastFinding(s, csv); f != nil {
		return []*Finding{f}
	}
	return nil
}

// conflictCode returns the code for a reason about APIs that the version must not provide.
func conflictCode(reason operatorsv1alpha1.ConditionReason) string {
	switch reason {
	case operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict:
		return CodeOperatorGroupConflict
	case operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs:
		return CodeProvidedAPIsStatic
	default:
		return CodeOwnerConflict
	}
}

// reasonFinding returns the finding for a reason of the status that is exact; nil if the components of the version
// may tell more.
func reasonFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	switch csv.Status.Reason {
	case operatorsv1alpha1.CSVReasonNoOperatorGroup, operatorsv1alpha1.CSVReasonTooManyOperatorGroups:
		return groupFinding(s, csv.Namespace)
	case operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup, operatorsv1alpha1.CSVReasonNoTargetNamespaces:
		return installModeFinding(s, csv)
	case operatorsv1alpha1.CSVReasonOwnerConflict, operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict,
		operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs:
		return statusFinding(s, conflictCode(csv.Status.Reason), csv)
	case operatorsv1alpha1.CSVReasonInvalidStrategy, operatorsv1alpha1.CSVReasonInvalidInstallModes,
		operatorsv1alpha1.CSVReasonInvalidWebhookDescription:
		return statusFinding(s, CodeVersionInvalid, csv)
	case operatorsv1alpha1.CSVReasonComponentFailedNoRetry:
		if _, refused := api.CauseOf(csv); refused {
			return causeFinding(s, csv)
		}
		return statusFinding(s, CodeVersionInvalid, csv)
	case operatorsv1alpha1.CSVReasonOperatorConditionNotUpgradeable:
		return notUpgradeableFinding(s, csv)
	case operatorsv1alpha1.CSVReasonRequirementsNotMet:
		return requirementFinding(s, csv)
	case operatorsv1alpha1.CSVReasonRequirementsMet:
		return predecessorFinding(s, csv)
	case operatorsv1alpha1.CSVReasonAPIServiceResourceIssue, operatorsv1alpha1.CSVReasonAPIServiceResourcesNeedReinstall,
		operatorsv1alpha1.CSVReasonNeedsCertRotation:
		return statusFinding(s, CodeWebhookResourcesBroken, csv)
	case operatorsv1alpha1.CSVReasonComponentFailed:
		return causeFinding(s, csv)
	default:
		return nil
	}
}

// statusFinding returns a finding with the message of the status and the detail of the cause.
func statusFinding(s *search, code string, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	return s.finding(code, Wrong, s.current().String()+": "+problemOf(csv)).withCommands(kubectl("describe", s.current(), ""))
}

// problemOf returns the message of a version with the detail of its cause.
func problemOf(csv *operatorsv1alpha1.ClusterServiceVersion) string {
	text := csv.Status.Message
	if cause, _ := api.CauseOf(csv); cause.Detail != "" {
		text += ": " + cause.Detail
	}
	return text
}

// installModeFinding returns the finding about an OperatorGroup whose namespaces the version cannot watch.
func installModeFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	at := s
	if groups, _ := s.groups(csv.Namespace); len(groups) == 1 {
		at = s.follow(refTo(KindOperatorGroup, groups[0]), "", "targets "+targets(groups[0].Status.Namespaces))
	}
	return at.finding(CodeInstallModeUnsupported, Wrong, s.current().String()+": "+problemOf(csv)).withCommands(kubectl("edit", at.current(), ""))
}

// withCause replaces the cause.
func (f *Finding) withCause(cause string) *Finding {
	f.Cause = oneLine(cause)
	return f
}

// targets returns the namespaces of an OperatorGroup in words.
func targets(namespaces []string) string {
	if len(namespaces) == 1 && namespaces[0] == "" {
		return "all namespaces"
	}
	return strings.Join(namespaces, ", ")
}

// notUpgradeableFinding returns what the OperatorCondition of the version to be replaced states.
func notUpgradeableFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	condition := Ref{Kind: KindCondition, Namespace: csv.Namespace, Name: csv.Spec.Replaces}
	why, remedy := csv.Status.Message, ""
	seen := find(s.OperatorConditions, condition)
	if seen == nil {
		s.needs("operatorconditions.operators.coreos.com", csv.Namespace)
	} else if cause, message := opcondition.Upgradeable(seen); cause != opcondition.Allowed {
		why, remedy = message, upgradeRemedies()[cause]
	}
	at := s.follow(condition, "Upgradeable=False", why)
	const override = `{"spec":{"overrides":[{"type":"Upgradeable","status":"True","reason":"Checked","message":"upgrade it"}]}}`
	cause := fmt.Sprintf("%s blocks the upgrade of %s to %s: %s", condition, csv.Spec.Replaces, csv.Name, why)
	return at.finding(CodeOperatorNotUpgradeable, Waiting, cause).
		withRemedy(remedy).withCommands(kubectl("patch", condition, "--type merge -p '"+override+"'"))
}

// upgradeRemedies returns the remedy for each cause that blocks an upgrade.
func upgradeRemedies() map[opcondition.Cause]string {
	return map[opcondition.Cause]string{
		opcondition.Overridden: "to upgrade, change or remove the entry of type Upgradeable in its spec.overrides",
		opcondition.Reported:   "to upgrade anyway, add an entry of type Upgradeable with status True to its spec.overrides",
		opcondition.Outdated: "wait until the operator reports again for the current generation, " +
			"or add an entry of type Upgradeable with status True to its spec.overrides",
	}
}

// predecessorFinding returns what blocks the version that this one waits for; nil if it waits for none.
func predecessorFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	if cause, _ := api.CauseOf(csv); cause.Reason != api.ReasonWaitingForPredecessor {
		return nil
	}
	if older := s.version(csv.Namespace, csv.Spec.Replaces); older != nil {
		if found := versionFindings(s, older); len(found) > 0 {
			return found[0]
		}
	}
	return causeFinding(s, csv)
}

// requirementFinding returns the first requirement that is not met. If another version provides it, that is what
// blocks the other one.
func requirementFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	for i := range csv.Status.RequirementStatus {
		r := &csv.Status.RequirementStatus[i]
		if r.Status == operatorsv1alpha1.RequirementStatusReasonPresent || r.Status == "DeploymentFound" {
			continue
		}
		if f := providerFinding(s, csv, r.Name); f != nil {
			return f
		}
		at := s.follow(Ref{Kind: r.Kind, Name: r.Name}, string(r.Status), r.Message)
		says := fmt.Sprintf("%s needs %s %s: %s", s.current(), r.Kind, r.Name, r.Message)
		switch r.Kind {
		case operatorsv1alpha1.ClusterServiceVersionKind:
			return s.finding(CodeKubernetesTooOld, Wrong, fmt.Sprintf("%s: spec.minKubeVersion is not met: %s", s.current(), r.Message))
		case KindDefinition:
			return at.finding(CodeDefinitionMissing, Wrong, says+neededVersion(csv, r.Name)).withRemedy(definitionRemedy(r.Name)).
				withCommands("kubectl get customresourcedefinition " + r.Name)
		case KindServiceAccount:
			at.path[len(at.path)-1].Object.Namespace = csv.Namespace
			return at.finding(CodePermissionsMissing, Wrong, says+missingRule(r))
		default:
			return at.finding(CodeAPIMissing, Wrong, says)
		}
	}
	return statusFinding(s, CodeVersionFailing, csv)
}

// neededVersion returns the version of a definition that a version of an operator needs, in parentheses; empty for none.
func neededVersion(csv *operatorsv1alpha1.ClusterServiceVersion, name string) string {
	for _, d := range csv.GetAllCRDDescriptions() {
		if d.Name == name && d.Version != "" {
			return " (version " + d.Version + ")"
		}
	}
	return ""
}

// definitionRemedy returns what to do about a name that no definition can have; empty for others.
func definitionRemedy(name string) string {
	if strings.Contains(name, ".") {
		return ""
	}
	return "write its name in spec.customresourcedefinitions as plural.group"
}

// missingRule returns the first rule that an account lacks; empty for none.
func missingRule(r *operatorsv1alpha1.RequirementStatus) string {
	for _, d := range r.Dependents {
		if d.Status != operatorsv1alpha1.DependentStatusReasonSatisfied {
			return ": " + d.Message
		}
	}
	return ""
}

// providerFinding returns what blocks another version of the namespace that provides a missing API; nil if nothing
// does.
func providerFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion, name string) *Finding {
	for i := range s.Versions {
		other := &s.Versions[i]
		if other.Namespace != csv.Namespace || other.Name == csv.Name || !owns(other, name) {
			continue
		}
		if found := versionFindings(s, other); len(found) > 0 {
			return found[0]
		}
	}
	return nil
}

// owns reports whether a version provides the definition or APIService of a name.
func owns(csv *operatorsv1alpha1.ClusterServiceVersion, name string) bool {
	return csv.OwnsCRD(name) || slices.ContainsFunc(csv.Spec.APIServiceDefinitions.Owned, func(d operatorsv1alpha1.APIServiceDescription) bool {
		return d.GetName() == name
	})
}

// causeFinding returns the finding for the cause of a version. The status of OLM, or of a former release, has none:
// its reason counts, and then the API server's own text.
func causeFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	cause, found := api.CauseOf(csv)
	code := codeOfCause(cause)
	if !found && csv.Status.Reason == operatorsv1alpha1.CSVReasonInstallCheckFailed {
		code = CodeDeploymentNotAvailable
	} else if !found {
		code = codeOfRefusal(csv.Status.Message)
	}
	return refusalFinding(s, cmp.Or(code, CodeVersionFailing), Wrong, s.current().String()+": "+problemOf(csv), cause.Remedy).withCommands(kubectl("describe", s.current(), ""))
}

// componentFindings returns what blocks the Deployments of a version.
func componentFindings(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) []*Finding {
	var found []*Finding
	for i := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		d := s.deployment(csv.Namespace, csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Name)
		if d == nil {
			continue
		}
		if f := deploymentFinding(s, d); f != nil {
			found = append(found, f)
		}
	}
	return found
}

// shortageFindings returns which Deployments of an installed version lack replicas. Its status does not state that.
func shortageFindings(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) []*Finding {
	var found []*Finding
	for i := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		asked := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i]
		none := asked.Spec.Replicas != nil && *asked.Spec.Replicas == 0
		if d := s.deployment(csv.Namespace, asked.Name); d != nil && !none {
			if f := shortageFinding(s, d); f != nil {
				found = append(found, f)
			}
		}
	}
	return found
}

// lastFinding returns the finding about a version that only its cause, or a failed phase, explains.
func lastFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	failed := csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed || csv.Status.Phase == operatorsv1alpha1.CSVPhaseUnknown
	// A cause with the reason of the phase has only its detail.
	if cause, caused := api.CauseOf(csv); !failed && (!caused || cause.Reason == string(csv.Status.Reason)) {
		return nil
	}
	return causeFinding(s, csv)
}

// cleanupFinding returns what blocks the deletion of a version; nil if it has only begun.
func cleanupFinding(s *search, csv *operatorsv1alpha1.ClusterServiceVersion) *Finding {
	self := refTo(KindVersion, csv)
	at := s.follow(self, "being deleted", csv.Status.Message)
	if csv.Status.Reason != operatorsv1alpha1.CSVReasonWaitingForCleanupToComplete {
		if s.ReadAt.Sub(csv.DeletionTimestamp.Time) < gracePeriod {
			return nil
		}
		return at.finding(CodeCleanupBlocked, Wrong, fmt.Sprintf("%s is being deleted%s, but has finalizers: %s", self, since(csv.DeletionTimestamp), strings.Join(csv.Finalizers, ", ")))
	}
	severity := Waiting
	if cause, _ := api.CauseOf(csv); cause.Reason == api.ReasonFinalizersRemaining {
		severity = Wrong
	}
	f := at.finding(CodeCleanupBlocked, severity, fmt.Sprintf("%s is being deleted: %s", self, csv.Status.Message))
	i := slices.IndexFunc(csv.Status.Cleanup.PendingDeletion, func(l operatorsv1alpha1.ResourceList) bool { return len(l.Instances) > 0 })
	if i < 0 {
		return f.withCommands(kubectl("describe", self, ""))
	}
	list := csv.Status.Cleanup.PendingDeletion[i]
	held := Ref{Kind: list.Kind, Namespace: list.Instances[0].Namespace, Name: list.Instances[0].Name}
	f.Object = held
	f.Chain = append(f.Chain, Link{Object: held, State: "being deleted", Message: "it has finalizers"})
	resource := held
	if list.Group != "" {
		resource.Kind += "." + list.Group
	}
	return f.withCause(fmt.Sprintf("%s has finalizers, and %s waits for its deletion: %s", held, self, csv.Status.Message)).
		withCommands(kubectl("get", resource, "-o yaml"), kubectl("annotate", self, api.AnnotationSkipCleanup+"=true"))
}
