package disconnected_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/deploy/release"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/testrelease"
)

const (
	// catalogRepository has the image of the catalog, and pauseRepository that of all operators.
	catalogRepository = "acme/catalog"
	pauseRepository   = "acme/pause"
	// unmirrored is an image that only the source has.
	unmirrored = "acme/unmirrored:v1"
	// settingsName is the ConfigMap with the settings of the supervisors for registries.
	settingsName = "chandlery-image-registries"
)

// operators are the packages of the catalog, with their channel and their versions, the oldest first.
var operators = map[string]struct {
	channel  string
	versions []string
}{
	"lantern": {"stable", []string{"lantern.v1.0.0", "lantern.v1.1.0", "lantern.v1.2.0", "lantern.v1.3.0"}},
	"compass": {"stable", []string{"compass.v2.2.0"}},
	"buoy":    {"alpha", []string{"buoy.v0.3.0"}},
}

// head returns the newest version of an operator.
func head(operator string) string {
	versions := operators[operator].versions
	return versions[len(versions)-1]
}

// install publishes a release and a catalog at the source, copies all images that they need to a mirror, separates the
// nodes from everything else, and installs the release.
func install(t *testing.T, bed *nodes.Bed) (*cluster, error) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // The cluster outlives the first test.
	host, _, err := net.SplitHostPort(bed.Images.Address())
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the source: %w", err)
	}
	c := &cluster{bed: bed, mirror: startMirror(t, host, filepath.Join(bin, "mirror"))}
	_, port, err := net.SplitHostPort(ports.Address(t))
	if err != nil {
		return nil, fmt.Errorf("parsing the address for a catalog: %w", err)
	}
	c.distant = net.JoinHostPort(host, port)
	if c.WithWatch, err = failover.NewClient(bed); err != nil {
		return nil, err
	}
	dir := releaseDir()
	if err := publishRelease(ctx, bed, dir); err != nil {
		return nil, err
	}
	if err := publishCatalog(ctx, bed); err != nil {
		return nil, err
	}
	if err := c.copyImages(ctx, dir); err != nil {
		return nil, err
	}
	if err := c.separate(ctx); err != nil {
		return nil, err
	}
	settings, err := c.settings(dir)
	if err != nil {
		return nil, err
	}
	return c, errors.Join(
		kubectl(ctx, bed, "create", "namespace", failover.CatalogNamespace),
		kubectl(ctx, bed, "apply", "--server-side", "-f", filepath.Join(dir, "prerequisites.yaml")),
		kubectl(ctx, bed, "apply", "--server-side", "-k", settings),
		c.nameService(ctx),
		kubectl(ctx, bed, "--namespace", systemNamespace, "rollout", "status", "deployment/"+supervisorName, "--timeout", patience.String()))
}

// releaseDir returns the folder with the files of the release.
func releaseDir() string { return filepath.Join(bin, "release") }

// nameService gives the pods of the supervisors the address of the Service by which they read contents from each other: the
// bed has no DNS.
func (c *cluster) nameService(ctx context.Context) error {
	service := &corev1.Service{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "chandlery-packagemanifests-service"}, service); err != nil {
		return fmt.Errorf("reading the Service of the supervisors: %w", err)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"hostAliases":[{"ip":%q,"hostnames":[%q]}]}}}}`,
		service.Spec.ClusterIP, service.Name+"."+service.Namespace+".svc")
	return kubectl(ctx, c.bed, "--namespace", systemNamespace, "patch", "deployment/"+supervisorName, "--patch", patch)
}

// publishRelease builds a release whose images come from the source, and pushes them there.
func publishRelease(ctx context.Context, bed *nodes.Bed, dir string) error {
	if err := testrelease.Build(ctx, dir, bed.Images.Address()); err != nil {
		return err
	}
	_, err := release.Push(ctx, dir)
	return err
}

// publishCatalog pushes the operators, their bundles and their catalog to the source.
func publishCatalog(ctx context.Context, bed *nodes.Bed) error {
	source := bed.Images.Address()
	for _, name := range []string{pauseRepository + ":3.10", unmirrored} {
		if err := bed.Images.PushIdle(ctx, name); err != nil {
			return err
		}
	}
	root, err := buildcache.SourceDir(".")
	if err != nil {
		return err
	}
	samples, others := filepath.Join(root, "examples", "bundles"), filepath.Join("..", "operatorhub", "testdata", "bundles")
	made := filepath.Join(bin, "made")
	same := strings.NewReplacer()
	for _, one := range []struct {
		name, version, channel, from string
		edit                         *strings.Replacer
	}{
		{"lantern", "1.0.0", "stable", filepath.Join(samples, "lantern", "1.0.0"), same},
		{"lantern", "1.1.0", "stable", filepath.Join(samples, "lantern", "1.1.0"), same},
		{"lantern", "1.2.0", "stable", filepath.Join(samples, "lantern", "1.2.0"), same},
		{"lantern", "1.3.0", "stable", filepath.Join(samples, "lantern", "1.2.0"), strings.NewReplacer("1.1.0", "1.2.0", "1.2.0", "1.3.0")},
		{"compass", "2.2.0", "stable", filepath.Join(samples, "compass", "2.2.0"), same},
		{"buoy", "0.3.0", "alpha", filepath.Join(others, "buoy"), same},
	} {
		dir := filepath.Join(bin, "bundles", one.name, one.version)
		if err := copyBundle(one.from, dir, source+"/"+pauseRepository+":3.10", one.edit); err != nil {
			return err
		}
		image, err := images.Bundle(os.DirFS(dir))
		if err != nil {
			return err
		}
		if _, err := bed.Images.Push(ctx, image, "acme/"+one.name+"-bundle:v"+one.version); err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(made, one.name)); errors.Is(err, os.ErrNotExist) {
			if _, err := catalog(ctx, "init", one.name, "--catalog", made, "--default-channel", one.channel); err != nil {
				return err
			}
		}
		if _, err := catalog(ctx, "add", dir, "--catalog", made, "--channel", one.channel,
			"--image-ref-template", source+"/acme/{{.Package}}-bundle:v{{.Version}}"); err != nil {
			return err
		}
	}
	_, err = catalog(ctx, "push", made, source+"/"+catalogRepository+":v1", "--use-http")
	return err
}

// containerImage is an image of a container in a ClusterServiceVersion.
var containerImage = regexp.MustCompile(`image: \S+`)

// copyBundle copies a bundle. Its ClusterServiceVersion is edited, and has another image for its operator.
func copyBundle(from, to, operator string, edit *strings.Replacer) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copying a bundle: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(to, "manifests", "*clusterserviceversion.yaml"))
	if err != nil || len(names) != 1 {
		return fmt.Errorf("%s has ClusterServiceVersions %v: %w", from, names, err)
	}
	text, err := os.ReadFile(names[0])
	if err == nil {
		text = containerImage.ReplaceAll([]byte(edit.Replace(string(text))), []byte("image: "+operator))
		err = os.WriteFile(names[0], text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("changing a bundle: %w", err)
	}
	return nil
}

// catalog runs the program catalog on this machine and returns its output.
func catalog(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "catalog"), args...)
	var report bytes.Buffer
	cmd.Stderr = &report
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("catalog %s: %w\n%s%s", strings.Join(args, " "), err, out, report.String())
	}
	return string(out), nil
}

// copyImages copies the images of the catalog, of the release, and of pods to the mirror.
func (c *cluster) copyImages(ctx context.Context, dir string) error {
	source, at := c.bed.Images.Address(), c.mirror.address+"/"+prefix
	mapping, err := catalog(ctx, "images", source+"/"+catalogRepository+":v1", "--use-http", "-o", "mapping", "--mirror", at)
	if err != nil {
		return err
	}
	copies := map[string]string{source + "/chandlery/pause:test": at + "/chandlery/pause:test"}
	for line := range strings.Lines(mapping) {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			copies[from] = to
		}
	}
	manifest, err := os.ReadFile(filepath.Join(dir, "install.yaml"))
	if err != nil {
		return fmt.Errorf("reading the manifest of the release: %w", err)
	}
	for _, from := range regexp.MustCompile(regexp.QuoteMeta(source)+`/\S+@sha256:[0-9a-f]{64}`).FindAllString(string(manifest), -1) {
		copies[from] = at + strings.TrimPrefix(from, source)
	}
	const wanted = 11 // Catalog, six bundles, the operators' image, supervisor, registry, and the image of pods.
	if len(copies) != wanted {
		return fmt.Errorf("%d images are needed, want %d: %v", len(copies), wanted, copies)
	}
	return c.mirror.fill(ctx, copies)
}

// separate configures containerd on the nodes for the mirror, and refuses other connections to this machine.
func (c *cluster) separate(ctx context.Context) error {
	const ca = "mirror.crt"
	err := nodes.ConfigureRegistries(c.bed, map[string]string{
		ca: string(c.mirror.ca), "_default/hosts.toml": c.mirror.hostsTOML(nodes.RegistriesDir + "/" + ca),
	})
	if err != nil {
		return err
	}
	api, err := url.Parse(c.bed.Config().Host)
	if err != nil {
		return fmt.Errorf("parsing the address of the API server: %w", err)
	}
	for _, node := range c.bed.Nodes() {
		for _, chain := range []string{"OUTPUT", "FORWARD"} {
			// The last inserted rule counts first.
			rules := [][]string{{"-d", api.Hostname(), "-p", "tcp", "--syn", "-j", "REJECT", "--reject-with", "tcp-reset"}}
			for _, allowed := range []string{api.Host, c.mirror.address, c.distant} {
				_, port, err := net.SplitHostPort(allowed)
				if err != nil {
					return fmt.Errorf("parsing the address of a server: %w", err)
				}
				rules = append(rules, []string{"-d", api.Hostname(), "-p", "tcp", "--dport", port, "-j", "ACCEPT"})
			}
			for _, rule := range rules {
				cmd := nodes.Command(ctx, node, "iptables", append([]string{"-w", "-I", chain}, rule...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("separating %s: %w\n%s", node, err, out)
				}
			}
		}
	}
	return nil
}

// settings makes a kustomization of the manifest of a release with one file for the supervisors, and returns its folder.
func (c *cluster) settings(from string) (string, error) {
	const component = "image-registries"
	dir := filepath.Join(bin, "settings")
	components, err := buildcache.SourceDir("deploy/components")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(dir, component), os.DirFS(filepath.Join(components, component))); err != nil {
		return "", fmt.Errorf("copying the component: %w", err)
	}
	configMap := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
data:
  registries.conf: |
    [[registry]]
    location = %q
    blocked = true
    [[registry.mirror]]
    location = %q
  %s: |
    %s
`, settingsName, systemNamespace, c.bed.Images.Address(), c.mirror.address+"/"+prefix,
		strings.ReplaceAll(c.mirror.address, ":", ".."), strings.ReplaceAll(strings.TrimSpace(string(c.mirror.ca)), "\n", "\n    "))
	return dir, writeKustomization(dir, from, map[string]string{
		"settings.yaml":      configMap,
		"kustomization.yaml": "resources: [install.yaml, settings.yaml]\ncomponents: [" + component + "]\n",
	})
}

// nodesOnly makes a kustomization of the manifest of a release that lets only nodes pull bundles, without any settings for
// registries. It returns its folder.
func nodesOnly(from string) (string, error) {
	dir := filepath.Join(bin, "nodes-only")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a folder for a kustomization: %w", err)
	}
	return dir, writeKustomization(dir, from, map[string]string{"kustomization.yaml": `resources: [install.yaml]
patches:
- target: {kind: Deployment, name: ` + supervisorName + `}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --image-pull=node}
`})
}

// writeKustomization writes files and the manifest of a release to a folder.
func writeKustomization(dir, from string, files map[string]string) error {
	product, err := os.ReadFile(filepath.Join(from, "install.yaml"))
	if err != nil {
		return fmt.Errorf("reading the manifest of the release: %w", err)
	}
	files["install.yaml"] = string(product)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing a kustomization: %w", err)
		}
	}
	return nil
}
