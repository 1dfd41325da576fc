package suite_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/helm"
)

const chart = "../chart"

// rendered renders the chart with settings, without a cluster.
func rendered(t *testing.T, settings ...string) objects {
	t.Helper()
	args := append([]string{"template", "chandlery", chart, "--namespace", "chandlery-system"}, settings...)
	return renderOnce(fmt.Sprintf("helm %q", args), func() objects { return decode(t, output(t, program(t), args...)) })
}

func program(t *testing.T) string {
	t.Helper()
	path, err := helm.Program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestChartInstallsTheSame compares the chart without settings with the manifests.
func TestChartInstallsTheSame(t *testing.T) {
	plain := everything(t)
	// Helm creates the namespace of a release or uses an existing one.
	delete(plain, "Namespace /chandlery-system")
	got := rendered(t)
	for _, u := range got {
		withoutHelm(u)
	}
	for _, u := range plain {
		withoutHelm(u)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(plain)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Fatalf("objects (-deploy/ +deploy/chart):\n%s", diff)
	}
	for key := range plain {
		if diff := cmp.Diff(text(t, plain[key]), text(t, got[key])); diff != "" {
			t.Errorf("%s (-deploy/ +deploy/chart):\n%s", key, diff)
		}
	}
}

// text returns an object as YAML, which makes differences easy to read.
func text(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	encoded, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// withoutHelm removes the metadata that only a release has.
func withoutHelm(u *unstructured.Unstructured) {
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	for _, name := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"} {
		delete(labels, name)
	}
	delete(annotations, "helm.sh/resource-policy")
	if len(annotations) == 0 {
		annotations = nil
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
}

// TestChartIsSound checks the chart with helm lint and sends what it renders to the API server.
func TestChartIsSound(t *testing.T) {
	output(t, program(t), "lint", "--strict", chart)
	cp := controlplane.Get(t)
	install(t)
	file := filepath.Join(t.TempDir(), "chart.yaml")
	text := output(t, program(t), "template", "chandlery", chart, "--namespace", "chandlery-system", "--values", "testdata/values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, cp.Kubectl(), "--kubeconfig", cp.Kubeconfig(), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", file)
}

// TestSettingsReachTheProgram changes every setting and checks the Deployment.
func TestSettingsReachTheProgram(t *testing.T) {
	all := rendered(t, "--values", "testdata/values.yaml", "--set", "packageManifestsPort=10443")
	deployment := as[appsv1.Deployment](t, all, "Deployment chandlery-system/chandlery-supervisor")
	container := deployment.Spec.Template.Spec.Containers[0]
	want := []string{
		"run", "--global-catalog-namespace=catalogs", "--bundle-cache-dir=/var/cache/chandlery/bundles", "--bundle-cache-size=512Mi",
		"--catalog-cache-dir=/var/lib/chandlery/catalogs", "--catalog-cache-size=64Mi",
		"--lease-duration=30s", "--renew-deadline=20s", "--retry-period=1s",
		"--catalog-server=registry", "--catalog-replicas=3", "--catalog-content=init-container",
		"--packagemanifests=disabled", "--packagemanifests-address=:10443", "--bundle-kind=shop.example/Widget", "--bundle-kind=shop.example/Sign:cluster",
		"--image-config=/etc/chandlery/image-registries", "--image-ca=/etc/chandlery/ca-bundle/ca-bundle.crt", "--image-pull-secrets=shared/mirrors", "--log-level=debug",
	}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if want := "registry.example.com/supervisor@sha256:" + strings.Repeat("0", 64); container.Image != want {
		t.Errorf("the image is %s, want %s", container.Image, want)
	}
	env := map[string]string{}
	for _, v := range container.Env {
		env[v.Name] = v.Value
	}
	if diff := cmp.Diff(map[string]string{
		"SUPERVISOR_REGISTRY_IMAGE": "registry.example.com/registry:v9", "GOMEMLIMIT": "450MiB", "HTTPS_PROXY": "http://proxy.example.com:3128",
	}, env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	pod := deployment.Spec.Template.Spec
	var places []string
	for i := range container.VolumeMounts {
		places = append(places, container.VolumeMounts[i].Name+" at "+container.VolumeMounts[i].MountPath)
	}
	for i := range pod.Volumes {
		places = append(places, pod.Volumes[i].Name)
	}
	if diff := cmp.Diff([]string{
		"tmp at /tmp", "cache at /var/cache/chandlery", "catalog-claim at /var/lib/chandlery", "image-registries at /etc/chandlery/image-registries", "ca-bundle at /etc/chandlery/ca-bundle",
		"more at /etc/more", "tmp", "cache", "catalog-claim", "image-registries", "ca-bundle", "more",
	}, places); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	if pod.Affinity.PodAntiAffinity != nil || pod.Affinity.NodeAffinity == nil || len(pod.TopologySpreadConstraints) != 1 || pod.TopologySpreadConstraints[0].TopologyKey != "rack" {
		t.Errorf("affinity %v, spread %v", pod.Affinity, pod.TopologySpreadConstraints)
	}
	claimed := func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "contents"
	}
	if !slices.ContainsFunc(pod.Volumes, claimed) {
		t.Errorf("volumes %+v", pod.Volumes)
	}
	if group := pod.SecurityContext.FSGroup; group == nil || *group != 1234 {
		t.Errorf("group %v of files", group)
	}
	for _, absent := range []string{
		"Namespace /olm", "NetworkPolicy chandlery-system/chandlery-supervisor", "PodDisruptionBudget chandlery-system/chandlery-supervisor",
		"ClusterRole /chandlery-supervisor", "ResourceQuota chandlery-system/chandlery-critical-pods",
		"Namespace /operators", "OperatorGroup operators/global-operators", "OLMConfig /cluster", "CatalogSource catalogs/operatorhubio-catalog",
	} {
		if all[absent] != nil {
			t.Errorf("%s is there", absent)
		}
	}
	if all["Namespace /catalogs"] == nil {
		t.Error("the namespace of the global catalogs is not there")
	}
}

// TestBundleKindsGetPermissions compares the permissions for further kinds with those that the command rbac prints.
func TestBundleKindsGetPermissions(t *testing.T) {
	settings := []string{"--values", "testdata/values.yaml", "--set", "rbac.create=true"}
	role := as[rbacv1.ClusterRole](t, rendered(t, settings...), "ClusterRole /chandlery-supervisor")
	var kinds plansteps.Kinds
	if err := kinds.Set("shop.example/Widget,shop.example/Sign:cluster"); err != nil {
		t.Fatal(err)
	}
	printed, _ := supervisor.BundleKindPermissions(kinds, types.NamespacedName{})[0].(*rbacv1.ClusterRole)
	for _, rule := range printed.Rules {
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return cmp.Equal(r, rule) }) {
			t.Errorf("the chart lacks %v", rule)
		}
	}
}

// TestMonitoringAgrees compares the optional objects for monitoring of the chart and of the component.
func TestMonitoringAgrees(t *testing.T) {
	var settings []string
	for _, name := range []string{"serviceMonitor", "prometheusRule", "dashboard"} {
		settings = append(settings, "--set", "metrics."+name+".enabled=true")
	}
	charted, plain := rendered(t, settings...), kustomized(t, "testdata/monitoring")
	if want := len(settings)/2 + 2; len(plain) != want { // serviceMonitor has three.
		t.Errorf("the component has %d objects, want %d", len(plain), want)
	}
	for key, u := range plain {
		if charted[key] == nil {
			t.Errorf("the chart lacks %s", key)
			continue
		}
		withoutHelm(charted[key])
		withoutHelm(u)
		if diff := cmp.Diff(text(t, u), text(t, charted[key])); diff != "" {
			t.Errorf("%s (-component +chart):\n%s", key, diff)
		}
	}
	labelled := rendered(t, append(settings, "--set", "metrics.prometheusRule.labels.release=prometheus")...)
	if got := labelled["PrometheusRule chandlery-system/chandlery-supervisor"].GetLabels()["release"]; got != "prometheus" {
		t.Errorf("label release is %q", got)
	}
}

// productWith renders the product with optional components.
func productWith(t *testing.T, components ...string) objects {
	t.Helper()
	return renderOnce(fmt.Sprintf("product with %q", components), func() objects {
		return decode(t, output(t, controlplane.Get(t).Kubectl(), "kustomize", kustomization(t, components)))
	})
}

// kustomization writes a kustomization with the product and optional components, and returns its folder. A kustomization
// with the product as a resource cannot be in a folder of the product.
func kustomization(t *testing.T, names []string) string {
	t.Helper()
	dir := t.TempDir()
	product, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if product, err = filepath.Rel(dir, product); err != nil {
		t.Fatal(err)
	}
	var components []string
	for _, name := range names {
		components = append(components, filepath.Join(product, "components", name))
	}
	content, err := yaml.Marshal(map[string][]string{"resources": {product}, "components": components})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMetricsTLSAgrees compares the objects for metrics over TLS of the chart and of the component.
func TestMetricsTLSAgrees(t *testing.T) {
	charted := rendered(t, "--set", "metrics.tls.secretName=chandlery-metrics-tls,metrics.serviceMonitor.enabled=true,packageManifests=only")
	plain := productWith(t, "monitoring", "packagemanifests", "metrics-tls")
	for _, key := range []string{
		"Deployment chandlery-system/chandlery-supervisor", "ServiceMonitor chandlery-system/chandlery-supervisor",
		"Deployment chandlery-system/chandlery-packageserver", "ServiceMonitor chandlery-system/chandlery-packageserver",
		"ClusterRole /chandlery-packageserver",
		"ClusterRole /chandlery-supervisor-metrics", "ClusterRoleBinding /chandlery-supervisor-metrics", "ClusterRole /chandlery-metrics-reader",
	} {
		if charted[key] == nil || plain[key] == nil {
			t.Errorf("%s is there in the chart: %t, with the component: %t", key, charted[key] != nil, plain[key] != nil)
			continue
		}
		withoutHelm(charted[key])
		withoutHelm(plain[key])
		if diff := cmp.Diff(packageServerText(t, plain[key]), packageServerText(t, charted[key])); diff != "" {
			t.Errorf("%s (-component +chart):\n%s", key, diff)
		}
	}
	for _, name := range []string{"chandlery-supervisor", "chandlery-packageserver"} {
		checkMetricsTLS(t, plain, name)
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
	if diff := cmp.Diff(want, as[rbacv1.ClusterRole](t, plain, "ClusterRole /chandlery-supervisor-metrics").Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// checkMetricsTLS checks that a program serves metrics over TLS, that Prometheus sends its token, and that the program may
// review it.
func checkMetricsTLS(t *testing.T, all objects, name string) {
	t.Helper()
	pod := as[appsv1.Deployment](t, all, "Deployment chandlery-system/"+name).Spec.Template.Spec
	for _, arg := range []string{"--metrics-tls-cert=/etc/chandlery/metrics-tls/tls.crt", "--metrics-tls-key=/etc/chandlery/metrics-tls/tls.key"} {
		if !slices.Contains(pod.Containers[0].Args, arg) {
			t.Errorf("%s has the arguments %v", name, pod.Containers[0].Args)
		}
	}
	if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/chandlery/metrics-tls" && m.ReadOnly }) {
		t.Errorf("%s does not mount the Secret: %v", name, pod.Containers[0].VolumeMounts)
	}
	endpoints, _, err := unstructured.NestedSlice(all["ServiceMonitor chandlery-system/"+name].Object, "spec", "endpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("endpoints %v of %s: %v", endpoints, name, err)
	}
	if endpoint, _ := endpoints[0].(map[string]any); endpoint["scheme"] != "https" || endpoint["bearerTokenFile"] == nil {
		t.Errorf("Prometheus scrapes %s with %v", name, endpoint)
	}
	var got []string
	for key, u := range all {
		if u.GetKind() != "ClusterRoleBinding" {
			continue
		}
		binding := as[rbacv1.ClusterRoleBinding](t, all, key)
		if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == name }) {
			got = append(got, flatten(name, as[rbacv1.ClusterRole](t, all, "ClusterRole /"+binding.RoleRef.Name).Rules)...)
		}
	}
	for _, want := range []string{
		right(name, "authentication.k8s.io", "tokenreviews", "", "create"), right(name, "authorization.k8s.io", "subjectaccessreviews", "", "create"),
	} {
		if !slices.Contains(got, want) {
			t.Errorf("missing: %s", want)
		}
	}
}

// packageServerText returns an object as YAML. The kustomization of the product does not set the tag of the image of the
// package server.
func packageServerText(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	return strings.ReplaceAll(text(t, u), "image: chandlery/supervisor\n", "image: chandlery/supervisor:latest\n")
}

// packageServerObjects returns the objects of the component packagemanifests.
func packageServerObjects(t *testing.T) objects {
	t.Helper()
	all := productWith(t, "packagemanifests")
	for key := range all {
		if !strings.Contains(key, "/chandlery-packageserver") {
			delete(all, key)
		}
	}
	return all
}

// TestPackageServerAgrees compares the package server of the chart and of the component.
func TestPackageServerAgrees(t *testing.T) {
	const controllers = "Deployment chandlery-system/chandlery-supervisor"
	charted, plain := rendered(t, "--set", "packageManifests=only"), packageServerObjects(t)
	plain[controllers] = productWith(t, "packagemanifests")[controllers]
	if len(plain) != 11 {
		t.Errorf("the component has %d objects, want 11", len(plain))
	}
	for key := range plain {
		if charted[key] == nil {
			t.Errorf("%s is missing in the chart", key)
			continue
		}
		withoutHelm(charted[key])
		withoutHelm(plain[key])
		if diff := cmp.Diff(packageServerText(t, plain[key]), text(t, charted[key])); diff != "" {
			t.Errorf("%s (-component +chart):\n%s", key, diff)
		}
	}
	args := as[appsv1.Deployment](t, plain, controllers).Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--packagemanifests=disabled") {
		t.Errorf("the supervisor has the arguments %v", args)
	}
	checkPackagesPort(t, 10443, "--set", "packageManifests=only,packageManifestsPort=10443")
	// Variables in extraEnv can name files of extraVolumes.
	extended := rendered(t, "--values", "testdata/values.yaml", "--set", "packageManifests=only")
	pod := as[appsv1.Deployment](t, extended, "Deployment chandlery-system/chandlery-packageserver").Spec.Template.Spec
	if mounts := pod.Containers[0].VolumeMounts; mounts[len(mounts)-1].Name != "more" || pod.Volumes[len(pod.Volumes)-1].Name != "more" {
		t.Errorf("volumes %v at %v", pod.Volumes, mounts)
	}
	for _, key := range []string{"ClusterRole /chandlery-packageserver", "RoleBinding kube-system/chandlery-packageserver"} {
		if rendered(t, "--set", "packageManifests=only,rbac.create=false")[key] != nil {
			t.Errorf("%s is there without rbac.create", key)
		}
	}
}

// checkPackagesPort checks that the package server serves PackageManifests on a port, and that its NetworkPolicy and that
// of the supervisor admit it.
func checkPackagesPort(t *testing.T, want int32, settings ...string) {
	t.Helper()
	all := rendered(t, settings...)
	container := as[appsv1.Deployment](t, all, "Deployment chandlery-system/chandlery-packageserver").Spec.Template.Spec.Containers[0]
	if arg := fmt.Sprintf("--packagemanifests-address=:%d", want); !slices.Contains(container.Args, arg) {
		t.Errorf("the package server has the arguments %v", container.Args)
	}
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "packages" && p.ContainerPort == want }) {
		t.Errorf("the package server has the ports %v", container.Ports)
	}
	for _, name := range []string{"chandlery-supervisor", "chandlery-packageserver"} {
		policy := as[networkingv1.NetworkPolicy](t, all, "NetworkPolicy chandlery-system/"+name)
		if port := policy.Spec.Ingress[0].Ports[0].Port; port.IntVal != want {
			t.Errorf("NetworkPolicy %s admits %v", name, port)
		}
	}
}

// TestImageRegistriesAgree compares the settings for image registries of the chart and of the component.
func TestImageRegistriesAgree(t *testing.T) {
	charted := rendered(t, "--set", "imageRegistries.configMapName=chandlery-image-registries")
	plain := productWith(t, "image-registries")
	const key = "Deployment chandlery-system/chandlery-supervisor"
	withoutHelm(charted[key])
	withoutHelm(plain[key])
	if diff := cmp.Diff(text(t, plain[key]), text(t, charted[key])); diff != "" {
		t.Errorf("%s (-component +chart):\n%s", key, diff)
	}
}
