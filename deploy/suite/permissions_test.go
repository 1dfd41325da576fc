package suite_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// refusals are the requests that the API server refused as forbidden.
type refusals struct {
	mu   sync.Mutex
	seen []string
}

// watch records the forbidden requests among those that pass through next.
func (r *refusals) watch(next http.RoundTripper) http.RoundTripper {
	return testenv.RoundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil || response.StatusCode != http.StatusForbidden {
			return response, err //nolint:wrapcheck // it stands for the other
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, fmt.Errorf("reading a refusal: %w", err)
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, body))
		return response, nil
	})
}

func (r *refusals) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// scene is a cluster with everything applied. Its supervisor has the permissions of the
// ServiceAccount and no others.
type scene struct {
	*testenv.World

	cp *controlplane.ControlPlane
}

// TestRightsAreEnough installs operators, hosts catalogs and cleans up, and expects no forbidden request.
func TestRightsAreEnough(t *testing.T) {
	cp := controlplane.Get(t)
	s := &scene{testenv.New(t), cp}
	install(t)
	forbidden := s.supervise()

	s.Create(fixtures.ServedCatalog("olm", "sample", s.registry()))
	for _, example := range []string{"lantern", "compass"} {
		output(t, cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "-f", "../../examples/manifests/"+example+".yaml")
	}
	s.approve("compass")
	s.succeeds("lantern")
	s.uninstalls("compass", s.succeeds("compass"))
	s.hosts()

	for _, refusal := range forbidden.all() {
		t.Error(refusal)
	}
}

// TestPackageServerRightsAreEnough lets a package server register its API and read a catalog. It deletes the APIService
// when its Deployment is deleted.
func TestPackageServerRightsAreEnough(t *testing.T) {
	s := &scene{testenv.New(t), controlplane.Get(t)}
	install(t)
	var manifests strings.Builder
	for _, u := range packageServerObjects(t) {
		manifests.WriteString("---\n" + text(t, u))
		s.DeleteAtEnd(u)
	}
	file := filepath.Join(t.TempDir(), "packageserver.yaml")
	s.Expect(os.WriteFile(file, []byte(manifests.String()), 0o600)).To(gomega.Succeed())
	kubectl(t, "apply", "-f", file)
	forbidden := s.runAs("chandlery-packageserver", "--packagemanifests=only", "--packagemanifests-address=127.0.0.1:0")
	s.Create(fixtures.ServedCatalog("olm", "sample", s.registry()))

	live := &unstructured.Unstructured{}
	live.SetAPIVersion("apiregistration.k8s.io/v1")
	live.SetKind("APIService")
	key := client.ObjectKey{Name: "v1.packages.operators.coreos.com"}
	s.Eventually(func() error { return s.Get(t.Context(), key, live) }).Should(gomega.Succeed())
	service, _, _ := unstructured.NestedString(live.Object, "spec", "service", "name")
	s.Expect(service).To(gomega.Equal("chandlery-packageserver-service"))
	s.Expect(live.GetOwnerReferences()).To(gomega.HaveLen(1))

	s.Expect(s.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "chandlery-system", Name: "chandlery-packageserver"}})).To(gomega.Succeed())
	s.Eventually(func() bool { return apierrors.IsNotFound(s.Get(t.Context(), key, live)) }).Should(gomega.BeTrue())
	for _, refusal := range forbidden.all() {
		t.Error(refusal)
	}
}

// supervise runs a supervisor until the test ends.
func (s *scene) supervise() *refusals {
	s.T.Helper()
	return s.runAs("chandlery-supervisor")
}

// runAs runs the program with the permissions of a service account until the test ends.
func (s *scene) runAs(name string, args ...string) *refusals {
	s.T.Helper()
	account := "chandlery-system:" + name
	cfg := testenv.ConfigOf(s.T, "system:serviceaccount:"+account, "system:serviceaccounts", "system:serviceaccounts:chandlery-system")
	forbidden := &refusals{}
	cfg.Wrap(forbidden.watch)
	cfg.QPS = -1

	var o supervisor.Options
	flags := pflag.NewFlagSet("supervisor", pflag.ContinueOnError)
	o.AddFlags(flags)
	s.Expect(flags.Parse(append(args,
		"--leader-election-namespace=chandlery-system", "--metrics-address=0", "--health-address=0",
		"--catalog-refresh-interval=1s", "--image-plain-http",
	))).To(gomega.Succeed())
	s.Run(func(ctx context.Context) error { return supervisor.Run(ctx, cfg, o) })
	return forbidden
}

// registry serves the sample catalog and returns its address.
func (s *scene) registry() string {
	s.T.Helper()
	root, err := buildcache.SourceDir(".")
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return programs.Serve(s.T, registryProgram, filepath.Join(root, "examples", "catalog"))
}

// approve waits for an InstallPlan in a namespace and approves it.
func (s *scene) approve(namespace string) {
	s.T.Helper()
	s.Eventually(func(g gomega.Gomega) {
		var plans operatorsv1alpha1.InstallPlanList
		g.Expect(s.List(s.T.Context(), &plans, client.InNamespace(namespace))).To(gomega.Succeed())
		g.Expect(plans.Items).NotTo(gomega.BeEmpty())
		plan := &plans.Items[0]
		before := plan.DeepCopy()
		plan.Spec.Approved = true
		g.Expect(s.Patch(s.T.Context(), plan, client.MergeFrom(before))).To(gomega.Succeed())
	}).Should(gomega.Succeed())
}

// succeeds waits until a ClusterServiceVersion has succeeded and returns its name.
func (s *scene) succeeds(namespace string) string {
	s.T.Helper()
	var name string
	s.Eventually(func(g gomega.Gomega) {
		var versions operatorsv1alpha1.ClusterServiceVersionList
		g.Expect(s.List(s.T.Context(), &versions, client.InNamespace(namespace))).To(gomega.Succeed())
		i := slices.IndexFunc(versions.Items, func(v operatorsv1alpha1.ClusterServiceVersion) bool {
			return v.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded
		})
		g.Expect(i).To(gomega.BeNumerically(">=", 0), "%+v", versions.Items)
		name = versions.Items[i].Name
	}).Should(gomega.Succeed())
	return name
}

// uninstalls deletes a ClusterServiceVersion and waits until its cleanup is complete.
func (s *scene) uninstalls(namespace, name string) {
	s.T.Helper()
	version := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	subscription := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: namespace}}
	s.Expect(s.Delete(s.T.Context(), subscription)).To(gomega.Succeed())
	s.Expect(s.Delete(s.T.Context(), version)).To(gomega.Succeed())
	s.EventuallyGone(version)
}

// hosts creates an image catalog and a ConfigMap catalog in the namespace olm, and changes the
// number of replicas. The pods must pass admission.
func (s *scene) hosts() {
	s.T.Helper()
	source := fixtures.ImageCatalog("olm", "hosted", s.catalogImage())
	source.Spec.Secrets = []string{"absent"}
	configured := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "configured"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeConfigmap, ConfigMap: "configured"},
	}
	s.Create(source, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "configured"}, Data: map[string]string{"packages": "[]"},
	}, configured)
	key := client.ObjectKeyFromObject(source)
	s.Eventually(func(g gomega.Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(s.Get(s.T.Context(), key, d)).To(gomega.Succeed())
		g.Expect(d.Status.AvailableReplicas).To(gomega.BeEquivalentTo(2), "%+v", d.Status.Conditions)
		g.Expect(s.Get(s.T.Context(), key, &policyv1.PodDisruptionBudget{})).To(gomega.Succeed())
	}).Should(gomega.Succeed())
	s.Eventually(func(g gomega.Gomega) {
		seen := &corev1.ConfigMap{}
		g.Expect(s.Get(s.T.Context(), client.ObjectKeyFromObject(configured), seen)).To(gomega.Succeed())
		g.Expect(seen.Labels).To(gomega.HaveKey("olm.managed"))
	}).Should(gomega.Succeed())

	s.moves(source.Name)
	before := source.DeepCopy()
	source.Annotations = map[string]string{"chandlery.dev/replicas": "1"}
	s.Expect(s.Patch(s.T.Context(), source, client.MergeFrom(before))).To(gomega.Succeed())
	s.EventuallyGone(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
}

// moves stops the node of a catalog's pod and waits until both replicas run on other nodes.
func (s *scene) moves(catalog string) {
	s.T.Helper()
	replicas := func() []corev1.Pod {
		var pods corev1.PodList
		s.Expect(s.List(s.T.Context(), &pods, client.InNamespace("olm"), client.MatchingLabels{"olm.catalogSource": catalog})).To(gomega.Succeed())
		return pods.Items
	}
	lost := replicas()[0].Spec.NodeName
	s.Expect(s.cp.StopNode(s.T.Context(), lost)).To(gomega.Succeed())
	s.Eventually(func(g gomega.Gomega) {
		left := replicas()
		g.Expect(left).To(gomega.HaveLen(2))
		for i := range left {
			g.Expect(left[i].Spec.NodeName).NotTo(gomega.BeElementOf("", lost))
		}
	}).Should(gomega.Succeed())
	s.Expect(s.cp.StartNode(s.T.Context(), lost)).To(gomega.Succeed())
}

// catalogImage pushes a catalog image to a registry of the test.
func (s *scene) catalogImage() string {
	s.T.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	s.T.Cleanup(server.Close)
	image, err := images.Content(os.DirFS("../../examples/catalog"))
	s.Expect(err).NotTo(gomega.HaveOccurred())
	reference := strings.TrimPrefix(server.URL, "http://") + "/catalog:v1"
	_, err = images.Push(s.T.Context(), reference, image)
	s.Expect(err).NotTo(gomega.HaveOccurred())
	return reference
}
