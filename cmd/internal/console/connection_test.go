package console_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/cmd/internal/console"
)

// TestMissingKubeconfig names the file that is not there.
func TestMissingKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", path)
	for _, flag := range []string{"", path} {
		if _, err := console.RESTConfig(flag, "test"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("--kubeconfig %q: error %v, want one with %s", flag, err, path)
		}
	}
}
