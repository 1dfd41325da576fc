package redact

import (
	"encoding/json"
	"slices"
	"strings"
)

// lastApplied is an annotation that repeats the whole object as text.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Policy configures what is shown of objects.
type Policy struct {
	// Env shows the values of environment variables whose names do not look secret.
	Env bool
}

// Object returns a copy of an object without secrets, and without fields that only repeat others.
func (p Policy) Object(object map[string]any) map[string]any {
	kept := make(map[string]any, len(object))
	secret := object["kind"] == "Secret"
	for key, value := range object {
		if secret && (key == "data" || key == "stringData") {
			kept[key] = withheld(value)
			continue
		}
		if value, keep := p.field(key, value); keep {
			kept[key] = value
		}
	}
	return kept
}

// withheld returns a map with its keys and without its values.
func withheld(value any) any {
	fields, is := value.(map[string]any)
	if !is {
		return Mark
	}
	kept := make(map[string]any, len(fields))
	for key := range fields {
		kept[key] = Mark
	}
	return kept
}

// field returns the redacted value of a field, and whether the field is shown.
func (p Policy) field(key string, value any) (any, bool) {
	switch key {
	case "managedFields", lastApplied, "base64data":
		return nil, false
	case "caBundle":
		// A certificate is public. Anything else in this field is hidden.
		text, is := value.(string)
		return text, is && !strings.Contains(text, "PRIVATE KEY") && decoded(text, 0) == text
	}
	switch value := value.(type) {
	case string:
		if LooksSecret(key) && !namesSecret(key) {
			return Mark, true
		}
		return p.text(value), true
	case []any:
		switch key {
		case "env":
			return p.env(value), true
		case "args", "command":
			return p.arguments(value), true
		}
	}
	return p.value(value), true
}

// namesSecret reports whether a field of the API has a name that looks secret but holds no secret:
// the name of a Secret, of a key in one, or of a label.
func namesSecret(key string) bool {
	return slices.Contains([]string{"key", "secret", "secretName", "secretNamespace", "pullSecret"}, key)
}

func (p Policy) value(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return p.Object(value)
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = p.value(value[i])
		}
		return kept
	case string:
		return p.text(value)
	default:
		return value
	}
}

// env returns environment variables without the values that are hidden.
func (p Policy) env(list []any) []any {
	kept := make([]any, len(list))
	for i := range list {
		one, is := list[i].(map[string]any)
		if !is {
			kept[i] = p.value(list[i])
			continue
		}
		shown := p.Object(one)
		name, _ := one["name"].(string)
		if text, is := one["value"].(string); is && text != "" && (!p.Env || LooksSecret(name)) {
			shown["value"] = Mark
		}
		kept[i] = shown
	}
	return kept
}

// arguments returns a redacted command line. An argument is hidden if it follows a flag that looks
// secret and has no value of its own.
func (p Policy) arguments(list []any) []any {
	kept := make([]any, len(list))
	next := false
	for i := range list {
		text, is := list[i].(string)
		switch {
		case !is:
			kept[i] = p.value(list[i])
		case next && !strings.HasPrefix(text, "-"), isLogin(list, i):
			kept[i] = Mark
		default:
			kept[i] = Text(text)
		}
		next = is && strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && LooksSecret(text)
	}
	return kept
}

// isLogin reports whether an argument is the password after -p, or NAME:PASSWORD after -u. A number
// after -p is a port.
func isLogin(list []any, i int) bool {
	text, _ := list[i].(string)
	if i == 0 || strings.HasPrefix(text, "-") {
		return false
	}
	switch list[i-1] {
	case "-p":
		return strings.Trim(text, "0123456789") != ""
	case "-u", "--user", "--proxy-user":
		return strings.Contains(text, ":")
	}
	return false
}

// text returns a redacted text. The text may be an object or several objects, as in annotations.
func (p Policy) text(text string) string {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		return p.manifest(text)
	}
	return Text(text)
}

// manifest returns the redacted text of an object, as in steps of InstallPlans and in annotations.
func (p Policy) manifest(text string) string {
	var object any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil || decoder.More() {
		return Text(text)
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(p.value(object)) != nil { //nolint:errchkjson // it was decoded from JSON, and encodes again
		return Mark
	}
	return strings.TrimSuffix(b.String(), "\n")
}
