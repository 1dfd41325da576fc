package deployment

import (
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

const (
	someDigest  = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	otherDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// node returns a ready node.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "containerd://2.3.7"},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func lost(n *corev1.Node) {
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
}

func cordoned(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
}

func reserved(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "for", Value: "others", Effect: corev1.TaintEffectNoSchedule}}
}

func windows(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" }

// input returns the input of a catalog with an image and two nodes.
func input(change ...func(*Input)) *Input {
	source := &operatorsv1alpha1.CatalogSource{Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "shops/shop:1"}}
	source.Name, source.Namespace, source.UID = "shop", "olm", "u-1"
	o := &Input{
		Source: source, Nodes: []*corev1.Node{node("a"), node("b")}, Version: semver.Version{Major: 1, Minor: 36, Patch: 3},
		Content: Content{Image: digest.Image{Spec: "shops/shop:1", Digest: someDigest}},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func config(c operatorsv1alpha1.GrpcPodConfig) func(*Input) {
	return func(o *Input) { o.Source.Spec.GrpcPodConfig = &c }
}

func annotated(key, value string) func(*Input) {
	return func(o *Input) { o.Source.Annotations = map[string]string{key: value} }
}

func settings(change ...func(*Settings)) *Settings {
	s := Settings{SetWorkloadUserID: true, RegistryImage: "chandlery/registry:1.0"}.WithDefaults()
	for _, c := range change {
		c(&s)
	}
	return &s
}

// deploymentOf returns the desired Deployment.
func deploymentOf(t *testing.T, o *Input, h *Settings) *appsv1.Deployment {
	t.Helper()
	all, err := Desired(o, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.GetKind() == "Deployment" {
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

func TestDesiredObjects(t *testing.T) {
	configMap := func(o *Input) {
		o.Source.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "configmap", ConfigMap: "lamps"}
		o.ConfigMapVersion = "7"
	}
	for _, tt := range []struct {
		reason string
		change []func(*Input)
		want   []string
	}{
		{reason: "image", want: []string{"ServiceAccount shop", "NetworkPolicy shop-grpc-server", "Service shop", "Deployment shop", "PodDisruptionBudget shop"}},
		{
			reason: "one replica needs no budget", change: []func(*Input){annotated(api.AnnotationReplicas, "1")},
			want: []string{"ServiceAccount shop", "NetworkPolicy shop-grpc-server", "Service shop", "Deployment shop"},
		},
		{
			reason: "dots", change: []func(*Input){func(o *Input) { o.Source.Name = "my.shop" }},
			want: []string{"ServiceAccount my.shop", "NetworkPolicy my.shop-grpc-server", "Service my-shop", "Deployment my.shop", "PodDisruptionBudget my.shop"},
		},
		{
			reason: "the account of the namespace", change: []func(*Input){func(o *Input) { o.Source.Name = "default" }},
			want: []string{"NetworkPolicy default-grpc-server", "Service default", "Deployment default", "PodDisruptionBudget default"},
		},
		{
			reason: "ConfigMap", change: []func(*Input){configMap},
			want: []string{"ServiceAccount shop-configmap-server", "NetworkPolicy shop-grpc-server", "Service shop", "Deployment shop", "PodDisruptionBudget shop"},
		},
	} {
		all, err := Desired(input(tt.change...), settings())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range all {
			got = append(got, u.GetKind()+" "+u.GetName())
			if u.GetAnnotations()[api.AnnotationAppliedHash] == "" || len(u.GetOwnerReferences()) != 1 || u.GetNamespace() != "olm" {
				t.Errorf("%s: %s is not complete: %v", tt.reason, u.GetKind(), u.Object["metadata"])
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}

func TestDesiredIsAFunction(t *testing.T) {
	first, err := Desired(input(), settings())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := Desired(input(), settings())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("the same observation gives other objects:\n%s", diff)
		}
	}
}

func TestReplicas(t *testing.T) {
	had := func(n int32) func(*Input) {
		return func(o *Input) { o.Deployment = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &n}} }
	}
	nodes := func(all ...*corev1.Node) func(*Input) { return func(o *Input) { o.Nodes = all } }
	for _, tt := range []struct {
		reason string
		change []func(*Input)
		flag   int
		want   int32
	}{
		{reason: "two nodes", want: 2},
		{reason: "one node", change: []func(*Input){nodes(node("a"))}, want: 1},
		{reason: "no node", change: []func(*Input){nodes()}, want: 1},
		{reason: "many nodes", change: []func(*Input){nodes(node("a"), node("b"), node("c"))}, want: 2},
		{reason: "annotation", change: []func(*Input){annotated(api.AnnotationReplicas, "5")}, flag: 3, want: 5},
		{reason: "annotation that is no number", change: []func(*Input){annotated(api.AnnotationReplicas, "x")}, flag: 3, want: 3},
		{reason: "annotation out of bounds", change: []func(*Input){annotated(api.AnnotationReplicas, "0")}, want: 2},
		{reason: "flag", flag: 3, want: 3},
		{reason: "a second node that is lost", change: []func(*Input){nodes(node("a"), node("b", lost))}, want: 1},
		{reason: "a second node that is lost takes no replica away", change: []func(*Input){nodes(node("a"), node("b", lost)), had(2)}, want: 2},
		{reason: "a second node that is drained takes no replica away", change: []func(*Input){nodes(node("a"), node("b", cordoned)), had(2)}, want: 2},
		{reason: "a second node that is gone", change: []func(*Input){nodes(node("a")), had(2)}, want: 1},
		{reason: "a user scaled it", change: []func(*Input){had(9)}, want: 2},
		{reason: "windows", change: []func(*Input){nodes(node("a"), node("b", windows))}, want: 1},
		{reason: "for others", change: []func(*Input){nodes(node("a"), node("b", reserved))}, want: 1},
		{
			reason: "for us too", want: 2,
			change: []func(*Input){
				nodes(node("a"), node("b", reserved)),
				config(operatorsv1alpha1.GrpcPodConfig{Tolerations: []corev1.Toleration{{Key: "for", Operator: corev1.TolerationOpExists}}}),
			},
		},
		{
			reason: "chosen", want: 1,
			change: []func(*Input){config(operatorsv1alpha1.GrpcPodConfig{NodeSelector: map[string]string{corev1.LabelHostname: "a"}})},
		},
	} {
		d := deploymentOf(t, input(tt.change...), settings(func(h *Settings) { h.Replicas = tt.flag }))
		if got := *d.Spec.Replicas; got != tt.want {
			t.Errorf("%s: %d replicas, want %d", tt.reason, got, tt.want)
		}
	}
}

func TestRollOutsTakeNothingAway(t *testing.T) {
	d := deploymentOf(t, input(), settings())
	update, pod := d.Spec.Strategy.RollingUpdate, d.Spec.Template.Spec
	if update.MaxUnavailable.IntValue() != 0 || update.MaxSurge.IntValue() != 1 {
		t.Errorf("strategy %+v", update)
	}
	serving := pod.Containers[0]
	if serving.Lifecycle.PreStop.Sleep.Seconds >= *pod.TerminationGracePeriodSeconds {
		t.Error("a replica that is to go is killed while it waits")
	}
	if serving.ReadinessProbe.InitialDelaySeconds != 0 || serving.StartupProbe.InitialDelaySeconds != 0 || serving.StartupProbe.PeriodSeconds != 1 {
		t.Error("a new replica waits before it serves")
	}
	if budget := serving.StartupProbe.PeriodSeconds * serving.StartupProbe.FailureThreshold; budget >= *d.Spec.ProgressDeadlineSeconds {
		t.Errorf("a start may take %d s, a roll-out %d s", budget, *d.Spec.ProgressDeadlineSeconds)
	}
	if old := deploymentOf(t, input(func(o *Input) { o.Version = semver.Version{Major: 1, Minor: 29} }), settings()); old.Spec.Template.Spec.Containers[0].Lifecycle != nil {
		t.Error("an API server that does not know sleep refuses it")
	}
}

func TestPodOfAnImage(t *testing.T) {
	d := deploymentOf(t, input(annotated("team", "one")), settings())
	pod := d.Spec.Template
	if diff := cmp.Diff(map[string]string{"team": "one", annotationSafeToEvict: "true"}, pod.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"olm.catalogSource": "shop", "olm.managed": "true", "app.kubernetes.io/managed-by": "chandlery-supervisor",
		api.LabelPodSpecHash: pod.Labels[api.LabelPodSpecHash],
	}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" || pod.Labels[api.LabelPodSpecHash] == "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	serving := pod.Spec.Containers[0]
	if serving.Name != "registry-server" || serving.Image != "shops/shop@"+someDigest || len(serving.Command)+len(serving.Args) > 0 ||
		serving.ImagePullPolicy != corev1.PullIfNotPresent || *serving.SecurityContext.ReadOnlyRootFilesystem {
		t.Errorf("container %+v", serving)
	}
	if got := serving.Resources.Requests; got.Cpu().String() != "10m" || got.Memory().String() != "50Mi" || len(serving.Resources.Limits) != 0 {
		t.Errorf("resources %+v", serving.Resources)
	}
	if diff := cmp.Diff(map[string]string{api.AnnotationImage: "shops/shop:1", api.AnnotationImageDigest: someDigest}, without(d.Annotations, api.AnnotationAppliedHash)); diff != "" {
		t.Errorf("annotations of the Deployment (-want +got):\n%s", diff)
	}
	untold := deploymentOf(t, input(func(o *Input) { o.Image = digest.Image{Spec: "shops/shop:1"} }), settings()).Spec.Template.Spec.Containers[0]
	if untold.Image != "shops/shop:1" || untold.ImagePullPolicy != corev1.PullAlways {
		t.Errorf("without a digest: %s, %s", untold.Image, untold.ImagePullPolicy)
	}
}

func without(m map[string]string, key string) map[string]string {
	delete(m, key)
	return m
}

// TestNoNewReplicas lists changes that must not cause a rollout.
func TestNoNewReplicas(t *testing.T) {
	template := func(change ...func(*Input)) corev1.PodTemplateSpec {
		return deploymentOf(t, input(change...), settings()).Spec.Template
	}
	for reason, change := range map[string]func(*Input){
		"last-applied":    annotated(annotationLastApplied, "{}"),
		"replicas":        annotated(api.AnnotationReplicas, "5"),
		"another display": func(o *Input) { o.Source.Spec.DisplayName = "Shop" },
		"same digest":     func(o *Input) { o.Image.Spec = "shops/shop:2" },
		"a node more":     func(o *Input) { o.Nodes = append(o.Nodes, node("c")) },
		"a node lost":     func(o *Input) { lost(o.Nodes[0]) },
		"patch release":   func(o *Input) { o.Version.Patch++ },
	} {
		if diff := cmp.Diff(template(), template(change)); diff != "" {
			t.Errorf("%s makes new replicas:\n%s", reason, diff)
		}
	}
	if cmp.Equal(template(), template(func(o *Input) { o.Image.Digest = otherDigest })) {
		t.Error("another digest makes no new replicas")
	}
	if cmp.Equal(template(), template(func(o *Input) { o.Source.Spec.Secrets = []string{"pull"} })) {
		t.Error("replicas that cannot be pulled keep the old secrets")
	}
}

func TestGrpcPodConfig(t *testing.T) {
	target := resource.MustParse("60Mi")
	class := "high"
	forever := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	pod := deploymentOf(t, input(config(operatorsv1alpha1.GrpcPodConfig{
		NodeSelector: map[string]string{"pool": "one"}, Tolerations: forever, PriorityClassName: &class, MemoryTarget: &target, Affinity: affinity,
	})), settings()).Spec.Template.Spec
	if diff := cmp.Diff(map[string]string{"pool": "one"}, pod.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(forever, pod.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	if pod.PriorityClassName != "high" || pod.Affinity.NodeAffinity == nil || pod.Affinity.PodAntiAffinity == nil {
		t.Errorf("priority %s, affinity %+v", pod.PriorityClassName, pod.Affinity)
	}
	if affinity.PodAntiAffinity != nil {
		t.Error("the CatalogSource was changed")
	}
	serving := pod.Containers[0]
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "60MiB"}}, serving.Env); diff != "" || serving.Resources.Requests.Memory().String() != "60Mi" {
		t.Errorf("memory %s, environment (-want +got):\n%s", serving.Resources.Requests.Memory(), diff)
	}
	plain := deploymentOf(t, input(annotated(api.AnnotationPriorityClass, "other")), settings()).Spec.Template.Spec
	if len(plain.Tolerations) != 2 || *plain.Tolerations[0].TolerationSeconds != lostNodeTolerance {
		t.Errorf("tolerations %+v", plain.Tolerations)
	}
	if plain.PriorityClassName != "other" {
		t.Errorf("priority class %q", plain.PriorityClassName)
	}
}

// TestRegistryLimits checks that only pods with Chandlery's registry have memory limits.
func TestRegistryLimits(t *testing.T) {
	target := resource.MustParse("2Gi")
	registry := func(change func(*Settings)) *Settings {
		h := settings()
		h.Server, h.Content = ServerRegistry, ContentCopy
		change(h)
		return h
	}
	large := config(operatorsv1alpha1.GrpcPodConfig{MemoryTarget: &target})
	for name, tc := range map[string]struct {
		reason   string
		settings *Settings
		change   []func(*Input)
		want     string
		request  string
	}{
		"Registry": {"the default", registry(func(*Settings) {}), nil, "1Gi", "50Mi"},
		"Set":      {"the flag", registry(func(h *Settings) { h.MemoryLimit = "300Mi" }), nil, "300Mi", "50Mi"},
		"None":     {"no limit is wanted", registry(func(h *Settings) { h.MemoryLimit = "0" }), nil, "0", "50Mi"},
		"Target":   {"the request of memoryTarget is larger", registry(func(*Settings) {}), []func(*Input){large}, "2Gi", "2Gi"},
		"Other":    {"another server", settings(), nil, "0", "50Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := deploymentOf(t, input(tc.change...), tc.settings).Spec.Template.Spec
			got := spec.Containers[0].Resources
			if got.Limits.Memory().String() != tc.want || got.Requests.Memory().String() != tc.request || !got.Limits.Cpu().IsZero() {
				t.Errorf("%s: got %+v, want limit %s and request %s", tc.reason, got, tc.want, tc.request)
			}
			for _, c := range spec.InitContainers {
				if limited := !c.Resources.Limits.Memory().IsZero(); limited != (tc.want != "0") {
					t.Errorf("%s: container %s has the limits %+v", tc.reason, c.Name, c.Resources.Limits)
				}
			}
			for _, v := range spec.Volumes {
				if v.EmptyDir != nil && (v.EmptyDir.SizeLimit == nil || v.EmptyDir.SizeLimit.Sign() <= 0) {
					t.Errorf("%s: volume %s has no size limit", tc.reason, v.Name)
				}
			}
		})
	}
}

func TestRestricted(t *testing.T) {
	enforced := func(o *Input) { o.NamespaceLabels = map[string]string{labelEnforcedSecurity: "restricted"} }
	for _, tt := range []struct {
		reason     string
		change     []func(*Input)
		noUser     bool
		restricted bool
	}{
		{reason: "nothing said"},
		{reason: "namespace", change: []func(*Input){enforced}, restricted: true},
		{reason: "legacy in spite of the namespace", change: []func(*Input){enforced, config(operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: "legacy"})}},
		{reason: "config", change: []func(*Input){config(operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: "restricted"})}, restricted: true},
		{reason: "no user", change: []func(*Input){enforced}, noUser: true, restricted: true},
	} {
		pod := deploymentOf(t, input(tt.change...), settings(func(h *Settings) {
			h.SetWorkloadUserID, h.Server, h.Content = !tt.noUser, ServerRegistry, ContentCopy
		})).Spec.Template.Spec
		if (pod.SecurityContext != nil) != tt.restricted {
			t.Errorf("%s: security context of the pod %+v", tt.reason, pod.SecurityContext)
			continue
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			if (c.SecurityContext.Capabilities != nil) != tt.restricted {
				t.Errorf("%s: container %s %+v", tt.reason, c.Name, c.SecurityContext)
			}
		}
		if tt.restricted && (pod.SecurityContext.RunAsUser == nil) != tt.noUser {
			t.Errorf("%s: user %v", tt.reason, pod.SecurityContext.RunAsUser)
		}
	}
}

func TestContent(t *testing.T) {
	extract := config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/catalog", CacheDir: "/cache"}})
	oldNode := func(o *Input) { o.Nodes[1].Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.7.2" }
	labelled := func(o *Input) { o.Image.CatalogDir = "/labelled" }
	for _, tt := range []struct {
		reason   string
		change   []func(*Input)
		settings func(*Settings)
		args     string
		init     string
	}{
		{reason: "image volume", change: []func(*Input){extract}, args: "serve /extracted-catalog/catalog"},
		{reason: "a node that cannot", change: []func(*Input){extract, oldNode}, args: "serve /extracted-catalog/catalog", init: "--catalog.from=/catalog"},
		{reason: "an API server that cannot", change: []func(*Input){extract, func(o *Input) { o.Version.Minor = 34 }}, args: "serve /extracted-catalog/catalog", init: "--catalog.from=/catalog"},
		{reason: "asked to copy", change: []func(*Input){extract}, settings: func(h *Settings) { h.Content = ContentCopy }, args: "serve /extracted-catalog/catalog", init: "--catalog.from=/catalog"},
		{reason: "asked to mount", change: []func(*Input){extract, oldNode}, settings: func(h *Settings) { h.Content = ContentVolume }, args: "serve /extracted-catalog/catalog"},
		{reason: "registry for all", settings: func(h *Settings) { h.Server = ServerRegistry }, args: "serve /extracted-catalog/configs"},
		{reason: "label of the image", change: []func(*Input){labelled}, settings: func(h *Settings) { h.Server = ServerRegistry }, args: "serve /extracted-catalog/labelled"},
		{reason: "extractContent beats the label", change: []func(*Input){labelled, extract, oldNode}, args: "serve /extracted-catalog/catalog", init: "--catalog.from=/catalog"},
		{
			reason: "a directory that leads elsewhere", args: "serve /extracted-catalog/etc",
			change: []func(*Input){config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "../../../etc"}})},
		},
	} {
		change := tt.settings
		if change == nil {
			change = func(*Settings) {}
		}
		pod := deploymentOf(t, input(tt.change...), settings(change)).Spec.Template.Spec
		serving := pod.Containers[0]
		if got := strings.Join(serving.Args, " "); got != tt.args || serving.Image != "chandlery/registry:1.0" || !*serving.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: %s %s", tt.reason, serving.Image, got)
		}
		if (len(pod.InitContainers) > 0) != (tt.init != "") {
			t.Errorf("%s: %d init containers", tt.reason, len(pod.InitContainers))
		} else if tt.init != "" && (pod.InitContainers[1].Args[1] != tt.init || pod.InitContainers[1].Image != "shops/shop@"+someDigest) {
			t.Errorf("%s: copied by %+v", tt.reason, pod.InitContainers[1])
		}
	}
}

func TestConfigMapPod(t *testing.T) {
	d := deploymentOf(t, input(func(o *Input) {
		o.Source.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "internal", ConfigMap: "lamps"}
		o.ConfigMapVersion, o.ConfigMapSnapshot = "7", "shop-abc"
	}), settings())
	if got := ConfigMapOf(d); got != "shop-abc" {
		t.Errorf("ConfigMap %q is mounted", got)
	}
	pod := d.Spec.Template
	serving := pod.Spec.Containers[0]
	if serving.Name != "configmap-registry-server" || strings.Join(serving.Args, " ") != "serve configmap:/configmap" || pod.Labels[api.LabelConfigMapVersion] != "7" {
		t.Errorf("container %s %v, labels %v", serving.Name, serving.Args, pod.Labels)
	}
	if pod.Spec.ServiceAccountName != "shop-configmap-server" || pod.Spec.SecurityContext.RunAsUser == nil || d.Annotations[api.AnnotationImage] != "" {
		t.Errorf("pod %+v", pod.Spec)
	}
}

func TestDiffers(t *testing.T) {
	all, err := Desired(input(), settings())
	if err != nil {
		t.Fatal(err)
	}
	find := func(kind string) *unstructured.Unstructured {
		for _, u := range all {
			if u.GetKind() == kind {
				return u
			}
		}
		t.Fatalf("no %s", kind)
		return nil
	}
	set := func(value any, path ...string) func(map[string]any) {
		return func(o map[string]any) {
			if err := unstructured.SetNestedField(o, value, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	container := func(change func(map[string]any)) func(map[string]any) {
		return func(o map[string]any) {
			list, _, _ := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
			change(list[0].(map[string]any))
			set(list, "spec", "template", "spec", "containers")(o)
		}
	}
	for _, tt := range []struct {
		reason, kind string
		change       func(map[string]any)
		want         bool
	}{
		{"the same", "Deployment", func(map[string]any) {}, false},
		{"filled in", "Deployment", set("Always", "spec", "template", "spec", "restartPolicy"), false},
		{"status", "Deployment", set(int64(3), "status", "replicas"), false},
		{"somebody's label", "Deployment", set("there", "metadata", "labels", "their"), false},
		{"our label", "Deployment", set("odd", "metadata", "labels", "olm.managed"), true},
		{"hash", "Deployment", set("odd", "metadata", "annotations", api.AnnotationAppliedHash), true},
		{"scaled", "Deployment", set(int64(9), "spec", "replicas"), true},
		{"node selector", "Deployment", set("odd", "spec", "template", "spec", "nodeSelector", "odd"), true},
		{"image", "Deployment", container(func(c map[string]any) { c["image"] = "odd" }), true},
		{"somebody's variable", "Deployment", container(func(c map[string]any) { c["env"] = []any{map[string]any{"name": "a"}} }), false},
		{"selector", "Service", set("odd", "spec", "selector", "odd"), true},
		{"address", "Service", set("10.0.0.1", "spec", "clusterIP"), false},
		{"lets replicas out", "NetworkPolicy", set([]any{map[string]any{}}, "spec", "egress"), true},
		{"paused", "Deployment", set(true, "spec", "paused"), true},
		{"lets more in", "NetworkPolicy", set([]any{map[string]any{}, map[string]any{}}, "spec", "ingress"), true},
	} {
		wanted := find(tt.kind)
		live := wanted.DeepCopy()
		tt.change(live.Object)
		if got := Differs(wanted, live); got != tt.want {
			t.Errorf("%s: differs %v, want %v", tt.reason, got, tt.want)
		}
	}
}

func TestHash(t *testing.T) {
	one, err := hash(map[string]string{"a": "b"})
	if err != nil || one == "" || len(one) > 63 {
		t.Errorf("hash %q, error %v", one, err)
	}
	if _, err := hash(make(chan int)); err == nil {
		t.Error("hashed what cannot be encoded")
	}
}

// TestSelectedPod checks that the selection is an argument of every pod with Chandlery's registry.
// The other arguments stay the same.
func TestSelectedPod(t *testing.T) {
	selected := func(o *Input) { o.Selection = `{"heads":true}` }
	extract := config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/catalog"}})
	old := func(o *Input) { o.Version.Minor = 30 }
	inMap := func(o *Input) {
		o.Source.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "internal", ConfigMap: "lamps"}
		o.ConfigMapVersion, o.ConfigMapSnapshot = "7", "shop-abc"
	}
	for name, change := range map[string][]func(*Input){"Mounted": {extract}, "Copied": {extract, old}, "ConfigMap": {inMap}} {
		t.Run(name, func(t *testing.T) {
			whole, part := deploymentOf(t, input(change...), settings()), deploymentOf(t, input(append(change, selected)...), settings())
			want := append(slices.Clone(whole.Spec.Template.Spec.Containers[0].Args), `--selection={"heads":true}`)
			if got := part.Spec.Template.Spec.Containers[0].Args; !slices.Equal(got, want) {
				t.Errorf("arguments %q, want %q", got, want)
			}
			if !HasSelection(part) || HasSelection(whole) || HasSelection(nil) {
				t.Error("it is not known which serves a part")
			}
			if whole.Spec.Template.Labels[api.LabelPodSpecHash] == part.Spec.Template.Labels[api.LabelPodSpecHash] {
				t.Error("no new replicas are made")
			}
		})
	}
}
