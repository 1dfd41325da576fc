package takeover_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
)

// tools are the programs with which an administrator installs OLM and the supervisors.
type tools struct {
	installation

	cluster  *olmScene
	chart    olmpeer.Chart
	settings []string // of the chart
	helmPath string
}

// set returns the flags of helm for settings.
func set(settings ...string) []string {
	var args []string
	for _, one := range settings {
		args = append(args, "--set", one)
	}
	return args
}

// executes runs a program and returns its output.
func (u *tools) executes(program string, args ...string) (string, error) {
	u.cluster.t.Helper()
	out, err := exec.CommandContext(u.cluster.t.Context(), program, append([]string{"--kubeconfig", u.cluster.plane.Kubeconfig()}, args...)...).CombinedOutput()
	u.cluster.t.Logf("$ %s %s\n%s", filepath.Base(program), strings.Join(args, " "), out)
	return string(out), err
}

// helm runs helm, which must succeed.
func (u *tools) helm(args ...string) {
	u.cluster.t.Helper()
	if _, err := u.executes(u.helmPath, args...); err != nil {
		u.cluster.t.Fatal(err)
	}
}

// kubectl runs kubectl, which must succeed.
func (u *tools) kubectl(args ...string) {
	u.cluster.t.Helper()
	if _, err := u.executes(u.cluster.plane.Kubectl(), args...); err != nil {
		u.cluster.t.Fatal(err)
	}
}

// kustomization writes a folder with a kustomization, and returns it.
func (u *tools) kustomization(content string, files map[string][]byte) string {
	u.cluster.t.Helper()
	dir := u.cluster.t.TempDir()
	files["kustomization.yaml"] = []byte(content)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			u.cluster.t.Fatal(err)
		}
	}
	return dir
}

// applyOLM installs or changes OLM with the tool of the administrator, and further settings.
func (u *tools) applyOLM(more ...string) (string, error) {
	u.cluster.t.Helper()
	settings := slices.Concat(u.settings, more)
	if u.olm == byHelm {
		return u.executes(u.helmPath, append([]string{"upgrade", "olm", u.chart.Dir}, set(settings...)...)...)
	}
	manifests, err := u.chart.Manifests(u.cluster.t.Context(), settings...)
	if err != nil {
		u.cluster.t.Fatal(err)
	}
	dir := u.kustomization("resources: [olm.yaml]\n", map[string][]byte{"olm.yaml": manifests})
	return u.executes(u.cluster.plane.Kubectl(), "apply", "--server-side", "-k", dir)
}

// overlay is a kustomization that sets the namespace of the global catalogs.
const overlay = `
resources: [%s]
patches:
- target: {kind: Deployment, name: chandlery-supervisor}
  patch: |
    - {op: test, path: /spec/template/spec/containers/0/args/1, value: --global-catalog-namespace=olm}
    - {op: replace, path: /spec/template/spec/containers/0/args/1, value: --global-catalog-namespace=%s}
`

// installSupervisors installs the supervisors beside OLM, as docs/migration.md describes.
func (u *tools) installSupervisors() {
	u.cluster.t.Helper()
	manifests, err := buildcache.SourceDir("deploy")
	if err != nil {
		u.cluster.t.Fatal(err)
	}
	if u.supervisors == byHelm {
		u.helm("upgrade", "--install", "chandlery", filepath.Join(manifests, "chart"), "--namespace", home, "--create-namespace",
			"--set", "globalCatalogNamespace.name="+u.namespace)
		return
	}
	// A resource of a kustomization has a relative path.
	dir := u.kustomization("", map[string][]byte{})
	base, err := filepath.Rel(dir, manifests)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, overlay, base, u.namespace), 0o600)
	}
	if err != nil {
		u.cluster.t.Fatal(err)
	}
	u.kubectl("apply", "-k", dir)
}
