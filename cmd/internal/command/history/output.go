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
func (r *runner) print(found []timeline.Timeline) error {
	if r.output.ForMachines() {
		return r.output.Document(r.out, map[string]any{"subscriptions": append([]timeline.Timeline{}, found...)}) //nolint:wrapcheck // says what it was doing
	}
	texts := make([]string, 0, len(found))
	for i := range found {
		texts = append(texts, found[i].Table(r.zone))
	}
	if len(found) == 0 {
		texts = append(texts, fmt.Sprintf("No Subscriptions in namespace %s\n", r.namespace))
	}
	return r.write(strings.Join(texts, "\n"))
}

// record writes one value of a stream: JSON in one line, or a YAML document.
func (r *runner) record(value any) error {
	if r.output.Form == console.YAML {
		if err := r.write("---\n"); err != nil {
			return err
		}
		return r.output.Document(r.out, value) //nolint:wrapcheck // says what it was doing
	}
	encoder := json.NewEncoder(r.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (r *runner) write(text string) error {
	if _, err := io.WriteString(r.out, text); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
