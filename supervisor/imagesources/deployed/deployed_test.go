package deployed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/imagesources/deployed"
)

const (
	home    = "chandlery-system"
	blocked = "[[registry]]\nlocation = \"source.test\"\nblocked = true\n[[registry.mirror]]\nlocation = \"mirror.test\"\n"
)

// deployment returns a supervisor with arguments and a volume at /etc/settings.
func deployment(volume corev1.VolumeSource, args ...string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "chandlery", Labels: map[string]string{"app.kubernetes.io/name": "chandlery-supervisor"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Args:         append([]string{"run", "--leader-election-namespace=x", "--unknown", "value"}, args...),
				VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}},
			}},
			Volumes: []corev1.Volume{{Name: "settings", VolumeSource: volume}},
		}}},
	}
}

func configMap(keys map[string]string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "mirrors"}, Data: keys}
}

func fromConfigMap(items ...corev1.KeyToPath) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "mirrors"}, Items: items}}
}

func TestRead(t *testing.T) {
	projected := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "mirrors"}}},
		{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: new(true)}},
	}}}
	for reason, tt := range map[string]struct {
		volume  corev1.VolumeSource
		args    []string
		keys    map[string]string
		asked   string
		problem string
		plain   bool
	}{
		"no settings":          {asked: "source.test"},
		"plain HTTP":           {args: []string{"--image-plain-http", "--openshift=disabled"}, asked: "source.test", plain: true},
		"a ConfigMap":          {volume: fromConfigMap(), args: []string{"--image-config=/etc/settings/"}, keys: map[string]string{"registries.conf": blocked}, asked: "mirror.test"},
		"a projected volume":   {volume: projected, args: []string{"--image-config", "/etc/settings"}, keys: map[string]string{"registries.conf": blocked}, asked: "mirror.test"},
		"items":                {volume: fromConfigMap(corev1.KeyToPath{Key: "x", Path: "registries.conf"}), args: []string{"--image-config=/etc/settings"}, keys: map[string]string{"x": blocked}, asked: "mirror.test"},
		"an invalid file":      {volume: fromConfigMap(), args: []string{"--image-config=/etc/settings"}, keys: map[string]string{"registries.conf": "a"}, problem: "ConfigMap chandlery-system/mirrors key registries.conf"},
		"an authority":         {volume: fromConfigMap(), args: []string{"--image-ca=/etc/settings/ca.pem"}, keys: map[string]string{"ca.pem": "no certificate"}, problem: "ca-bundle.crt"},
		"a file of the node":   {volume: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}, args: []string{"--image-config=/etc/settings"}, problem: "--image-config=/etc/settings cannot be read from here; copy the files"},
		"an unmounted file":    {args: []string{"--image-config=/other"}, problem: "--image-config=/other cannot be read from here"},
		"containerd's folders": {args: []string{"--image-certs-dir=/etc/containerd/certs.d"}, problem: "--image-certs-dir=/etc/containerd/certs.d cannot be read from here"},
		"a missing ConfigMap":  {volume: fromConfigMap(), args: []string{"--image-config=/etc/settings"}, problem: "reading ConfigMap chandlery-system/mirrors"},
		"a wrong argument":     {args: []string{"--image-plain-http=perhaps"}, problem: "arguments of the container"},
	} {
		t.Run(reason, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithObjects(deployment(tt.volume, tt.args...))
			if tt.keys != nil {
				builder = builder.WithObjects(configMap(tt.keys))
			}
			found, err := deployed.Read(t.Context(), builder.Build(), home)
			if err != nil || tt.problem != "" {
				if err == nil || tt.problem == "" || !strings.Contains(err.Error(), tt.problem) || !strings.Contains(err.Error(), "Deployment chandlery-system/chandlery") {
					t.Errorf("error %v, want %q", err, tt.problem)
				}
				return
			}
			ref, err := name.ParseReference("source.test/a:v1")
			if err != nil {
				t.Fatal(err)
			}
			route, err := found.Route(ref)
			if err != nil || len(route.Sources) != 1 || route.Sources[0].Reference.Context().RegistryStr() != tt.asked {
				t.Errorf("route %+v, error %v, want %s", route, err, tt.asked)
			}
			if found.PlainHTTP != tt.plain {
				t.Errorf("plain HTTP: %t", found.PlainHTTP)
			}
		})
	}
	if _, err := deployed.Read(t.Context(), fake.NewClientBuilder().Build(), home); !errors.Is(err, deployed.ErrNone) {
		t.Errorf("without a Deployment: %v", err)
	}
}
