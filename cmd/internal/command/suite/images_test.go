package suite_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// privateMirror is a registry that requires credentials once it is closed.
type privateMirror struct {
	*httptest.Server

	closed atomic.Bool
}

func newPrivateMirror(t *testing.T) *privateMirror {
	t.Helper()
	m := &privateMirror{}
	inner := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); m.closed.Load() && (user != "reader" || password != "word") {
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *privateMirror) host() string { return m.Listener.Addr().String() }

// push pushes the image of a bundle whose operator has the image source.test/acme/lamp:1.
func (m *privateMirror) push(t *testing.T, reference string) {
	t.Helper()
	bundle, err := images.Bundle(fstest.MapFS{
		"manifests/csv.json": {Data: []byte(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "lamp.v1"}, "spec": {
			"install": {"spec": {"deployments": [{"spec": {"template": {"spec": {"containers": [{"image": "source.test/acme/lamp:1"}]}}}}]}}}}`)},
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: lamp}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Push(t.Context(), m.host()+"/"+reference, bundle); err != nil {
		t.Fatal(err)
	}
}

// settings are a supervisor whose ConfigMap names the mirror, and a catalog whose Secret has the credentials.
func settings(namespace, mirror, address string) []client.Object {
	labels := map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}
	catalog := fixtures.ServedCatalog(namespace, "shop", address)
	catalog.Spec.Secrets = []string{"pull"}
	return []client.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "supervisor", Labels: labels},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "supervisor", Image: "supervisor", Args: []string{"run", "--image-config=/settings"},
						VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}},
					}},
					Volumes: []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
						ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mirrors"}},
					}}},
				},
			}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mirrors"}, Data: map[string]string{
			"registries.conf": fmt.Sprintf("[[registry]]\nlocation = \"source.test\"\nblocked = true\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", mirror),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {%q: {"username": "reader", "password": "word"}}}`, mirror),
		}},
		catalog,
	}
}

// TestPlanChecksImages checks the images of a plan that waits for approval, at a mirror that has one of two images at
// first, and as a user who may not read Secrets.
func TestPlanChecksImages(t *testing.T) {
	mirror := newPrivateMirror(t)
	mirror.push(t, "acme/bundle:1")
	mirror.closed.Store(true)
	w := &world{testenv.New(t), controlplane.Get(t).Kubeconfig()}
	server := fakecatalog.Start(t, fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Image: "source.test/acme/bundle:1"}))
	sub := fixtures.Subscription(w.Namespace, "my-lamp", "lamp", "shop")
	sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
	w.Create(fixtures.OperatorGroup(w.Namespace, "group", w.Namespace), sub)
	w.Create(settings(w.Namespace, mirror.host(), server.Address())...)
	args := []string{"plan", "-n", w.Namespace, "--global-catalog-namespace", w.Namespace, "--images", "--check"}

	got := kubectl(t).call(t, w.kubeconfig, args...)
	if got.code != 2 {
		t.Errorf("one image is missing: %+v", got)
	}
	contains(t, strings.Join(strings.Fields(got.out), " "), "IMAGES: 1 of 2 available", "NOT AVAILABLE: source.test/acme/lamp:1 (operator of lamp.v1)", mirror.host()+"/acme/lamp:1 (",
		"source.test/acme/lamp:1 (", "not asked", "images were checked with the settings of Deployment "+w.Namespace+"/supervisor")
	got = callers()[0].call(t, w.kubeconfig, append(args, "-o", "json")...)
	var answer struct{ Namespaces []dryrun.Result }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.code != 2 || len(answer.Namespaces) != 1 || len(answer.Namespaces[0].Images) != 2 {
		t.Fatalf("%v: %+v", err, got)
	}
	bundle, operator := answer.Namespaces[0].Images[0], answer.Namespaces[0].Images[1]
	if !bundle.Check.Available || operator.Check.Available || operator.Check.Reason != "NotFound" || operator.Check.Tried[0].Place != mirror.host()+"/acme/lamp:1" {
		t.Errorf("%+v, %+v", bundle.Check, operator.Check)
	}

	mirror.closed.Store(false)
	if _, err := images.Push(t.Context(), mirror.host()+"/acme/lamp:1", empty.Image); err != nil {
		t.Fatal(err)
	}
	mirror.closed.Store(true)
	if got = kubectl(t).call(t, w.kubeconfig, args...); got.code != 0 {
		t.Errorf("all images are available: %+v", got)
	}
	contains(t, got.out, "IMAGES: 2 of 2 available")

	reader := w.as(
		rbacv1.PolicyRule{APIGroups: []string{operatorsv1alpha1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{"", "apps"}, Resources: []string{"deployments", "configmaps", "serviceaccounts"}, Verbs: []string{"get", "list"}},
	)
	got = callers()[0].call(t, reader.kubeconfig, args...)
	if got.code != 3 {
		t.Errorf("Secrets may not be read: %+v", got)
	}
	contains(t, got.log, "grant this permission, or replace the settings of the cluster with --image-config and --pull-secret")
}
