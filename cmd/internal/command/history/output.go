package history

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/chandlery/chandlery/cmd/internal/command/history/timeline"
	"github.com/chandlery/chandlery/cmd/internal/console"
)

// print writes what was found, once.
func (h *historian) print(found []timeline.Timeline) error {
	if h.output.ForMachines() {
		return h.output.Document(h.out, map[string]any{"subscriptions": append([]timeline.Timeline{}, found...)}) //nolint:wrapcheck // says what it was doing
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

// record writes one value of a stream: JSON in one line, or a YAML document.
func (h *historian) record(value any) error {
	if h.output.Form == console.YAML {
		if err := h.write("---\n"); err != nil {
			return err
		}
		return h.output.Document(h.out, value) //nolint:wrapcheck // says what it was doing
	}
	encoder := json.NewEncoder(h.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (h *historian) write(text string) error {
	if _, err := io.WriteString(h.out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
