package phase

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// groupReasons are the reasons of failures that an OperatorGroup causes. A change of OperatorGroups
// can end them.
var groupReasons = []operatorsv1alpha1.ConditionReason{
	operatorsv1alpha1.CSVReasonNoTargetNamespaces,
	operatorsv1alpha1.CSVReasonNoOperatorGroup,
	operatorsv1alpha1.CSVReasonTooManyOperatorGroups,
	operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup,
}

// specReasons are the reasons of failures that the spec of the ClusterServiceVersion causes.
var specReasons = []operatorsv1alpha1.ConditionReason{
	operatorsv1alpha1.CSVReasonComponentFailedNoRetry,
	operatorsv1alpha1.CSVReasonInvalidStrategy,
	operatorsv1alpha1.CSVReasonInvalidInstallModes,
	operatorsv1alpha1.CSVReasonInvalidWebhookDescription,
}

// gates returns the rules that precede those of a phase.
func gates() []rule {
	return slices.Concat(
		[]rule{
			{"declares what is not supported", has(unsupported), failed(operatorsv1alpha1.CSVReasonComponentFailedNoRetry, unsupported)},
			{"install strategy invalid", has(invalidStrategy), failed(operatorsv1alpha1.CSVReasonInvalidStrategy, invalidStrategy, detailed(unknownStrategy))},
		},
		groupCountRules(),
		[]rule{
			{"operator group not processed yet", groupUnprocessed, keepPhase},
			{"labels or annotations differ", metadataDiffers, annotate},
		},
		installModeRules(),
		[]rule{
			{"webhooks invalid", has(invalidWebhooks), failed(operatorsv1alpha1.CSVReasonInvalidWebhookDescription,
				invalidWebhooks, detailed(invalidWebhookDetail))},
			{"webhooks refused", has(refusedWebhooks), then(operatorsv1alpha1.CSVPhaseFailed,
				operatorsv1alpha1.CSVReasonComponentFailed, refusedWebhooks, after(requirementsDelay))},
		},
		claimRules(),
	)
}

// firstRules returns the rules for a version without a phase. They check its OperatorGroup before
// it becomes Pending. A version that may not serve its targets is therefore never Pending.
func firstRules() []rule {
	firstSight := to(operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown, olmtext.RequirementsUnknown)
	return slices.Concat(
		groupCountRules(),
		[]rule{{"operator group not processed yet", groupUnprocessed, firstSight}},
		installModeRules(),
		claimRules(),
		[]rule{{"first sight", always, firstSight}},
	)
}

func groupCountRules() []rule {
	return []rule{
		{"no operator group", groupCount(func(n int) bool { return n == 0 }), failed(operatorsv1alpha1.CSVReasonNoOperatorGroup,
			fixed(olmtext.NoGroup), detailed(noGroupRemedy))},
		{"several operator groups", groupCount(func(n int) bool { return n > 1 }), failed(operatorsv1alpha1.CSVReasonTooManyOperatorGroups,
			fixed(olmtext.SeveralGroups), detailed(manyGroupsRemedy))},
	}
}

func installModeRules() []rule {
	return []rule{
		{"install modes invalid", has(invalidModes), failed(operatorsv1alpha1.CSVReasonInvalidInstallModes, invalidModes)},
		{
			"operator group selects nothing", selectsNothing,
			failed(operatorsv1alpha1.CSVReasonNoTargetNamespaces, fixed(olmtext.NoTargetNamespaces), detailed(misfit)),
		},
		{
			"operator group unsupported", has(unsupportedGroup),
			failed(operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup, unsupportedGroup, detailed(misfit)),
		},
	}
}

func claimRules() []rule {
	return []rule{
		{"fixed APIs would change", claimsAre(providedapis.Static), withdrawn(
			operatorsv1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs, olmtext.StaticAPIs)},
		{"APIs taken by another group", claimsAre(providedapis.Conflict, providedapis.Remove), withdrawn(
			operatorsv1alpha1.CSVReasonInterOperatorGroupOwnerConflict, olmtext.APIsTaken)},
	}
}

func has(p func(Input) string) func(Input) bool {
	return func(o Input) bool { return p(o) != "" }
}

func failed(reason operatorsv1alpha1.ConditionReason, message func(Input) string, opts ...option) func(Input) Transition {
	return then(operatorsv1alpha1.CSVPhaseFailed, reason, message, opts...)
}

func groupCount(p func(int) bool) func(Input) bool {
	return func(o Input) bool { return p(len(o.Groups)) }
}

func groupUnprocessed(o Input) bool { return o.Groups[0].Status.LastUpdated == nil }

// annotate returns a transition that keeps the phase. Where the phase stays afterwards too, the cause is that of the
// next transition, so that one write is enough.
func annotate(o Input) Transition {
	t := with(keepPhase(o), o, do(Annotate))
	if next := Next(annotated(o)); next.Cause != nil && next.Phase == t.Phase && next.Reason == t.Reason {
		t.Cause = next.Cause
	}
	return t
}

func claimsAre(results ...providedapis.Result) func(Input) bool {
	return func(o Input) bool { return slices.Contains(results, o.Claims.Result) }
}

// withdrawn returns a transition to Failed for a version that must not run. It removes the running
// components of the version.
func withdrawn(reason operatorsv1alpha1.ConditionReason, says string) func(Input) Transition {
	return func(o Input) Transition {
		t := then(operatorsv1alpha1.CSVPhaseFailed, reason, fixed(says), detailed(claims))(o)
		if o.Components.Present {
			t.Actions = []Action{RemoveDeployments}
		}
		return t
	}
}

// unsupported returns the declared features that this version of the supervisor cannot provide.
// Installing the rest would leave an operator that reports success and does not work.
func unsupported(o Input) string {
	if o.Webhooks.Unsupported == "" {
		return ""
	}
	return olmtext.StrategyFailed(o.Webhooks.Unsupported)
}

func invalidWebhooks(o Input) string { return o.Webhooks.Invalid.Text }

func invalidWebhookDetail(o Input) string { return o.Webhooks.Invalid.Detail }

// refusedWebhooks returns which webhooks of a version the group does not allow; empty when it
// allows all.
func refusedWebhooks(o Input) string {
	if o.Webhooks.Refused == "" {
		return ""
	}
	return olmtext.StrategyFailed(o.Webhooks.Refused)
}

// invalidStrategy returns what is wrong with the install strategy; empty for a valid one.
func invalidStrategy(o Input) string {
	install := o.CSV.Spec.InstallStrategy
	switch {
	case install.StrategyName != operatorsv1alpha1.InstallStrategyNameDeployment:
		return olmtext.StrategyInvalid(olmtext.UnknownStrategy)
	case len(install.StrategySpec.DeploymentSpecs) == 0:
		return olmtext.StrategyInvalid("spec.install.spec.deployments is empty; add at least one Deployment")
	case len(o.CSV.Name) > validation.LabelValueMaxLength:
		return olmtext.StrategyInvalid(fmt.Sprintf("metadata.name has %d characters; it labels the operator's objects; choose one of at most %d",
			len(o.CSV.Name), validation.LabelValueMaxLength))
	}
	return duplicateDeployment(install.StrategySpec.DeploymentSpecs)
}

// unknownStrategy returns the only known install strategy, for a version with another one.
func unknownStrategy(o Input) string {
	if name := o.CSV.Spec.InstallStrategy.StrategyName; name != operatorsv1alpha1.InstallStrategyNameDeployment {
		return fmt.Sprintf("spec.install.strategy is %q; set it to %q, the only supported value", name, operatorsv1alpha1.InstallStrategyNameDeployment)
	}
	return ""
}

func duplicateDeployment(specs []operatorsv1alpha1.StrategyDeploymentSpec) string {
	seen := map[string]bool{}
	for i := range specs {
		name := specs[i].Name
		if name == "" || seen[name] {
			return olmtext.StrategyInvalid(fmt.Sprintf("spec.install.spec.deployments[%d].name %q is empty or used twice; "+
				"give each Deployment a name of its own", i, name))
		}
		seen[name] = true
	}
	return ""
}

func invalidModes(o Input) string {
	if _, err := operatorsv1alpha1.NewInstallModeSet(o.CSV.Spec.InstallModes); err != nil {
		return err.Error()
	}
	return ""
}

// selectsNothing reports whether the OperatorGroup selects no existing namespace.
func selectsNothing(o Input) bool { return len(o.Groups[0].Status.Namespaces) == 0 }

func unsupportedGroup(o Input) string {
	modes, err := operatorsv1alpha1.NewInstallModeSet(o.CSV.Spec.InstallModes)
	if err != nil {
		return ""
	}
	if err := modes.Supports(o.CSV.Namespace, o.Groups[0].Status.Namespaces); err != nil {
		return err.Error()
	}
	return ""
}
