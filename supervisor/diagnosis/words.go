package diagnosis

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
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "must specify limits."), strings.Contains(text, "failed quota"):
		return CodeQuotaExceeded
	case strings.Contains(text, "violates PodSecurity"):
		return CodePodSecurity
	case strings.Contains(text, "admission webhook "), strings.Contains(text, "failed calling webhook"),
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
