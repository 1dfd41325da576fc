package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/dryrun"
	"github.com/chandlery/chandlery/supervisor/dryrun/imagecheck"
	"github.com/chandlery/chandlery/supervisor/imagesources/deployed"
	"github.com/chandlery/chandlery/supervisor/resolution"
	"github.com/chandlery/chandlery/test/images"
)

// privateMirror returns the address of a registry with image acme/lens:1. It requires credentials.
func privateMirror(t *testing.T) string {
	t.Helper()
	inner := registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
	open := httptest.NewServer(inner)
	defer open.Close()
	if _, err := images.Push(t.Context(), open.Listener.Addr().String()+"/acme/lens:1", empty.Image); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "reader" || password != "word" {
			w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// cluster returns the objects of a supervisor that has a mirror in its ConfigMap, and the Secret of a catalog.
func cluster(namespace, mirror string) []client.Object {
	return []client.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "supervisor", Labels: map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Args: []string{"run", "--image-config=/settings"}, VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}},
				}},
				Volumes: []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mirrors"}},
				}}},
			}}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mirrors"}, Data: map[string]string{
			"registries.conf": fmt.Sprintf("[[registry]]\nlocation = \"source.test\"\nblocked = true\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", mirror),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {%q: {"username": "reader", "password": "word"}}}`, mirror),
		}},
	}
}

// TestSettingsOfCluster checks an image with the settings of a supervisor and the pull secrets of a catalog.
func TestSettingsOfCluster(t *testing.T) {
	mirror := privateMirror(t)
	wanted := []dryrun.Image{{Reference: "source.test/acme/lens:1", Catalog: "olm/wares", Kinds: []dryrun.ImageKind{dryrun.RelatedImage}, Bundles: []string{"lamp.v1"}}}
	for reason, tt := range map[string]struct {
		namespace string
		secrets   []string
		result    string
		problems  int
	}{
		"in the usual namespace":    {namespace: supervisorNamespace, secrets: []string{"pull"}, result: mirror + "/acme/lens:1"},
		"in the global namespace":   {namespace: "olm", secrets: []string{"pull"}, result: mirror + "/acme/lens:1"},
		"without the Secret":        {namespace: "olm", result: "Unauthorized"},
		"with a Secret that is not": {namespace: "olm", secrets: []string{"none"}, result: "Unauthorized", problems: 1},
	} {
		reader := fake.NewClientBuilder().WithObjects(cluster(tt.namespace, mirror)...).Build()
		p, _, err := newClusterPull(t.Context(), reader, "olm")
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		p.source = func(resolution.CatalogKey) *operatorsv1alpha1.CatalogSource {
			return &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{Secrets: tt.secrets}}
		}
		found, err := imagecheck.Check(t.Context(), p.options, p.verify, wanted)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if got := found[0].Check.Source + found[0].Check.Reason; got != tt.result || len(p.problems) != tt.problems {
			t.Errorf("%s: got %q and problems %v, want %q and %d", reason, got, p.problems, tt.result, tt.problems)
		}
	}
	if _, err := findSupervisor(t.Context(), fake.NewClientBuilder().Build(), "olm"); !errors.Is(err, deployed.ErrNone) {
		t.Errorf("without a supervisor: %v", err)
	}
}

// TestRemediesByFlags checks that remedies without a cluster name flags of this command.
func TestRemediesByFlags(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer denying.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	untrusted.StartTLS()
	defer untrusted.Close()
	for reason, tt := range map[string]struct {
		at   *httptest.Server
		args []string
		want string
	}{
		"Unauthorized":   {denying, []string{"--use-http"}, "--pull-secret"},
		"BadCredentials": {denying, []string{"--use-http", "--pull-secret", "/none"}, "--pull-secret"},
		"PlainHTTP":      {denying, nil, "--use-http"},
		"Untrusted":      {untrusted, nil, "--registry-ca"},
	} {
		var o imageOptions
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		o.addFlags(flags)
		if err := flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		wanted := []dryrun.Image{{Reference: tt.at.Listener.Addr().String() + "/a:1", Catalog: "olm/wares", Kinds: []dryrun.ImageKind{dryrun.RelatedImage}}}
		found, err := o.checkedByFlags(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		if check := found[0].Check; check.Reason != reason || !strings.Contains(check.Remedy, tt.want) || strings.Contains(check.Remedy, "spec.secrets") {
			t.Errorf("%s: got %+v, want %s", reason, check, tt.want)
		}
	}
}

// TestInvalidProxy checks that the command does not ask registries past a proxy with an invalid URL.
func TestInvalidProxy(t *testing.T) {
	for _, variable := range []string{"https_proxy", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(variable, "")
	}
	t.Setenv("HTTPS_PROXY", "ftp://user:word@web.example")
	_, _, err := newClusterPull(t.Context(), fake.NewClientBuilder().WithObjects(cluster("olm", "mirror.test")...).Build(), "olm")
	if err == nil || !strings.Contains(err.Error(), "HTTPS_PROXY has the scheme") || strings.Contains(err.Error(), "word") {
		t.Errorf("got %v", err)
	}
}

// TestForbiddenSettings checks the exit code and the remedy for users who may not read what the supervisor reads.
func TestForbiddenSettings(t *testing.T) {
	forbidden := interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no rule permits it"))
	}}
	reader := fake.NewClientBuilder().WithObjects(cluster("olm", "mirror.test")...).WithInterceptorFuncs(forbidden).Build()
	_, err := findSupervisor(t.Context(), reader, "olm")
	err = explained(err)
	if code := console.Report(io.Discard, "chandlery", err); code != console.Forbidden || !strings.Contains(err.Error(), "--image-config and --pull-secret") {
		t.Errorf("code %d, error %v", code, err)
	}
}
