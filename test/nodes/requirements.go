package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// UnsupportedError means that this machine cannot run nodes.
type UnsupportedError struct {
	// Missing are the missing requirements with their remedies.
	Missing []string
}

// Error names all missing requirements.
func (e *UnsupportedError) Error() string {
	return "this machine cannot run nodes: " + strings.Join(e.Missing, "; ")
}

// requirement is a program with its Debian package.
type requirement struct {
	program, debian string
}

func requirements() []requirement {
	plugins := []requirement{}
	for _, name := range []string{"ptp", "host-local", "portmap", "loopback"} {
		plugins = append(plugins, requirement{filepath.Join(cniPrograms, name), "containernetworking-plugins"})
	}

	return slices.Concat(plugins, []requirement{
		{"runc", "runc"},
		{"iptables", "iptables"},
		{"conntrack", "conntrack"},
		{"ip", "iproute2"},
		{"mount", "mount"},
		{"nsenter", "util-linux"},
		{"unshare", "util-linux"},
	})
}

// Check returns an *UnsupportedError if this machine cannot run nodes.
func Check(ctx context.Context) error {
	var missing []string

	if runtime.GOOS != "linux" {
		return &UnsupportedError{Missing: []string{"it does not run Linux"}}
	}

	if os.Geteuid() != 0 {
		missing = append(missing, "the user is not root: run it with sudo")
	}

	for _, r := range requirements() {
		_, err := exec.LookPath(r.program)
		if err != nil {
			missing = append(missing, fmt.Sprintf("program %s is missing: apt-get install %s", r.program, r.debian))
		}
	}

	if len(missing) == 0 {
		missing = lackingFeatures(ctx)
	}

	if len(missing) > 0 {
		return &UnsupportedError{Missing: missing}
	}

	return nil
}

// lackingFeatures tests features that a container may deny to root or that a kernel may lack.
func lackingFeatures(ctx context.Context) []string {
	var missing []string

	for what, try := range map[string]func() error{
		"control groups cannot be made": func() error {
			const name = prefix + "-try"

			return errors.Join(addCgroup(cgroupFolder, name), removeCgroups(ctx, cgroupFolder, name))
		},
		"an overlay file system cannot be mounted": func() error { return tryOverlay(ctx) },
		"network, mount and process namespaces cannot be made": func() error {
			return execute(ctx, "", "unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--", "iptables", "--table", "nat", "--list")
		},
	} {
		err := try()
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (%v): use a virtual machine or a privileged container", what, err))
		}
	}

	slices.Sort(missing)

	return missing
}

func tryOverlay(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", prefix+"-try-")
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	for _, folder := range []string{"lower", "upper", "work", "merged"} {
		err = os.Mkdir(filepath.Join(dir, folder), 0o700)
		if err != nil {
			return err
		}
	}

	merged := filepath.Join(dir, "merged")

	err = execute(ctx, "", "mount", "-t", "overlay", "overlay", "-o", fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir), merged)
	if err != nil {
		return err
	}

	return execute(ctx, "", "umount", merged)
}
