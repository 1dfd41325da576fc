package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// declaredFailed returns the finding about a plan that another client set to Failed. A plan that was Complete before has
// applied everything, so that nothing needs to be done.
func declaredFailed(at *search, p *operatorsv1alpha1.InstallPlan) *Finding {
	f := at.finding(CodePlanDeclaredFailed, Wrong, at.current().String()+" is Failed without a cause: another client set the phase")
	if wasComplete(p) {
		return f.withRemedy("Do nothing: the InstallPlan was Complete before, and its objects exist.")
	}
	return f.withRemedy("Delete it; the supervisor then recreates it.").withCommands(kubectl("delete", at.current(), ""))
}

// wasComplete reports whether all steps of a plan have been applied.
func wasComplete(p *operatorsv1alpha1.InstallPlan) bool {
	if p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Status == corev1.ConditionTrue {
		return true
	}
	return len(p.Status.Plan) > 0 && !slices.ContainsFunc(p.Status.Plan, func(s *operatorsv1alpha1.Step) bool {
		return s == nil || s.Status != operatorsv1alpha1.StepStatusCreated && s.Status != operatorsv1alpha1.StepStatusPresent
	})
}

// subscribedPlan returns what blocks the plan of the Subscription.
func subscribedPlan(s *search) []*Finding {
	ref := s.sub.Status.InstallPlanRef
	if ref == nil {
		return nil
	}
	if p := s.plan(s.sub.Namespace, ref.Name); p != nil {
		return planFindings(s, p)
	}
	return planBySubscription(s, ref.Name)
}

// planBySubscription returns what the Subscription states about a plan that cannot be read.
func planBySubscription(s *search, name string) []*Finding {
	at := s.follow(Ref{Kind: KindInstallPlan, Namespace: s.sub.Namespace, Name: name}, "", "")
	if _, message, is := trueCondition(s.sub, operatorsv1alpha1.SubscriptionInstallPlanFailed); is {
		return []*Finding{stepFinding(at, api.Cause{}, message, Wrong)}
	}
	reason, message, is := trueCondition(s.sub, operatorsv1alpha1.SubscriptionInstallPlanPending)
	switch {
	case !is:
		return nil
	case reason == string(operatorsv1alpha1.InstallPlanPhaseRequiresApproval):
		return []*Finding{approvalFinding(at, nil)}
	case reason == string(operatorsv1alpha1.InstallPlanPhaseInstalling) && message != "":
		// The message may also be that of a plan that cannot begin, because of the OperatorGroup.
		return compact(groupFinding(at, s.sub.Namespace), stepFinding(at, api.Cause{}, message, Waiting))
	}
	return nil
}

// retrying begins the message of a plan whose step is retried. OLM writes it too.
const retrying = "retrying execution due to error: "

// planFindings returns what blocks a plan.
func planFindings(s *search, p *operatorsv1alpha1.InstallPlan) []*Finding {
	installed := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled)
	message := cmp.Or(installed.Message, p.Status.Message)
	at := s.follow(refTo(KindInstallPlan, p), string(p.Status.Phase), message)
	switch p.Status.Phase {
	case operatorsv1alpha1.InstallPlanPhaseRequiresApproval:
		if p.Spec.Approved {
			return nil
		}
		return []*Finding{approvalFinding(at, p.Spec.ClusterServiceVersionNames)}
	case operatorsv1alpha1.InstallPlanPhaseFailed:
		if installed.Status != corev1.ConditionFalse || message == "" {
			return []*Finding{declaredFailed(at, p)}
		}
		cause, _ := api.CauseOf(p)
		return []*Finding{stepFinding(at, cause, cmp.Or(p.Status.Message, message), Wrong)}
	case operatorsv1alpha1.InstallPlanPhaseInstalling:
		if installed.Reason == operatorsv1alpha1.InstallPlanReasonInstallCheckFailed {
			return []*Finding{checkFinding(at, p, message)}
		}
		if message != "" {
			cause, _ := api.CauseOf(p)
			return []*Finding{stepFinding(at, cause, message, Waiting)}
		}
	case operatorsv1alpha1.InstallPlanPhasePlanning, operatorsv1alpha1.InstallPlanPhaseNone:
		return lookupFindings(at, p)
	case operatorsv1alpha1.InstallPlanPhaseComplete:
	}
	return nil
}

// approvalFinding returns the finding about a plan that waits for approval.
func approvalFinding(s *search, versions []string) *Finding {
	what := ""
	if len(versions) > 0 {
		what = ", which installs " + strings.Join(versions, ", ") + ","
	}
	return s.finding(CodePlanNeedsApproval, Waiting, s.current().String()+what+" waits for approval (spec.approved is false)").
		withCommands("kubectl chandlery approve "+s.current().Name+" -n "+s.current().Namespace,
			kubectl("patch", s.current(), `--type merge -p '{"spec":{"approved":true}}'`))
}

// checkFinding returns the finding about a plan that cannot begin.
func checkFinding(s *search, p *operatorsv1alpha1.InstallPlan, message string) *Finding {
	if f := groupFinding(s, p.Namespace); f != nil {
		return f
	}
	code := CodePlanStepFailed
	if p.Status.AttenuatedServiceAccountRef != nil {
		code = CodeOperatorGroupServiceAccountMissing
	}
	return s.finding(code, Wrong, s.current().String()+" cannot begin: "+message)
}

// lookupFindings returns the finding about a plan without steps: a bundle image that cannot be pulled or used.
func lookupFindings(s *search, p *operatorsv1alpha1.InstallPlan) []*Finding {
	for i := range p.Status.BundleLookups {
		lookup := &p.Status.BundleLookups[i]
		failed := lookup.GetCondition(operatorsv1alpha1.BundleLookupFailed)
		if failed.Status != corev1.ConditionTrue {
			continue
		}
		at := s.follow(Ref{Kind: KindBundleImage, Name: lookup.Path}, "", "")
		cause := fmt.Sprintf("image %s of bundle %s cannot be pulled or used: %s: %s", lookup.Path, lookup.Identifier, failed.Reason, failed.Message)
		code := CodeBundleImagePullFailed
		if failed.Reason == api.ReasonPolicyRefused {
			code, cause = CodeImageRefused, fmt.Sprintf("image %s of bundle %s is refused: %s", lookup.Path, lookup.Identifier, failed.Message)
		}
		return []*Finding{at.finding(code, Wrong, cause).withRemedy(lookupRemedy(s.Subscriptions, p))}
	}
	return nil
}

// lookupRemedy returns what to do about the bundle images of a plan. A Subscription that refers to the plan states it;
// empty for none.
func lookupRemedy(subscriptions []operatorsv1alpha1.Subscription, p *operatorsv1alpha1.InstallPlan) string {
	for i := range subscriptions {
		sub := &subscriptions[i]
		unpacking := sub.Status.GetCondition(operatorsv1alpha1.SubscriptionBundleUnpackFailed)
		if refersTo(sub, p) && unpacking.Status == corev1.ConditionTrue {
			_, remedy := blockedOf(sub)
			return remedy
		}
	}
	return ""
}

// stepFinding returns the finding about a step that could not be applied. The cause is empty where OLM or a former
// release wrote the plan. otherwise is the severity of a failure that may be temporary.
func stepFinding(s *search, cause api.Cause, message string, otherwise Severity) *Finding {
	message = strings.TrimPrefix(message, retrying)
	code, severity := codeOfCause(cause), Wrong
	if cause.Reason == "" {
		code = codeOfRefusal(message)
	}
	code = cmp.Or(code, CodePlanStepFailed)
	if code == CodePlanStepFailed {
		severity = otherwise
	}
	return refusalFinding(s, code, severity, s.current().String()+": "+message, cause.Remedy).withCommands(kubectl("describe", s.current(), ""))
}
