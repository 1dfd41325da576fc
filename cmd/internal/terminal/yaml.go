package terminal

import (
	"sigs.k8s.io/yaml"
)

// YAML returns a JSON document as YAML that keeps its meaning after [Escape].
//
// An escape has a meaning only between double quotes. A document in which [Escape] would replace
// anything elsewhere stays JSON, which is also YAML.
func YAML(document []byte) ([]byte, error) {
	// YAML does not allow some of the characters that JSON allows.
	safe := []byte(Escape(string(document)))
	text, err := yaml.JSONToYAML(safe)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers say what they print
	}
	if Escape(string(text)) != string(text) {
		return safe, nil
	}
	return text, nil
}
