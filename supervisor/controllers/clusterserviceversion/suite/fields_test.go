package suite_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/installplan"
	"github.com/chandlery/chandlery/supervisor/controllers/operatorgroup"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// superviseAll runs the controllers of plans, versions and groups.
func (w *world) superviseAll() (stop func()) {
	w.T.Helper()
	return w.superviseWith(nil,
		func(mgr ctrl.Manager) error { return operatorgroup.Setup(mgr, operatorgroup.Options{}) },
		func(mgr ctrl.Manager) error {
			return installplan.Setup(mgr, installplan.Options{Settings: installplan.Settings{RetryTimeout: time.Second}, CRDs: w.crds, Concurrency: 1})
		})
}

// approved creates an approved InstallPlan of a bundle.
func (w *world) approved(b plansteps.Bundle) {
	w.T.Helper()
	steps, err := plansteps.Steps(w.Namespace, b, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	warnings, err := plansteps.ManifestWarnings(steps, []plansteps.Bundle{b}, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	p := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: "install-" + b.Package, Annotations: map[string]string{api.AnnotationManifestWarnings: warnings},
		},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: []string{b.Name}, Approval: operatorsv1alpha1.ApprovalAutomatic, Approved: true,
		},
	}
	w.Create(p)
	p.Status = operatorsv1alpha1.InstallPlanStatus{Phase: operatorsv1alpha1.InstallPlanPhasePlanning, CatalogSources: []string{"shop"}, Plan: steps}
	w.Expect(w.Status().Update(w.T.Context(), p)).To(gomega.Succeed())
}

// carriedOut waits until a plan is complete. If a process ends before, the next one applies the
// steps again and reports their warnings again.
func (w *world) carriedOut(name string) {
	w.T.Helper()
	w.Eventually(func() (operatorsv1alpha1.InstallPlanPhase, error) {
		p := &operatorsv1alpha1.InstallPlan{}
		err := w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, p)
		return p.Status.Phase, err
	}).Should(gomega.Equal(operatorsv1alpha1.InstallPlanPhaseComplete))
}

// warnings returns the Events about warnings of the API server as kind, name and note.
func (w *world) warnings() []string {
	var list eventsv1.EventList
	if err := w.List(w.T.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
		return []string{err.Error()}
	}
	var found []string
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == "AppliedWithWarnings" {
			found = append(found, e.Regarding.Kind+" "+e.Regarding.Name+": "+e.Note)
		}
	}
	slices.Sort(found)
	return found
}

// contents returns the resource versions of objects by kind. For a Deployment, which also has a
// status, it returns the generation.
func (w *world) contents(objects ...*unstructured.Unstructured) map[string]string {
	w.T.Helper()
	found := map[string]string{}
	for _, o := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(o.GroupVersionKind())
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(o), live); err != nil {
			w.T.Fatal(err)
		}
		found[o.GetKind()] = live.GetResourceVersion()
		if o.GetKind() == "Deployment" {
			found[o.GetKind()] = strconv.FormatInt(live.GetGeneration(), 10)
		}
	}
	return found
}

// object returns an empty object of a kind with a name.
func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// autoscalers creates the kind VerticalPodAutoscaler, whose schema has one field.
func (w *world) autoscalers() {
	w.T.Helper()
	crd := fixtures.CRD("autoscaling.k8s.io", "Cup")
	crd.Name = "verticalpodautoscalers.autoscaling.k8s.io"
	crd.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, it is part of a test"}
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: "verticalpodautoscalers", Singular: "verticalpodautoscaler", Kind: "VerticalPodAutoscaler", ListKind: "VerticalPodAutoscalerList",
	}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"known": {Type: "string"}}},
		},
	}
	w.Create(crd)
	w.Eventually(func() error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscalerList"})
		return w.List(w.T.Context(), list)
	}).Should(gomega.Succeed())
}

// TestUnknownFieldsDoNotStopAnInstallation installs an operator that has one unknown field in
// its Deployment and in each other object. Later passes write none of them again.
func TestUnknownFieldsDoNotStopAnInstallation(t *testing.T) {
	w := newWorld(t)
	w.autoscalers()
	w.election = true
	stop := w.superviseAll()
	w.Create(w.group("own", w.Namespace))

	group := w.Namespace + ".example"
	kettle := w.kettle("kettle.v1", owns("cups."+group))
	kettle.TypeMeta = metav1.TypeMeta{APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind}
	version, err := json.Marshal(kettle)
	if err != nil {
		t.Fatal(err)
	}
	w.DeleteAtEnd(fixtures.CRD(group, "Cup"))
	w.approved(plansteps.Bundle{
		Name: "kettle.v1", Package: "kettle", Channel: "stable", Catalog: types.NamespacedName{Namespace: "olm", Name: "shop"},
		Objects: []string{
			strings.Replace(string(version), `"image":`, `"bogus":1,"image":`, 1),
			fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"cups.%[1]s"},"spec":{"bogus":1,"group":%[1]q,"scope":"Namespaced",
				"names":{"plural":"cups","kind":"Cup"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, group),
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"kettle"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"],"bogus":1}]}`,
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"kettle"},"spec":{"bogus":1,"ports":[{"port":80}]}}`,
			`{"apiVersion":"autoscaling.k8s.io/v1","kind":"VerticalPodAutoscaler","metadata":{"name":"kettle"},"spec":{"known":"a","bogus":1}}`,
		},
	})
	w.succeeds("kettle.v1")

	want := []string{}
	for _, about := range []string{
		`ClusterServiceVersion "kettle.v1"): unknown field "spec.install.spec.deployments[0].spec.template.spec.containers[0].bogus"`,
		`CustomResourceDefinition "cups.` + group + `"): unknown field "spec.bogus"`,
		`Role "kettle"): unknown field "rules[0].bogus"`,
		`Service "kettle"): unknown field "spec.bogus"`,
		`VerticalPodAutoscaler "kettle"): unknown field "spec.bogus"`,
	} {
		want = append(want, `InstallPlan install-kettle: 1 warning(s) generated during installation of operator "kettle.v1" (`+about)
	}
	w.Eventually(func() string { return cmp.Diff(want, w.warnings()) }).Should(gomega.BeEmpty())
	w.carriedOut("install-kettle")

	objects := []*unstructured.Unstructured{
		object(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), "", "cups."+group),
		object(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, w.Namespace, "kettle"),
		object(schema.GroupVersionKind{Version: "v1", Kind: "Service"}, w.Namespace, "kettle"),
		object(schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: "VerticalPodAutoscaler"}, w.Namespace, "kettle"),
	}
	before := w.contents(objects...)
	// First a new process replaces the one that ended, then a standby does.
	for _, standsBy := range []bool{false, true} {
		var next func()
		if standsBy {
			next = w.superviseAll()
		}
		stop()
		former := w.removed("kettle")
		if !standsBy {
			next = w.superviseAll()
		}
		stop = next
		w.remade("kettle", former)
		w.succeeds("kettle.v1")
	}
	deployment := object(appsv1.SchemeGroupVersion.WithKind("Deployment"), w.Namespace, "kettle")
	atRest := func() map[string]string { return w.contents(append(slices.Clone(objects), deployment)...) }
	last := atRest()
	w.Consistently(atRest).WithTimeout(time.Second).Should(gomega.Equal(last))
	delete(last, "Deployment")
	if diff := cmp.Diff(before, last); diff != "" {
		t.Errorf("resource versions (-installed +later):\n%s", diff)
	}
	if diff := cmp.Diff(want, w.warnings()); diff != "" {
		t.Errorf("Events (-installed +later):\n%s", diff)
	}
}

// removed deletes a Deployment and returns its UID.
func (w *world) removed(name string) types.UID {
	w.T.Helper()
	d := &appsv1.Deployment{}
	w.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, d)).To(gomega.Succeed())
	uid := d.UID
	w.Expect(w.Delete(w.T.Context(), d)).To(gomega.Succeed())
	return uid
}

// remade waits until there is another Deployment than the deleted one. Then the controllers have
// made a pass over the version.
func (w *world) remade(name string, before types.UID) {
	w.T.Helper()
	w.Eventually(func(g gomega.Gomega) {
		d := &appsv1.Deployment{}
		g.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, d)).To(gomega.Succeed())
		g.Expect(d.UID).NotTo(gomega.Equal(before))
	}).Should(gomega.Succeed())
}

// newer adds a field that the API server does not have to the Deployments that a client writes.
type newer struct{ next http.RoundTripper }

// RoundTrip changes a request and sends it.
func (n newer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/deployments") || (r.Method != http.MethodPost && r.Method != http.MethodPut) {
		return n.next.RoundTrip(r) //nolint:wrapcheck // It stands for the other.
	}
	d := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		return nil, fmt.Errorf("reading a Deployment: %w", err)
	}
	if err := unstructured.SetNestedField(d, "x", "spec", "template", "spec", "newer"); err != nil {
		return nil, fmt.Errorf("changing a Deployment: %w", err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("writing a Deployment: %w", err)
	}
	changed := r.Clone(r.Context())
	changed.Body, changed.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return n.next.RoundTrip(changed) //nolint:wrapcheck // It stands for the other.
}

// TestFieldsNewerThanTheCluster has a Deployment with a field that the API server does not have
// yet. The version is installed without it, and one Event reports that.
func TestFieldsNewerThanTheCluster(t *testing.T) {
	w := newWorld(t)
	w.Config = rest.CopyConfig(w.Config)
	w.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return newer{next} })
	stop := w.supervise()
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))
	w.succeeds("kettle.v1")
	want := []string{`ClusterServiceVersion kettle.v1: 1 warning(s) generated during installation of operator "kettle.v1" (Deployment "kettle"): unknown field "spec.template.spec.newer"`}
	w.Eventually(w.warnings).Should(gomega.Equal(want))

	deployment := object(appsv1.SchemeGroupVersion.WithKind("Deployment"), w.Namespace, "kettle")
	before := w.contents(deployment)
	stop()
	w.supervise()
	w.Consistently(func() []any { return []any{w.contents(deployment), w.warnings()} }).
		WithTimeout(2 * time.Second).Should(gomega.Equal([]any{before, want}))
}

// brings creates an approved plan of a version.
func (w *world) brings(csv *operatorsv1alpha1.ClusterServiceVersion) {
	w.T.Helper()
	csv.TypeMeta = metav1.TypeMeta{APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind}
	text, err := json.Marshal(csv)
	if err != nil {
		w.T.Fatal(err)
	}
	w.approved(plansteps.Bundle{
		Name: csv.Name, Package: "kettle", Channel: "stable", Catalog: types.NamespacedName{Namespace: "olm", Name: "shop"}, Objects: []string{string(text)},
	})
}

// TestEntriesThatAreThereTwice has a duplicate environment variable and a duplicate port of a
// container. The last counts, one Event names the others, and nothing is written again.
func TestEntriesThatAreThereTwice(t *testing.T) {
	w := newWorld(t)
	w.election = true
	stop := w.superviseAll()
	w.Create(w.group("own", w.Namespace))
	w.brings(w.kettle("kettle.v1", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		c := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "HEAT", Value: "high"}, {Name: "COLOUR", Value: "red"}, {Name: "HEAT", Value: "low"}}
		c.Ports = []corev1.ContainerPort{{ContainerPort: 80, Name: "first"}, {ContainerPort: 81}, {ContainerPort: 80, Name: "last", Protocol: corev1.ProtocolTCP}, {ContainerPort: 80, Protocol: corev1.ProtocolUDP}}
	}))
	w.succeeds("kettle.v1")
	const path = "spec.install.spec.deployments[0].spec.template.spec.containers[0]"
	want := []string{`InstallPlan install-kettle: 2 warning(s) generated during installation of operator "kettle.v1" (ClusterServiceVersion "kettle.v1"): ` +
		path + `.env[2]: hides previous definition of "HEAT", ` + path + `.ports[2]: duplicate port definition with ` + path + `.ports[0]`}
	w.Eventually(func() string { return cmp.Diff(want, w.warnings()) }).Should(gomega.BeEmpty())
	w.carriedOut("install-kettle")

	c := w.deployment().Spec.Template.Spec.Containers[0]
	var values []string
	for _, e := range c.Env {
		if e.Name == "HEAT" || e.Name == "COLOUR" {
			values = append(values, e.Name+"="+e.Value)
		}
	}
	for _, p := range c.Ports {
		values = append(values, fmt.Sprintf("%s=%d/%s", p.Name, p.ContainerPort, p.Protocol))
	}
	if diff := cmp.Diff([]string{"COLOUR=red", "HEAT=low", "=81/TCP", "last=80/TCP", "=80/UDP"}, values); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	// Another process makes a pass over the version, too.
	stop()
	former := w.removed("kettle")
	w.superviseAll()
	w.remade("kettle", former)
	w.succeeds("kettle.v1")
	atRest := func() map[string]string {
		return w.contents(object(appsv1.SchemeGroupVersion.WithKind("Deployment"), w.Namespace, "kettle"),
			object(operatorsv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion"), w.Namespace, "kettle.v1"))
	}
	last := atRest()
	w.Consistently(atRest).WithTimeout(2 * time.Second).Should(gomega.Equal(last))
	if last["Deployment"] != "1" {
		t.Errorf("the Deployment was written again: generation %s", last["Deployment"])
	}
	if diff := cmp.Diff(want, w.warnings()); diff != "" {
		t.Errorf("Events (-installed +later):\n%s", diff)
	}
}

// TestMountPathThatIsThereTwice has an invalid Deployment: the plan fails with the message of the
// API server.
func TestMountPathThatIsThereTwice(t *testing.T) {
	w := newWorld(t)
	w.superviseAll()
	w.Create(w.group("own", w.Namespace))
	w.brings(w.kettle("kettle.v1", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		pod := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
		pod.Volumes = []corev1.Volume{{Name: "a"}, {Name: "b"}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "a", MountPath: "/data"}, {Name: "b", MountPath: "/data"}}
	}))
	w.Eventually(func(g gomega.Gomega) {
		p := &operatorsv1alpha1.InstallPlan{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "install-kettle"}, p)).To(gomega.Succeed())
		g.Expect(p.Status.Phase).To(gomega.Equal(operatorsv1alpha1.InstallPlanPhaseFailed))
		g.Expect(p.Status.Message).To(gomega.ContainSubstring(`containers[0].volumeMounts[1]: Duplicate value: {"mountPath":"/data"}`))
	}).Should(gomega.Succeed())
}
