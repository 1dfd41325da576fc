package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/cmd/supervisor/timeline"
)

// print writes what was found, once.
func (h *historian) print(found []timeline.Timeline) error {
	if h.form != "table" {
		return h.document(map[string]any{"subscriptions": append([]timeline.Timeline{}, found...)}, "  ")
	}
	texts := make([]string, 0, len(found))
	for i := range found {
		texts = append(texts, found[i].Table(h.zone))
	}
	if len(found) == 0 {
		texts = append(texts, fmt.Sprintf("No Subscriptions in namespace %s\n", h.namespace))
	}
	return h.write(strings.Join(texts, "\n"))
}

// document writes a value in a form that machines read: JSON with an indentation, or
// in a line if there is none, or a document of a YAML stream.
func (h *historian) document(value any, indent string) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if h.form == "json" {
		return h.write(text.String())
	}
	document, err := yaml.JSONToYAML([]byte(text.String()))
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if indent == "" {
		document = append([]byte("---\n"), document...)
	}
	return h.write(string(document))
}

func (h *historian) write(text string) error {
	if _, err := io.WriteString(h.out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
