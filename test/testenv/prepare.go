package testenv

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/programs"
)

// SupervisorNamespace is the namespace of the supervisors in deploy/.
const SupervisorNamespace = "chandlery-system"

// InstallCRDsWith does the same as InstallCRDs with the program of a supervisor, as a user does.
func InstallCRDsWith(supervisor string) func(context.Context, *controlplane.ControlPlane) error {
	return func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return programs.InstallCRDs(ctx, supervisor, cp.Kubeconfig())
	}
}

// Deploy creates the namespace of the supervisors and applies files of deploy/.
func Deploy(files ...string) func(context.Context, *controlplane.ControlPlane) error {
	return func(ctx context.Context, cp *controlplane.ControlPlane) error {
		dir, err := buildcache.SourceDir("deploy")
		if err != nil {
			return fmt.Errorf("finding the manifests: %w", err)
		}
		apply := []string{"apply"}
		for _, file := range files {
			apply = append(apply, "-f", file)
		}
		for _, args := range [][]string{{"create", "namespace", SupervisorNamespace}, apply} {
			cmd := exec.CommandContext(ctx, cp.Kubectl(), append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
			}
		}
		return nil
	}
}
