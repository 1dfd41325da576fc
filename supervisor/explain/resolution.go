package explain

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

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

// bundleFindings returns the finding about a bundle image that cannot be pulled or used. The plan, if it has a
// finding, names the image.
func bundleFindings(s *search) []*Finding {
	reason, message, is := trueCondition(s.sub, operatorsv1alpha1.SubscriptionBundleUnpackFailed)
	if !is || len(subscribedPlan(s)) > 0 {
		return nil // the plan names the image
	}
	blocked, remedy := blockedOf(s.sub)
	code := CodeBundleUnusable
	switch {
	case blocked == api.ReasonPolicyRefused:
		code, message = CodeImageRefused, "image of a bundle is refused: "+strings.TrimPrefix(message, unpacking)
	case reason == api.ReasonBundleUnpackFailed:
		code, message = CodeBundleImagePullFailed, "image of a bundle cannot be pulled: "+strings.TrimPrefix(message, unpacking)
	}
	return []*Finding{s.finding(code, Wrong, s.subject.String()+": "+message).withRemedy(remedy)}
}

// resolutionFindings returns why the resolution failed, as far as the Subscription has an exact reason.
func resolutionFindings(s *search) []*Finding {
	general, message, is := trueCondition(s.sub, operatorsv1alpha1.SubscriptionResolutionFailed)
	if !is {
		return nil
	}
	reason, remedy := blockedOf(s.sub)
	if reason == "" && general == api.ReasonConstraintsNotSatisfiable {
		reason = general // OLM or a former release wrote the status
	}
	spec := s.sub.Spec
	catalog := fmt.Sprintf("CatalogSource %s/%s", spec.CatalogSourceNamespace, spec.CatalogSource)
	code, cause := CodeConstraintsNotSatisfiable, message
	switch reason {
	case "", api.ReasonCatalogNotFound, api.ReasonCatalogExcluded, api.ReasonCatalogUnavailable, api.ReasonOperatorGroupInvalid:
		return nil // other rules have the cause, or the last one has
	case api.ReasonResolutionFailed:
		code = CodeResolutionFailed
	case api.ReasonPackageNotFound:
		code, cause = CodePackageNotFound, fmt.Sprintf("%s has no package %s (spec.name)", catalog, spec.Package)
	case api.ReasonStartingVersionNotFound:
		code, cause = CodeStartingVersionNotFound, fmt.Sprintf("channel %s of package %s in %s has no version %s (spec.startingCSV)", spec.Channel, spec.Package, catalog, spec.StartingCSV)
	case api.ReasonPinNotFound:
		code = CodeStartingVersionNotFound
	case api.ReasonChannelNotFound:
		code, cause = CodeChannelNotFound, fmt.Sprintf("package %s in %s has no channel %s (spec.channel)", spec.Package, catalog, spec.Channel)
	case api.ReasonDependencyNotFound:
		code = CodeDependencyNotFound
	}
	return []*Finding{s.finding(code, Wrong, s.subject.String()+": "+cause).withRemedy(remedy).withCommands(kubectl("edit", s.subject, ""))}
}

// unresolvedFindings returns the finding about a failed resolution that no other rule explains.
func unresolvedFindings(s *search) []*Finding {
	_, message, is := trueCondition(s.sub, operatorsv1alpha1.SubscriptionResolutionFailed)
	if !is {
		return nil
	}
	_, remedy := blockedOf(s.sub)
	return []*Finding{s.finding(CodeResolutionFailed, Wrong, s.subject.String()+": "+message).withRemedy(remedy).withCommands(kubectl("edit", s.subject, ""))}
}

// heldVersion returns the finding about a newer version that cannot be installed now.
func heldVersion(s *search) []*Finding {
	reason, message, is := trueCondition(s.sub, api.ConditionNewerVersionHeld)
	if !is {
		return nil
	}
	switch reason {
	case api.ReasonPinned:
		return []*Finding{s.finding(CodePinned, Note, s.subject.String()+" is pinned: "+message).
			withCommands(kubectl("annotate", s.subject, api.AnnotationPin+"-"))}
	case api.ReasonConstraintsNotSatisfiable:
		return []*Finding{s.finding(CodeNewerVersionHeld, Waiting, s.subject.String()+": a newer version cannot be installed: "+message)}
	default:
		return nil // the version itself tells
	}
}

// planDeleted returns the note about a deleted plan of an installed version.
func planDeleted(s *search) []*Finding {
	_, message, is := trueCondition(s.sub, operatorsv1alpha1.SubscriptionInstallPlanMissing)
	if !is {
		return nil
	}
	return []*Finding{s.finding(CodePlanDeleted, Note, s.subject.String()+": "+message)}
}

// deprecations returns the note about a deprecation by the catalog.
func deprecations(s *search) []*Finding {
	for _, kind := range []operatorsv1alpha1.SubscriptionConditionType{
		operatorsv1alpha1.SubscriptionPackageDeprecated, operatorsv1alpha1.SubscriptionChannelDeprecated, operatorsv1alpha1.SubscriptionBundleDeprecated,
	} {
		if _, message, is := trueCondition(s.sub, kind); is {
			return []*Finding{s.finding(CodeDeprecated, Note, s.subject.String()+": the catalog deprecates it: "+message)}
		}
	}
	return nil
}
