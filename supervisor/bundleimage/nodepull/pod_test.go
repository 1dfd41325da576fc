package nodepull

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func shop(change func(*catalog)) *catalog {
	c := &catalog{NamespacedName: types.NamespacedName{Namespace: "olm", Name: "shop"}, uid: "u1", account: "shop", secrets: []string{"pull"}}
	if change != nil {
		change(c)
	}
	return c
}

func podOf(tb testing.TB, image string, c *catalog, s Settings, deadline time.Duration) *corev1.Pod {
	tb.Helper()
	pod, err := desiredPod(image, c, s, deadline)
	if err != nil {
		tb.Fatal(err)
	}
	return pod
}

func settings() Settings { return Settings{RegistryImage: "chandlery/registry:v1", SetUserID: true} }

// wantedPod is a pod without its hash.
const wantedPod = `metadata:
  labels:
    chandlery.dev/image-pull: "true"
    olm.managed: "true"
    operatorframework.io/bundle-unpack-ref: HASH
  name: NAME
  namespace: olm
  ownerReferences:
  - apiVersion: operators.coreos.com/v1alpha1
    blockOwnerDeletion: false
    controller: true
    kind: CatalogSource
    name: shop
    uid: u1
spec:
  activeDeadlineSeconds: 90
  automountServiceAccountToken: false
  containers:
  - args:
    - print-bundle
    command:
    - /chandlery/registry
    image: quay.io/acme/lamp@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    imagePullPolicy: Always
    name: bundle
    resources:
      limits:
        memory: 128Mi
      requests:
        cpu: 10m
        memory: 50Mi
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop:
        - ALL
      readOnlyRootFilesystem: true
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
    - mountPath: /chandlery
      name: program
      readOnly: true
  enableServiceLinks: false
  imagePullSecrets:
  - name: pull
  initContainers:
  - args:
    - copy-content
    - --program.to=/chandlery/registry
    image: chandlery/registry:v1
    imagePullPolicy: IfNotPresent
    name: copy-program
    resources:
      limits:
        memory: 128Mi
      requests:
        cpu: 10m
        memory: 50Mi
    securityContext:
      allowPrivilegeEscalation: false
      capabilities:
        drop:
        - ALL
      readOnlyRootFilesystem: true
    terminationMessagePolicy: FallbackToLogsOnError
    volumeMounts:
    - mountPath: /chandlery
      name: program
  nodeSelector:
    kubernetes.io/os: linux
  restartPolicy: Never
  securityContext:
    runAsNonRoot: true
    runAsUser: 1001
    seccompProfile:
      type: RuntimeDefault
  serviceAccountName: shop
  terminationGracePeriodSeconds: 1
  volumes:
  - emptyDir:
      sizeLimit: 256Mi
    name: program
status: {}
`

func TestDesiredPod(t *testing.T) {
	pod := podOf(t, "quay.io/acme/lamp@"+digest, shop(nil), settings(), 90*time.Second)
	hash := strings.TrimPrefix(pod.Name, "chandlery-bundle-")
	pod.Name, pod.Labels["operatorframework.io/bundle-unpack-ref"] = "NAME", strings.Replace(pod.Labels["operatorframework.io/bundle-unpack-ref"], hash, "HASH", 1)
	got, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantedPod, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPodNames checks that a pod is found again by its name, and that no pod has the name of another one.
func TestPodNames(t *testing.T) {
	const image = "quay.io/acme/lamp:v1"
	name := podOf(t, image, shop(nil), settings(), time.Minute).Name
	if again := podOf(t, image, shop(nil), settings(), time.Hour).Name; again != name {
		t.Errorf("another deadline: %s and %s", name, again)
	}
	for why, other := range map[string]*corev1.Pod{
		"image":            podOf(t, "quay.io/acme/lamp:v2", shop(nil), settings(), time.Minute),
		"catalog":          podOf(t, image, shop(func(c *catalog) { c.uid = "u2" }), settings(), time.Minute),
		"pull secret":      podOf(t, image, shop(func(c *catalog) { c.secrets = nil }), settings(), time.Minute),
		"registry's image": podOf(t, image, shop(nil), Settings{RegistryImage: "chandlery/registry:v2", SetUserID: true}, time.Minute),
	} {
		if other.Name == name {
			t.Errorf("another %s: the same name", why)
		}
	}
	if security := podOf(t, image, shop(nil), Settings{RegistryImage: "r"}, time.Minute).Spec.SecurityContext; security.RunAsUser != nil {
		t.Errorf("a platform assigns the user, but the pod has %+v", security)
	}
}

func TestCatalogOf(t *testing.T) {
	account := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Name: "shop"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "of-account"}, {Name: "pull"}},
	}
	source := func(config any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "olm", "name": "shop", "uid": "u1"}, "spec": map[string]any{"grpcPodConfig": config},
		}}
	}
	config := map[string]any{
		"nodeSelector": map[string]any{"role": "infra"}, "tolerations": []any{map[string]any{"key": "infra", "operator": "Exists"}}, "priorityClassName": "high",
	}
	got, err := catalogOf(source(config), account, []string{"pull", "more"})
	if err != nil || got.account != "shop" || got.uid != "u1" || !slices.Equal(got.secrets, []string{"more", "of-account", "pull"}) ||
		got.nodeSelector["role"] != "infra" || len(got.tolerations) != 1 || got.tolerations[0].Key != "infra" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := catalogOf(source(map[string]any{}), &corev1.ServiceAccount{}, nil); err != nil || got.account != "default" || len(got.secrets) > 0 {
		t.Errorf("a catalog without account: %+v, %v", got, err)
	}
	for _, invalid := range []any{"text", map[string]any{"tolerations": "all"}} {
		if got, err := catalogOf(source(invalid), account, nil); err == nil {
			t.Errorf("%v: %+v", invalid, got)
		}
	}
}
