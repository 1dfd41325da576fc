package compattest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chandlery/chandlery/test/buildcache"
)

// The programs of the module test/compat/clients.
const (
	// ProgramHealth computes the health of an object as GitOps tools do.
	ProgramHealth = "health"
	// ProgramOperator is kubectl-operator v0.6.0.
	ProgramOperator = "kubectl-operator"
)

// clients returns the folder of the programs, built once.
var clients = sync.OnceValues(func() (string, error) {
	dir, err := buildcache.SourceDir("test/compat/clients")
	if err != nil {
		return "", fmt.Errorf("building clients: %w", err)
	}
	ctx := context.Background() //nolint:forbidigo // It is built once for all tests, and outlives the first.
	programs, err := buildcache.Build(ctx, buildcache.Module{
		Name: "clients", Dir: dir,
		Programs: []buildcache.Program{
			{Name: ProgramHealth, Package: "github.com/chandlery/chandlery/test/compat/clients/health"},
			{Name: ProgramOperator, Package: "github.com/operator-framework/kubectl-operator"},
		},
	}, os.Stderr)
	if err != nil {
		return "", fmt.Errorf("building clients: %w", err)
	}
	return programs, nil
})

// Client returns the path of a program of unmodified clients.
func Client(t *testing.T, name string) string {
	t.Helper()
	dir, err := clients()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
