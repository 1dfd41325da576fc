package airgap

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/certificates"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/docs"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

const (
	// page is the page with the commands, and root the root of the repository.
	page = "docs/air-gap.md"
	root = "../../.."
	// home is the namespace of the supervisor, and mounted the directory of its settings in the container.
	home    = "chandlery-system"
	mounted = "/etc/chandlery/image-registries"
	// operand is the image of the operators in the examples.
	operand = "registry.k8s.io/pause:3.10"

	timeout = 2 * time.Minute
)

// bin is the folder with the programs, built once for the package.
var bin string

func TestMain(m *testing.M) {
	os.Exit(programs.Main(func(dir string) int {
		bin = dir
		return testenv.Main(m, controlplane.Options{}, testenv.InstallCRDs)
	}, "./cmd/registry", "./cmd/supervisor", "./cmd/catalog", "./cmd/kubectl-chandlery", "github.com/google/go-containerregistry/cmd/crane"))
}

// registryServer is an image registry behind TLS of a private authority.
type registryServer struct {
	*httptest.Server

	// lacks is part of the paths for which it answers "not found"; nil for none.
	lacks atomic.Pointer[string]
}

func newRegistry(t *testing.T, authority *certificates.Authority) *registryServer {
	t.Helper()
	s := &registryServer{}
	inner := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if part := s.lacks.Load(); part != nil && strings.Contains(r.URL.Path, *part) {
			http.NotFound(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	pair := authority.Sign(t, certificates.Request{})
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *registryServer) host() string { return s.Listener.Addr().String() }

// scene is a source with a catalog, a mirror without content, and a folder for the commands.
type scene struct {
	*testing.T

	source, mirror *registryServer
	authority      *certificates.Authority
	dir            string
	env            []string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	authority := certificates.NewAuthority(t, "registries")
	s := &scene{T: t, authority: authority, source: newRegistry(t, authority), mirror: newRegistry(t, authority), dir: t.TempDir()}
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(trusted, authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	cp := controlplane.Get(t)
	s.env = append(os.Environ(),
		"PATH="+bin+":"+filepath.Dir(cp.Kubectl())+":"+os.Getenv("PATH"), "KUBECONFIG="+cp.Kubeconfig(), "SSL_CERT_FILE="+trusted,
		"SOURCE="+s.source.host(), "CATALOG="+s.source.host()+"/acme/catalog:v1", "MIRROR="+s.mirror.host()+"/copies",
	)
	s.publish()
	return s
}

// publish pushes two packages to the source: their bundles, the image of their operators, and their catalog.
func (s *scene) publish() {
	s.Helper()
	pause, err := random.Image(64, 1)
	if err != nil {
		s.Fatal(err)
	}
	s.push(pause, "acme/pause:3.10")
	commands := []string{"catalog init lantern --catalog made", "catalog init compass --catalog made"}
	for _, bundle := range []string{"lantern/1.0.0", "lantern/1.1.0", "lantern/1.2.0", "compass/2.0.0"} {
		name, version, _ := strings.Cut(bundle, "/")
		dir := filepath.Join(s.dir, "bundles", bundle)
		s.copyBundle(filepath.Join(root, "examples", "bundles", bundle), dir)
		image, err := images.Bundle(os.DirFS(dir))
		if err != nil {
			s.Fatal(err)
		}
		s.push(image, "acme/"+name+"-bundle:v"+version)
		commands = append(commands, fmt.Sprintf("catalog add bundles/%s --catalog made --channel stable --image-ref-template \"$SOURCE\"'/acme/{{.Package}}-bundle:v{{.Version}}'", bundle))
	}
	s.run(append(commands, `catalog push made "$CATALOG"`)...)
}

// copyBundle copies a bundle whose operator has its image at the source.
func (s *scene) copyBundle(from, to string) {
	s.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		s.Fatal(err)
	}
	path := filepath.Join(to, "manifests", "clusterserviceversion.yaml")
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(operand)) {
		s.Fatalf("%s has no image %s, %v", path, operand, err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(operand), []byte(s.source.host()+"/acme/pause:3.10")), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) push(image v1.Image, at string) {
	s.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	if err := crane.Push(image, s.source.host()+"/"+at, crane.WithTransport(transport), crane.WithContext(s.Context())); err != nil {
		s.Fatal(err)
	}
}

// run runs commands, each of which must succeed, and returns their standard output.
func (s *scene) run(commands ...string) string {
	s.Helper()
	out, code, log := s.call(commands...)
	if code != 0 {
		s.Fatalf("exit code %d: %s\n%s%s", code, strings.Join(commands, "\n"), out, log)
	}
	return out
}

func (s *scene) call(commands ...string) (out string, code int, log string) {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), "bash", "-c", strings.Join(append([]string{"set -eu"}, commands...), "\n"))
	cmd.Dir, cmd.Env = s.dir, s.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		s.Fatal(err)
	}
	return stdout.String(), cmd.ProcessState.ExitCode(), stderr.String()
}

// blocks returns the blocks of commands on the page, in their order.
func blocks(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	parsed := docs.Parse(page, string(text))
	for _, fence := range parsed.Fences {
		if fence.Language != "sh" {
			continue
		}
		var lines []string
		for _, line := range fence.Content {
			lines = append(lines, line.Text)
		}
		all = append(all, lines)
	}
	if len(all) != 3 {
		t.Fatalf("the page has %d blocks of commands, want 3: outside, in the cluster, and before an installation", len(all))
	}
	return all
}

// start runs a program until the test ends.
func (s *scene) start(name string, args ...string) {
	s.Helper()
	p, err := process.Start(s.Context(), process.Spec{
		Name: name, Path: filepath.Join(bin, name), Args: args, Dir: s.dir, Log: filepath.Join(s.dir, name+".log"),
		Env: append(s.env, "REGISTRY_METRICS_ADDRESS=0", "REGISTRY_PPROF_ADDR=0", "REGISTRY_TERMINATION_LOG=",
			"SUPERVISOR_METRICS_ADDRESS=0", "SUPERVISOR_HEALTH_ADDRESS=0", "SUPERVISOR_LEADER_ELECTION_NAMESPACE=default"),
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s:\n%s", name, process.Tail(filepath.Join(s.dir, name+".log")))
		}
		if err := p.Stop(timeout); err != nil {
			s.Error(err)
		}
	})
}

// deploy creates the Deployment of the supervisor, which no node runs here, and a CatalogSource for a server with the
// mirrored catalog.
func (s *scene) deploy(address string) {
	s.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "olm"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "chandlery-supervisor", Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "supervisor", Image: "supervisor", Args: []string{"run", "--image-config=" + mounted},
						VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: mounted}},
					}},
					Volumes: []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "chandlery-image-registries"},
					}}}},
				}},
			},
		},
		&operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "sample"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address},
		},
	} {
		if err := controlplane.Client(s.T).Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
	}
}

// TestAirGap runs the commands of the page unchanged. The source goes away after the first block.
func TestAirGap(t *testing.T) {
	s := newScene(t)
	commands := blocks(t)
	s.run(commands[0]...)
	mapping, err := os.ReadFile(filepath.Join(s.dir, "mapping.txt"))
	if err != nil || bytes.Contains(mapping, []byte("compass")) || bytes.Count(mapping, []byte("\n")) != 5 {
		t.Fatalf("the catalog, three bundles and the image of the operator are needed, got %s, %v", mapping, err)
	}
	s.source.Close()

	s.run(commands[1]...)
	address := ports.Address(t)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	s.start("registry", "serve", "oci:"+s.source.host()+"/acme/catalog:v1", "--image-config=settings", "--package=lantern", "--host="+host, "--port="+port)
	s.deploy(address)
	s.start("supervisor", "run", "--image-config=settings")

	subscription, err := os.ReadFile(filepath.Join(root, "examples", "manifests", "lantern.yaml"))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "subscription.yaml"), subscription, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(commands[2], "\n")
	testenv.Until(t, timeout, "the plan to find all images", func(context.Context) string {
		out, code, log := s.call(plan) //nolint:contextcheck // it has the test's own
		if code == 0 && strings.Contains(out, "IMAGES: 2 of 2 available") {
			return ""
		}
		return fmt.Sprintf("exit code %d: %s%s", code, out, log)
	})
	part := "/pause/"
	s.mirror.lacks.Store(&part)
	out, code, log := s.call(plan)
	out = strings.Join(strings.Fields(out), " ")
	for _, want := range []string{"IMAGES: 1 of 2 available", "NOT AVAILABLE: " + s.source.host() + "/acme/pause:3.10", s.mirror.host() + "/copies/acme/pause:3.10", "not asked"} {
		if code != 2 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want 2 and %q: %s%s", code, want, out, log)
		}
	}
	s.mirror.lacks.Store(nil)
	s.upgrade()
}

// upgrade installs the oldest version, and waits for each upgrade to the newest one.
func (s *scene) upgrade() {
	s.Helper()
	s.run("cp subscription.yaml oldest.yaml", "echo '  startingCSV: lantern.v1.0.0' >> oldest.yaml", "kubectl apply -f oldest.yaml",
		"kubectl -n lantern wait --for=create clusterserviceversion/lantern.v1.2.0 --timeout=240s",
		"kubectl -n lantern wait --for=jsonpath='{.status.phase}'=Succeeded clusterserviceversion/lantern.v1.2.0 --timeout=120s",
		"kubectl -n lantern wait --for=jsonpath='{.status.installedCSV}'=lantern.v1.2.0 subscription/lantern --timeout=120s")
	plans := s.run("kubectl -n lantern get installplans --sort-by=.spec.generation -o " +
		`jsonpath='{range .items[*]}{.spec.clusterServiceVersionNames[*]} {.status.phase} {.status.bundleLookups[*].path}{"\n"}{end}'`)
	var want strings.Builder
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		fmt.Fprintf(&want, "lantern.v%[1]s Complete %[2]s/acme/lantern-bundle:v%[1]s\n", version, s.source.host())
	}
	if plans != want.String() {
		s.Errorf("the plans are\n%s, want\n%s", plans, want.String())
	}
}
