package explain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine gives a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// remedyParted parts a message of the supervisor, which says what is wrong and, after
// its last semicolon, what to do. What goes on by itself afterwards belongs to the latter.
func remedyParted(message string) (cause, remedy string) {
	i := strings.LastIndex(message, "; ")
	if i < 0 {
		return message, ""
	}
	cause, remedy = message[:i], message[i+len("; "):]
	if !strings.Contains(remedy, "by itself") || strings.Contains(remedy, ", and ") {
		return cause, remedy
	}
	earlier, todo := remedyParted(cause)
	if todo == "" {
		return cause, remedy
	}
	return earlier, todo + "; " + remedy
}

// sentence begins a text with a capital letter and ends it with a full stop. What is
// written as a name or a command stays as it is.
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

// refusal tells by its words what the API server refused something for; empty when it is
// none of those that are known. Controllers hand the words on, nothing else.
func refusal(text string) string {
	switch {
	case strings.Contains(text, "failed quota") && strings.Contains(text, "must specify "):
		return CodeResourcesRequired
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "failed quota"):
		return CodeQuotaExceeded
	case surelyLimited(text):
		return CodeLimitRange
	case strings.Contains(text, "violates PodSecurity"):
		return CodePodSecurity
	case strings.Contains(text, uncalled):
		return CodeWebhookAway
	case strings.Contains(text, "admission webhook "),
		strings.Contains(text, "ValidatingAdmissionPolicy "):
		return CodeAdmission
	case strings.Contains(text, "error looking up service account"),
		strings.Contains(text, "serviceaccount ") && strings.Contains(text, " not found"):
		return CodeServiceAccountMissing
	case strings.Contains(text, "is forbidden: User "), strings.Contains(text, "cannot create resource"),
		strings.Contains(text, "attempting to grant RBAC permissions not currently held"):
		return CodeRightsMissing
	case strings.Contains(text, " is invalid: "):
		return CodeObjectInvalid
	default:
		return ""
	}
}

// uncalled is what the API server says before the name of a webhook that does not answer.
const uncalled = "failed calling webhook "

// refused makes a finding of what was refused for a cause. What helps follows from the
// code where whoever handed the words on cannot know it.
func (s *story) refused(code string, severity Severity, cause, remedy string) *Finding {
	switch code {
	case CodeResourcesRequired:
		return s.found(code, severity, cause)
	case CodeLimitRange:
		return s.limited(s.found(code, severity, cause))
	case CodeWebhookAway:
		_, after, _ := strings.Cut(cause, uncalled)
		name, _, _ := strings.Cut(strings.TrimPrefix(after, `"`), `"`)
		return s.found(code, severity, fmt.Sprintf("%s (the server of webhook %s does not answer)", cause, name)).
			advising("bring the server of webhook " + name + " back, or delete its configuration if what it belongs to is gone").
			with("kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")
	default:
		return s.found(code, severity, cause).advising(remedy)
	}
}

// kubectl gives a command about an object.
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
