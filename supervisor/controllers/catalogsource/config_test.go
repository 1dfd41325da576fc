package catalogsource

import (
	"strings"
	"testing"
)

func TestMemoryLimitIsValidated(t *testing.T) {
	for _, text := range []string{"much", "-1", "1Q1"} {
		h := Config{}
		h.MemoryLimit = text
		if err := h.Validate(); err == nil || !strings.Contains(err.Error(), "--registry-memory-limit") {
			t.Errorf("limit %q: got %v", text, err)
		}
	}
}
