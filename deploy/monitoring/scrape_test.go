package monitoring_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/blang/semver/v4"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

// podMonitor holds the fields of a PodMonitor that select what is scraped.
type podMonitor struct {
	Spec struct {
		NamespaceSelector struct {
			Any bool `json:"any"`
		} `json:"namespaceSelector"`
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port              string `json:"port"`
			MetricRelabelings []struct {
				Regex  string `json:"regex"`
				Action string `json:"action"`
			} `json:"metricRelabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// catalogTemplate returns the pods of a catalog that Chandlery's registry serves.
func catalogTemplate(t *testing.T) *corev1.PodTemplateSpec {
	t.Helper()
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamps"},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeInternal, ConfigMap: "lamps"},
	}
	in := &deployment.Input{
		Source: source, Version: semver.MustParse("1.37.0"),
		Content: deployment.Content{ConfigMapVersion: "7", ConfigMapSnapshot: "lamps-7"},
	}
	objects, err := deployment.Desired(in, &deployment.Settings{
		RegistryImage: "registry.example/registry:1", Content: deployment.ContentAuto, Server: deployment.ServerImage,
		MemoryLimit: deployment.DefaultMemoryLimit,
	})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GroupVersionKind() == deployment.KindDeployment })
	if i < 0 {
		t.Fatal("the catalog has no Deployment")
	}
	made := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, made); err != nil {
		t.Fatal(err)
	}
	return &made.Spec.Template
}

// read reads the first object of a file.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// checkTarget checks that a PodMonitor selects pods, and a port that they have.
func checkTarget(t *testing.T, monitor *podMonitor, template *corev1.PodTemplateSpec) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(template.Labels)) {
		t.Errorf("%s does not select pods with %v", selector, template.Labels)
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	if !slices.ContainsFunc(template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == endpoint.Port }) {
		t.Errorf("pods have no port %q, but %v", endpoint.Port, template.Spec.Containers[0].Ports)
	}
}

// TestPackageServerIsScraped checks that a ServiceMonitor selects a port of the Service of --packagemanifests=only, and
// that the pods have this port.
func TestPackageServerIsScraped(t *testing.T) {
	var monitor struct {
		Spec struct {
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port string `json:"port"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	service, server := &corev1.Service{}, &appsv1.Deployment{}
	read(t, filepath.Join(component, "packageserver.yaml"), &monitor)
	read(t, filepath.Join(component, "..", "packagemanifests", "network.yaml"), service)
	read(t, filepath.Join(component, "..", "packagemanifests", "deployment.yaml"), server)
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(labels.Set(service.Labels)) || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(server.Spec.Template.Labels)) {
		t.Errorf("%s selects no Service, or the Service %v no pod", selector, service.Spec.Selector)
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == monitor.Spec.Endpoints[0].Port })
	if i < 0 {
		t.Fatalf("the Service has no port %q, but %v", monitor.Spec.Endpoints[0].Port, service.Spec.Ports)
	}
	target := service.Spec.Ports[i].TargetPort.StrVal
	if !slices.ContainsFunc(server.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == target }) {
		t.Errorf("pods have no port %q, but %v", target, server.Spec.Template.Spec.Containers[0].Ports)
	}
}

// TestRegistryAlertsHaveTargets checks that the PodMonitor selects the replicas of catalogs, and keeps the metrics of the
// registry that alerts use.
func TestRegistryAlertsHaveTargets(t *testing.T) {
	monitor := &podMonitor{}
	read(t, filepath.Join(component, "podmonitor.yaml"), monitor)
	checkTarget(t, monitor, catalogTemplate(t))
	if !monitor.Spec.NamespaceSelector.Any {
		t.Error("the PodMonitor selects pods in its own namespace only")
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	keep := regexp.MustCompile("^(?:" + endpoint.MetricRelabelings[0].Regex + ")$")
	_, alerts := readRules(t)
	used := 0
	for _, alert := range alerts {
		for _, metric := range regexp.MustCompile(`chandlery_registry_\w+`).FindAllString(alert.Expr, -1) {
			used++
			if !keep.MatchString(metric) {
				t.Errorf("alert %s: metric %s is not kept", alert.Alert, metric)
			}
		}
	}
	if used < 2 {
		t.Errorf("alerts use %d metrics of the registry, want at least 2", used)
	}
}
