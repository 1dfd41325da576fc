package explain

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
)

// oneLine returns a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// sentence returns a text as a sentence. A first word that is a name or a command is not capitalized.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	word, _, _ := strings.Cut(text, " ")
	if !strings.ContainsAny(word, "./=") {
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return text
}

// codeOfRefusal returns the code for the text of a refusal of the API server; empty when the text states no
// reason that has one.
func codeOfRefusal(text string) string { return codesOfRefusals[refusal.Of(text)] }

// codeOfCause returns the code for the reason of a cause; empty when none is exact.
func codeOfCause(cause api.Cause) string {
	return cmp.Or(codesOfCauses[cause.Reason], codesOfRefusals[refusal.Reason(cause.Reason)])
}

// codesOfCauses are the codes of the reasons that are no refusals of the API server.
var codesOfCauses = map[string]string{
	api.ReasonAPINotFound:            CodePlanStepAPIMissing,
	api.ReasonDefinitionRefused:      CodePlanDefinitionUnsafe,
	api.ReasonObjectOwnedByOther:     CodePlanObjectOwnedByOther,
	api.ReasonKindNotAllowed:         CodePlanObjectUnsupported,
	api.ReasonContentInvalid:         CodeBundleUnusable,
	api.ReasonPolicyRefused:          CodeImageRefused,
	api.ReasonDeploymentNotAvailable: CodeDeploymentNotAvailable,
	api.ReasonWaitingForPredecessor:  CodePredecessorNotReady,
}

// codesOfRefusals are the codes of the reasons that have one.
var codesOfRefusals = map[refusal.Reason]string{
	refusal.ResourcesRequired:     CodeResourcesRequired,
	refusal.QuotaExceeded:         CodeQuotaExceeded,
	refusal.LimitExceeded:         CodeLimitRangeViolated,
	refusal.PodSecurityViolated:   CodePodSecurityRefused,
	refusal.WebhookUnavailable:    CodeWebhookUnavailable,
	refusal.AdmissionDenied:       CodeAdmissionRefused,
	refusal.ServiceAccountMissing: CodeServiceAccountMissing,
	refusal.PermissionDenied:      CodePermissionDenied,
	refusal.EscalationDenied:      CodePermissionDenied,
	refusal.Invalid:               CodeObjectInvalid,
}

// refusalFinding returns the finding about a refused request. For some codes, the remedy follows from the cause, and
// the given one is not used.
func refusalFinding(s *search, code string, severity Severity, cause, remedy string) *Finding {
	switch code {
	case CodeResourcesRequired:
		return s.finding(code, severity, cause)
	case CodeLimitRangeViolated:
		return limitRangeFinding(s, s.finding(code, severity, cause))
	case CodeWebhookUnavailable:
		name := refusal.Webhook(cause)
		return s.finding(code, severity, fmt.Sprintf("%s (the server of webhook %s does not answer)", cause, name)).
			withRemedy("restore the server of webhook " + name + ", or delete its configuration if the webhook is no longer in use").
			withCommands("kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	default:
		return s.finding(code, severity, cause).withRemedy(remedy)
	}
}

// kubectl returns a command about an object.
func kubectl(verb string, object Ref, rest string) string {
	namespace := ""
	if object.Namespace != "" {
		namespace = " -n " + object.Namespace
	}
	command := fmt.Sprintf("kubectl%s %s %s %s", namespace, verb, strings.ToLower(object.Kind), object.Name)
	if rest != "" {
		command += " " + rest
	}
	return command
}
