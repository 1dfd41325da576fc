package controlplane

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/chandlery/chandlery/test/buildcache"
)

const (
	helperModule     = "test/controlplane/binaries"
	kubernetesModule = "k8s.io/kubernetes"
	kwokModule       = "sigs.k8s.io/kwok"

	// program has all components. Under the name kubectl, it is kubectl. One program costs one run of the linker.
	program = "controlplane"
	kubectl = "kubectl"

	// stagesFolder holds the stages of kwok beside the binaries.
	stagesFolder = "stages"
)

// stages are the files of kwok's module that define how nodes and pods progress: immediately.
var stages = []string{
	"kustomize/stage/node/fast/node-initialize.yaml",
	"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"kustomize/stage/pod/fast/pod-ready.yaml",
	"kustomize/stage/pod/fast/pod-complete.yaml",
	"kustomize/stage/pod/fast/pod-delete.yaml",
}

// The programs of Kubernetes that a cluster with real nodes has besides: those of the nodes, and all controllers.
const (
	controllerManager = "kube-controller-manager"
	kubelet           = "kubelet"
	kubeProxy         = "kube-proxy"
)

// Build builds the programs of the control plane unless the cache has them, and returns their
// directory. It writes a line to progress before and after each program that it builds.
func Build(ctx context.Context, progress io.Writer) (string, error) {
	return build(ctx, progress, program)
}

// BuildForNodes is Build with the programs of real nodes, and with all controllers.
func BuildForNodes(ctx context.Context, progress io.Writer) (string, error) {
	return build(ctx, progress)
}

// build builds the named programs; all without names.
func build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
	dir, err := buildcache.SourceDir(helperModule)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}

	version, err := buildcache.Required(dir, kubernetesModule)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}

	binaries, err := buildcache.Build(ctx, binariesOf(dir, version), progress, names...)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}

	return binaries, nil
}

func binariesOf(dir, version string) buildcache.Module {
	flags := versionFlags(version)
	m := buildcache.Module{
		Name: "controlplane",
		Dir:  dir,
		Programs: []buildcache.Program{
			{Name: program, Package: "./" + program, LDFlags: flags, Links: []string{kubectl}},
			{Name: controllerManager, Package: kubernetesModule + "/cmd/" + controllerManager, LDFlags: flags},
			{Name: kubelet, Package: kubernetesModule + "/cmd/kubelet", LDFlags: flags},
			{Name: kubeProxy, Package: kubernetesModule + "/cmd/kube-proxy", LDFlags: flags},
		},
	}

	for _, name := range stages {
		m.Files = append(m.Files, buildcache.File{Name: stagesFolder + "/" + path.Base(name), Module: kwokModule, Path: name})
	}

	return m
}

// versionFlags returns linker flags with which the programs of Kubernetes report the given version
// ("v1.2.3"). Clients cannot parse their placeholder.
func versionFlags(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	values := map[string]string{"gitVersion": version, "gitTreeState": "clean"}

	if len(parts) == 3 {
		values["gitMajor"], values["gitMinor"] = parts[0], parts[1]
	}

	var flags []string

	for _, name := range []string{"gitVersion", "gitMajor", "gitMinor", "gitTreeState"} {
		flags = append(flags, fmt.Sprintf("-X k8s.io/component-base/version.%s=%s", name, values[name]))
	}

	return strings.Join(flags, " ")
}
