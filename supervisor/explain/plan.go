package explain

import (
	"cmp"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// plan looks at the plan that the Subscription refers to.
func plan(s *story) []*Finding {
	ref := s.sub.Status.InstallPlanRef
	if ref == nil {
		return nil
	}
	if p := s.plan(s.sub.Namespace, ref.Name); p != nil {
		return s.planTrouble(p)
	}
	return s.planBySubscription(ref.Name)
}

// planBySubscription goes by what the Subscription says of a plan that cannot be seen.
func (s *story) planBySubscription(name string) []*Finding {
	at := s.to(Ref{Kind: KindInstallPlan, Namespace: s.sub.Namespace, Name: name}, "", "")
	if _, message, is := s.told(operatorsv1alpha1.SubscriptionInstallPlanFailed); is {
		return []*Finding{at.stepFinding(message, Wrong)}
	}
	reason, message, is := s.told(operatorsv1alpha1.SubscriptionInstallPlanPending)
	switch {
	case !is:
		return nil
	case reason == string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval):
		return []*Finding{at.needsApproval(nil)}
	case strings.HasPrefix(message, retrying):
		return []*Finding{at.stepFinding(message, Waiting)}
	}
	return nil
}

// retrying begins what a plan says of a step that is tried again.
const retrying = "retrying execution due to error: "

// planTrouble finds what keeps a plan from being carried out.
func (s *story) planTrouble(p *operatorsv1alpha1.InstallPlan) []*Finding {
	installed := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	message := cmp.Or(installed.Message, p.Status.Message)
	at := s.to(refTo(KindInstallPlan, p), string(p.Status.Phase), message)
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		if p.Spec.Approved {
			return nil
		}
		return []*Finding{at.needsApproval(p.Spec.ClusterServiceVersionNames)}
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		if installed.Status != corev1.ConditionFalse || message == "" {
			return []*Finding{at.found(CodePlanDeclaredFailed, Wrong, at.at().String()+" is Failed and does not say why: another client set the phase").
				with(kubectl("delete", at.at(), ""))}
		}
		return []*Finding{at.stepFinding(message, Wrong)}
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		if installed.Reason == operatorsv1alpha1.InstallPlanReasonInstallCheckFailed {
			return []*Finding{at.checkFailed(message)}
		}
		if strings.HasPrefix(message, retrying) {
			return []*Finding{at.stepFinding(message, Waiting)}
		}
	case operatorsv1alpha1.InstallPlanPhasePlanning, operatorsv1alpha1.InstallPlanPhaseNone:
		return at.lookupTrouble(p)
	case operatorsv1alpha1.InstallPlanPhaseComplete:
	}
	return nil
}

func (s *story) needsApproval(versions []string) *Finding {
	what := ""
	if len(versions) > 0 {
		what = ", which installs " + strings.Join(versions, ", ") + ","
	}
	return s.found(CodePlanNeedsApproval, Waiting, s.at().String()+what+" waits for approval (spec.approved is false)").
		with("kubectl chandlery approve "+s.at().Name+" -n "+s.at().Namespace, kubectl("patch", s.at(), `--type merge -p '{"spec":{"approved":true}}'`))
}

// checkFailed is for a plan that cannot begin.
func (s *story) checkFailed(message string) *Finding {
	if f := s.groupTrouble(s.at().Namespace); f != nil {
		return f
	}
	code := CodePlanStep
	if strings.Contains(message, "please make sure the service account exists") {
		code = CodeGroupAccountMissing
	}
	return s.found(code, Wrong, s.at().String()+" cannot begin: "+message)
}

// lookupTrouble is for a plan whose steps are not known yet.
func (s *story) lookupTrouble(p *operatorsv1alpha1.InstallPlan) []*Finding {
	for i := range p.Status.BundleLookups {
		lookup := &p.Status.BundleLookups[i]
		failed := lookup.GetCondition(operatorsv1alpha1.BundleLookupFailed)
		if failed.Status != corev1.ConditionTrue {
			continue
		}
		at := s.to(Ref{Kind: KindBundleImage, Name: lookup.Path}, "", "")
		cause, remedy := remedyParted(failed.Message)
		cause = fmt.Sprintf("image %s of bundle %s cannot be had: %s: %s", lookup.Path, lookup.Identifier, failed.Reason, cause)
		return []*Finding{at.found(CodeBundleImage, Wrong, cause).advising(remedy)}
	}
	return nil
}

// stepFinding is for a step that could not be applied. Otherwise is the severity of what
// may pass by itself.
func (s *story) stepFinding(message string, otherwise Severity) *Finding {
	cause, remedy := remedyParted(strings.TrimPrefix(message, retrying))
	if strings.HasPrefix(remedy, "fix the cause") || strings.HasPrefix(remedy, "mend the cause") || strings.HasPrefix(remedy, "deleting the InstallPlan") {
		// What comes before says better what to do. Releases before wrote mend.
		cause = strings.TrimSuffix(cause, "; fix the cause, and the plan goes on by itself within minutes")
		cause = strings.TrimSuffix(cause, "; mend the cause, and the plan goes on by itself within minutes")
		cause, remedy = remedyParted(cause)
	}
	code, severity := stepCode(cause), Wrong
	if code == CodePlanStep {
		severity = otherwise
	}
	if code == CodeRightsMissing && !strings.Contains(message, "system:serviceaccount:") {
		remedy = cmp.Or(remedy, remedyOf(code))
	}
	return s.refused(code, severity, s.at().String()+": "+cause, remedy).with(kubectl("describe", s.at(), ""))
}

// stepCode tells by the words of a plan what kept a step from being applied.
func stepCode(cause string) string {
	for _, known := range []struct{ words, code string }{
		{"api-server resource not found installing", CodePlanStepAPI},
		{"the CustomResourceDefinition is left as it is", CodePlanDefinition},
		{"it is not this operator's", CodePlanConflict},
		{" is only a copy: the operator is installed in namespace ", CodePlanConflict},
		{"pre-existing CRD owners found", CodePlanConflict},
		{"its names are not accepted", CodePlanConflict},
		{"a bundle may not bring objects of this kind", CodePlanUnsupported},
	} {
		if strings.Contains(cause, known.words) {
			return known.code
		}
	}
	return cmp.Or(refusal(cause), CodePlanStep)
}
