package suite_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/test/testenv"
)

func secrets(named ...string) func(*operatorsv1alpha1.CatalogSource) {
	return func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Secrets = named }
}

func polls(interval string) func(*operatorsv1alpha1.CatalogSource) {
	return func(s *operatorsv1alpha1.CatalogSource) {
		s.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{RegistryPoll: &operatorsv1alpha1.RegistryPoll{RawInterval: interval}}
	}
}

// TestHosting creates a catalog, damages its objects, rolls out new content and stops hosting. It
// is one test because each part starts with the result of the previous one.
func TestHosting(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "clerk", "secret")
	first, digest := registry.push("shop:1", nil)
	w.Create(pullSecret("pull", registry.host, "clerk", "secret"), catalog("my.shop", registry.host+"/shop:1", secrets("pull"), polls("5s")))
	w.supervise()
	pinned := registry.host + "/shop@" + digest
	w.rolledOut("my.shop", 2, runs(pinned))
	w.becomes("my.shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Status.Reason).To(gomega.BeEmpty(), s.Status.Message)
		g.Expect(condition(s, "Available")).To(gomega.HaveSuffix("; image " + pinned))
		g.Expect(s.Status.LatestImageRegistryPoll).NotTo(gomega.BeNil())
		service := s.Status.RegistryServiceStatus
		g.Expect(service).NotTo(gomega.BeNil())
		service.CreatedAt = metav1.Time{}
		g.Expect(*service).To(gomega.Equal(operatorsv1alpha1.RegistryServiceStatus{
			Protocol: "grpc", ServiceName: "my-shop", ServiceNamespace: w.Namespace, Port: "50051",
		}))
	})
	w.hasAllParts("my.shop", "my-shop")
	w.restores("my.shop", "my-shop")
	d := w.rolledOut("my.shop", 2, runs(pinned))

	// The tag gets new content.
	nodes := w.nodesOf("my.shop")
	if len(nodes) != 2 {
		t.Errorf("replicas run on %v, want two nodes", nodes)
	}
	_, second := registry.push("shop:1", nil)
	w.rolledOut("my.shop", 2, runs(registry.host+"/shop@"+second))
	// The tag gets the old content again.
	registry.push("shop:1", nil, first)
	again := w.rolledOut("my.shop", 2, runs(pinned))
	if again.UID != d.UID {
		t.Error("the Deployment is another one")
	}

	// The registry becomes unreachable. The running replicas stay.
	registry.stop(true)
	w.becomes("my.shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(string(s.Status.Reason)).To(gomega.Equal("RegistryServerError"))
		g.Expect(s.Status.Message).To(gomega.ContainSubstring("image " + pinned + " still runs"))
	})
	w.rolledOut("my.shop", 2, runs(pinned))
	registry.stop(false)

	// The catalog moves to an address.
	w.Eventually(func(g gomega.Gomega) {
		s := w.source(g, "my.shop")
		s.Spec.Image, s.Spec.Address = "", "127.0.0.1:1"
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	}).Should(gomega.Succeed())
	w.Eventually(func(g gomega.Gomega) {
		var all corev1.PodList
		g.Expect(w.List(t.Context(), &all, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(all.Items).To(gomega.BeEmpty())
		var budgets policyv1.PodDisruptionBudgetList
		g.Expect(w.List(t.Context(), &budgets, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(budgets.Items).To(gomega.BeEmpty())
		s := w.source(g, "my.shop")
		g.Expect(condition(s, "Available")).To(gomega.BeEmpty())
		g.Expect(s.Status.RegistryServiceStatus.ServiceName).To(gomega.BeEmpty())
	}).Should(gomega.Succeed())
}

// hasAllParts checks every object of a catalog.
func (w *world) hasAllParts(named, service string) {
	w.T.Helper()
	source := w.source(w, named)
	for _, o := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: named}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: service}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: named}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: named}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: named + "-grpc-server"}},
	} {
		w.get(w, o.GetName(), o)
		want := metav1.OwnerReference{
			APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: named, UID: source.UID,
			Controller: new(true), BlockOwnerDeletion: new(true),
		}
		if diff := cmp.Diff([]metav1.OwnerReference{want}, o.GetOwnerReferences()); diff != "" {
			w.T.Errorf("%T owners (-want +got):\n%s", o, diff)
		}
		if o.GetLabels()["olm.managed"] != "true" || o.GetLabels()["olm.catalogSource"] != named {
			w.T.Errorf("%T labels %v", o, o.GetLabels())
		}
	}
}

func (w *world) nodesOf(named string) []string {
	w.T.Helper()
	var all corev1.PodList
	if err := w.List(w.T.Context(), &all, client.InNamespace(w.Namespace), client.MatchingLabels{"olm.catalogSource": named}); err != nil {
		w.T.Fatal(err)
	}
	nodes := map[string]bool{}
	for i := range all.Items {
		nodes[all.Items[i].Spec.NodeName] = true
	}
	return slices.Collect(maps.Keys(nodes))
}

// restores damages the objects of a catalog in many ways and waits until they are restored.
func (w *world) restores(named, service string) {
	w.T.Helper()
	for _, tt := range []struct {
		reason string
		object client.Object
		name   string
		damage func(client.Object)
	}{
		{"scaled", &appsv1.Deployment{}, named, func(o client.Object) { o.(*appsv1.Deployment).Spec.Replicas = new(int32(0)) }},
		{"another image", &appsv1.Deployment{}, named, func(o client.Object) { o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = "odd" }},
		{"another command", &appsv1.Deployment{}, named, func(o client.Object) {
			container := &o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
			container.Command, container.Args = []string{"/bin/false"}, []string{"odd"}
		}},
		{"the node's network", &appsv1.Deployment{}, named, func(o client.Object) { o.(*appsv1.Deployment).Spec.Template.Spec.HostNetwork = true }},
		{"no label", &appsv1.Deployment{}, named, func(o client.Object) { o.SetLabels(nil) }},
		{"selects nothing", &corev1.Service{}, service, func(o client.Object) { o.(*corev1.Service).Spec.Selector["odd"] = "one" }},
		{"no label", &corev1.Service{}, service, func(o client.Object) { o.SetLabels(nil) }},
		{"another port", &corev1.Service{}, service, func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].TargetPort = intstr.FromInt32(1) }},
		{"moved", &corev1.Service{}, service, func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 1 }},
		{"leads to what does not serve", &corev1.Service{}, service, func(o client.Object) { o.(*corev1.Service).Spec.PublishNotReadyAddresses = true }},
		{"no pull secret", &corev1.ServiceAccount{}, named, func(o client.Object) { o.(*corev1.ServiceAccount).ImagePullSecrets = nil }},
		{"lets nobody in", &networkingv1.NetworkPolicy{}, named + "-grpc-server", func(o client.Object) { o.(*networkingv1.NetworkPolicy).Spec.Ingress = nil }},
		{"lets replicas out", &networkingv1.NetworkPolicy{}, named + "-grpc-server", func(o client.Object) {
			o.(*networkingv1.NetworkPolicy).Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}}
		}},
		{"lets all go", &policyv1.PodDisruptionBudget{}, named, func(o client.Object) {
			o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = new(intstr.FromInt32(2))
		}},
		{"both bounds", &policyv1.PodDisruptionBudget{}, named, func(o client.Object) {
			budget := o.(*policyv1.PodDisruptionBudget)
			budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, new(intstr.FromInt32(1))
		}},
	} {
		w.get(w, tt.name, tt.object)
		before := tt.object.DeepCopyObject()
		w.Eventually(func(g gomega.Gomega) {
			w.get(g, tt.name, tt.object)
			tt.damage(tt.object)
			g.Expect(w.Update(w.T.Context(), tt.object)).To(gomega.Succeed())
		}).Should(gomega.Succeed())
		w.Eventually(func(g gomega.Gomega) {
			w.get(g, tt.name, tt.object)
			g.Expect(content(tt.object)).To(gomega.Equal(content(before)))
		}).Should(gomega.Succeed(), "%T %s", tt.object, tt.reason)
		if s, is := before.(*corev1.Service); is && s.UID != tt.object.GetUID() {
			w.T.Errorf("%s: the Service is another one", tt.reason)
		}
	}
	for _, o := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: service}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: named}},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: named}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: named + "-grpc-server"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: named}},
	} {
		w.get(w, o.GetName(), o)
		gone := o.GetUID()
		if err := w.Delete(w.T.Context(), o, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			w.T.Fatal(err)
		}
		w.Eventually(func(g gomega.Gomega) types.UID {
			w.get(g, o.GetName(), o)
			return o.GetUID()
		}).ShouldNot(gomega.Equal(gone))
	}
	w.rolledOut(named, 2)
}

// content returns the part of an object that the test damages.
func content(o runtime.Object) any {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return []any{o.Labels, *o.Spec.Replicas, o.Spec.Template}
	case *corev1.Service:
		return []any{o.Labels, o.Spec}
	case *corev1.ServiceAccount:
		return []any{o.Labels, o.ImagePullSecrets}
	case *policyv1.PodDisruptionBudget:
		return o.Spec
	case *networkingv1.NetworkPolicy:
		return o.Spec
	default:
		return nil
	}
}

// TestRest checks that idle catalogs cause no writes.
func TestRest(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	const many = 8
	for i := range many {
		w.Create(catalog("shop-"+string(rune('a'+i)), registry.host+"/shop:1"))
	}
	w.supervise()
	for i := range many {
		w.rolledOut("shop-"+string(rune('a'+i)), 2)
	}
	looks := func() int {
		return len(w.Requests.Reads(testenv.Containing("/"+w.Namespace+"/"), func(r string) bool { return strings.HasSuffix(r, "/horizontalpodautoscalers") }))
	}
	before := w.EventuallyIdle(w.written)
	looked := looks()
	w.Consistently(func() []string { return w.written()[before:] }).Should(gomega.BeEmpty())
	if more := looks() - looked; more > 0 || looked == 0 {
		t.Errorf("looked for autoscalers %d times to begin with and %d times at rest", looked, more)
	}

	// A second supervisor finds nothing to change.
	w.supervise()
	w.Consistently(func() []string { return w.written()[before:] }).Should(gomega.BeEmpty())
}

// TestHostTakesOver starts with the objects of another controller.
func TestHostTakesOver(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	_, digest := registry.push("shop:1", nil)
	source := catalog("shop", registry.host+"/shop:1")
	w.Create(source)
	service := w.createOLMObjects(source)
	w.Eventually(func(g gomega.Gomega) {
		p := &corev1.Pod{}
		w.get(g, "shop-abcde", p)
		g.Expect(p.Status.Phase).To(gomega.Equal(corev1.PodRunning))
	}).Should(gomega.Succeed())

	// A ready pod must be behind the Service at all times.
	stop := w.watchReadyPods(service.Spec.Selector)
	w.supervise()
	w.rolledOut("shop", 2, runs(registry.host+"/shop@"+digest))
	w.Eventually(func(g gomega.Gomega) {
		var pods corev1.PodList
		g.Expect(w.List(t.Context(), &pods, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(pods.Items).To(gomega.HaveLen(2))
	}).Should(gomega.Succeed())
	if gaps := stop(); len(gaps) > 0 {
		t.Errorf("gaps in service: %d, first %s", len(gaps), gaps[0])
	}
	now := &corev1.Service{}
	w.get(w, "shop", now)
	if now.UID != service.UID || now.Spec.ClusterIP != service.Spec.ClusterIP {
		t.Error("the Service is another one")
	}
	if s := w.source(w, "shop"); s.Status.Message != "" {
		t.Errorf("status: %s", s.Status.Message)
	}
	policies := &networkingv1.NetworkPolicyList{}
	if err := w.List(t.Context(), policies, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(policies.Items) != 1 || !metav1.IsControlledBy(&policies.Items[0], source) || !metav1.IsControlledBy(now, source) {
		t.Errorf("NetworkPolicies %v, owners of the Service %v", policies.Items, now.OwnerReferences)
	}
	if now.Labels["olm.catalogSource"] != "shop" || now.Labels["olm.service-spec-hash"] == "old" {
		t.Errorf("labels of the Service %v", now.Labels)
	}
}

// createOLMObjects creates the objects that OLM creates for a catalog, and returns the Service.
func (w *world) createOLMObjects(source *operatorsv1alpha1.CatalogSource) *corev1.Service {
	w.T.Helper()
	owner := metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "shop", UID: source.UID,
		Controller: new(true), BlockOwnerDeletion: new(false),
	}
	theirs := func(named string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: named, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}}
	}
	// OLM does not set the controller flag in the owner references of Services, NetworkPolicies and
	// older pods.
	loosely := func(named string, labels map[string]string) metav1.ObjectMeta {
		m := theirs(named, labels)
		m.OwnerReferences[0].Controller = new(false)
		return m
	}
	managed := map[string]string{"olm.managed": "true"}
	pod := func(named string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: theirs(named, labels), Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "registry-server", Image: "old"}},
		}}
	}
	service := &corev1.Service{ObjectMeta: loosely("shop", map[string]string{"olm.managed": "true", "olm.service-spec-hash": "old"}), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"olm.catalogSource": "shop", "olm.managed": "true"},
		Ports:    []corev1.ServicePort{{Name: "grpc", Port: 50051, TargetPort: intstr.FromInt32(50051)}},
	}}
	w.Create(
		&corev1.ServiceAccount{ObjectMeta: theirs("shop", managed)}, service,
		&networkingv1.NetworkPolicy{ObjectMeta: loosely("shop-grpc-server", managed), Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"olm.catalogSource": "shop", "olm.managed": "true"}},
		}},
		&networkingv1.NetworkPolicy{ObjectMeta: loosely("shop-unpack-bundles", managed), Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{}}},
		pod("shop-abcde", map[string]string{"olm.catalogSource": "shop", "olm.managed": "true", "olm.pod-spec-hash": "old"}),
		&corev1.Pod{
			ObjectMeta: loosely("shop-older", map[string]string{"olm.catalogSource": "shop"}),
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "registry-server", Image: "older"}}},
		},
		pod("shop-update", map[string]string{"olm.catalogSource": "", "olm.managed": "true", "catalogsource.operators.coreos.com/update": "shop"}),
	)
	return service
}

// watchReadyPods lists the pods that a Service selects until stop is called. stop returns the
// failures, one for each time at which no pod was ready.
func (w *world) watchReadyPods(selector map[string]string) (stop func() []string) {
	done := make(chan struct{})
	result := make(chan []string)
	go func() {
		var gaps []string
		for {
			select {
			case <-done:
				result <- gaps
				return
			case <-time.After(20 * time.Millisecond):
			}
			var pods corev1.PodList
			if err := w.List(w.T.Context(), &pods, client.InNamespace(w.Namespace), client.MatchingLabels(selector)); err != nil {
				gaps = append(gaps, err.Error())
				continue
			}
			ready := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
				return p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
				})
			})
			if !ready {
				gaps = append(gaps, "no ready pod")
			}
		}
	}()
	return func() []string {
		close(done)
		return <-result
	}
}

// TestAnotherMake starts with a Deployment whose immutable selector differs.
func TestAnotherMake(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	_, digest := registry.push("shop:1", nil)
	source := catalog("shop", registry.host+"/shop:1")
	w.Create(source)
	labels := map[string]string{"olm.catalogSource": "shop", "olm.managed": "true", "older": "make"}
	old := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "shop", UID: source.UID, Controller: new(true),
		}}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "old"}}}},
		},
	}
	w.Create(old)
	w.Eventually(func(g gomega.Gomega) {
		w.get(g, "shop", old)
		g.Expect(old.Status.AvailableReplicas).To(gomega.Equal(int32(1)))
	}).Should(gomega.Succeed())
	w.supervise()
	d := w.rolledOut("shop", 2, runs(registry.host+"/shop@"+digest))
	if d.UID == old.UID {
		t.Error("the Deployment is the same")
	}
	w.Eventually(func(g gomega.Gomega) {
		var sets appsv1.ReplicaSetList
		g.Expect(w.List(t.Context(), &sets, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(sets.Items).To(gomega.HaveLen(1))
		var pods corev1.PodList
		g.Expect(w.List(t.Context(), &pods, client.InNamespace(w.Namespace))).To(gomega.Succeed())
		g.Expect(pods.Items).To(gomega.HaveLen(2))
	}).Should(gomega.Succeed())
}

// TestTroubles creates catalogs that cannot be served and one that can.
func TestTroubles(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "clerk", "secret")
	_, digest := registry.push("shop:1", nil)
	const server, spec, interval = "RegistryServerError", "SpecInvalidError", "InvalidIntervalError"
	good := registry.host + "/shop:1"
	taken := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	taken.Name = "taken"
	token := &corev1.Secret{Data: map[string][]byte{"token": []byte("t")}}
	token.Name = "token"
	w.Create(pullSecret("pull", registry.host, "clerk", "secret"), pullSecret("wrong", registry.host, "clerk", "wrong"), token, taken)
	strict := func(s *operatorsv1alpha1.CatalogSource) {
		s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{NodeSelector: map[string]string{"no": "node"}}
	}
	var checks []func()
	works := func(s *operatorsv1alpha1.CatalogSource) { secrets("pull")(s) }
	for _, tt := range []struct {
		source *operatorsv1alpha1.CatalogSource
		reason string
		want   []string
		runs   int32
	}{
		{source: catalog("good", good, works), runs: 2},
		{source: catalog("unknown", registry.host+"/gone:1", works), reason: server, want: []string{"couldn't ensure registry server - ", "/gone:1", "404 Not Found"}},
		{source: catalog("wrong-secret", good, secrets("wrong")), reason: server, want: []string{"401 Unauthorized", "spec.secrets"}},
		{source: catalog("no-secret", good, secrets("gone")), reason: server, want: []string{"401 Unauthorized", "Secret " + w.Namespace + "/gone does not exist"}},
		{source: catalog("one-secret", good, secrets("pull", "gone")), reason: spec, runs: 2, want: []string{"spec.secrets names Secret " + w.Namespace + "/gone, which does not exist"}},
		{source: catalog("odd-secret", good, secrets("pull", "token")), reason: spec, runs: 2, want: []string{"Secret " + w.Namespace + "/token, which is of type Opaque"}},
		{source: catalog("taken", good, works), reason: server, want: []string{"Service " + w.Namespace + "/taken exists and has another owner; delete it"}},
		{source: catalog("interval", good, works, polls("often")), reason: interval, runs: 2, want: []string{"error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: "}},
		{source: catalog("both", good, works, func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Address = "here:1" }), reason: spec, runs: 2, want: []string{"spec.image and spec.address are both set"}},
		{source: catalog("number", good, works, func(s *operatorsv1alpha1.CatalogSource) {
			s.Annotations = map[string]string{api.AnnotationReplicas: "three"}
		}), reason: spec, runs: 2, want: []string{`annotation chandlery.dev/replicas is "three"`}},
		{source: catalog("three", good, works, func(s *operatorsv1alpha1.CatalogSource) {
			s.Annotations = map[string]string{api.AnnotationReplicas: "3"}
		}), runs: 3},
		{source: catalog("one", good, works, func(s *operatorsv1alpha1.CatalogSource) {
			s.Annotations = map[string]string{api.AnnotationReplicas: "1"}
		}), runs: 1},
		{source: catalog("nowhere", good, works, strict), reason: server, want: []string{"pod nowhere-", "node affinity/selector"}},
		{source: catalog("odd", good, works, func(s *operatorsv1alpha1.CatalogSource) { s.Spec.SourceType = "odd" }), reason: spec, want: []string{"unknown sourcetype: odd"}},
		{source: catalog("unnamed", "Not An Image"), reason: spec, want: []string{`spec.image "Not An Image" names no image`, "write it as repository:tag"}},
		{source: catalog("1st", good, works), reason: spec, want: []string{"make a CatalogSource with another name"}},
		{source: catalog("bad-class", good, works, func(s *operatorsv1alpha1.CatalogSource) {
			s.Annotations = map[string]string{"operatorframework.io/priorityclass": "gone"}
		}), reason: server, want: []string{"no PriorityClass with name gone"}},
		{source: catalog("bad-selector", good, works, func(s *operatorsv1alpha1.CatalogSource) {
			s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{NodeSelector: map[string]string{"no": "such value!"}}
		}), reason: server, want: []string{"applying Deployment " + w.Namespace + "/bad-selector", "refuses spec.grpcPodConfig.nodeSelector", "such value!"}},
	} {
		w.Create(tt.source)
		checks = append(checks, func() {
			t.Run(tt.source.Name, func(t *testing.T) {
				w := w.in(t)
				if tt.runs > 0 {
					w.rolledOut(tt.source.Name, tt.runs, runs(registry.host+"/shop@"+digest))
				}
				w.becomes(tt.source.Name, func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
					g.Expect(string(s.Status.Reason)).To(gomega.Equal(tt.reason), s.Status.Message)
					for _, text := range tt.want {
						g.Expect(s.Status.Message).To(gomega.ContainSubstring(text))
					}
				})
			})
		})
	}
	w.supervise()
	for _, check := range checks {
		check()
	}
}

// TestConfigMap serves catalogs from ConfigMaps and changes them.
func TestConfigMap(t *testing.T) {
	w := newWorld(t)
	held := &corev1.ConfigMap{Data: map[string]string{
		"customResourceDefinitions": "[]",
		"clusterServiceVersions":    "- {apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: lamp.v1}, spec: {version: 1.0.0, install: {strategy: deployment}}}",
		"packages":                  "- {packageName: lamp, channels: [{name: stable, currentCSV: lamp.v1}]}",
	}}
	held.Name = "lamps"
	w.Create(held)
	fromMap := func(named, kind, configMap string) *operatorsv1alpha1.CatalogSource {
		return catalog(named, "", func(s *operatorsv1alpha1.CatalogSource) {
			s.Spec.SourceType, s.Spec.ConfigMap = operatorsv1alpha1.SourceType(kind), configMap
		})
	}
	w.Create(fromMap("lamps", "configmap", "lamps"), fromMap("inner", "internal", "lamps"), fromMap("gone", "configmap", "gone"))
	w.supervise()
	first := w.rolledOut("lamps", 2, runs("chandlery/registry:latest"))
	w.rolledOut("inner", 2)
	w.Eventually(func() []metav1.OwnerReference {
		w.get(w, "lamps", held)
		return held.OwnerReferences
	}).Should(gomega.HaveLen(2))
	w.becomes("lamps", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		ref := s.Status.ConfigMapResource
		g.Expect(ref).NotTo(gomega.BeNil())
		g.Expect(*ref).To(gomega.HaveField("ResourceVersion", held.ResourceVersion))
		g.Expect(ref.UID).To(gomega.Equal(held.UID))
		g.Expect(s.Status.Reason).To(gomega.BeEmpty(), s.Status.Message)
	})
	if first.Spec.Template.Labels["olm.configMapResourceVersion"] == "" {
		t.Error("replicas do not name the version that they serve")
	}
	if held.Labels["olm.managed"] != "false" {
		t.Errorf("labels of the ConfigMap %v", held.Labels)
	}
	w.becomes("gone", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(string(s.Status.Reason)).To(gomega.Equal("ConfigMapError"))
		g.Expect(s.Status.Message).To(gomega.ContainSubstring(`failed to get catalog config map gone: configmaps "gone" not found; create ConfigMap ` + w.Namespace + "/gone"))
	})
	w.changeConfigMap(held, first)
}

// changeConfigMap changes the content of a ConfigMap that replicas serve.
func (w *world) changeConfigMap(held *corev1.ConfigMap, first *appsv1.Deployment) {
	t := w.T
	t.Helper()
	// Invalid content does not change the running replicas.
	good := held.Data["packages"]
	held.Data["packages"] = "- {packageName: lamp, channels: [{name: stable, currentCSV: lamp.v9}]}"
	if err := w.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.becomes("lamps", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(string(s.Status.Reason)).To(gomega.Equal("ConfigMapError"))
		g.Expect(s.Status.Message).To(gomega.ContainSubstring("lamp.v9"))
		g.Expect(s.Status.Message).To(gomega.HaveSuffix("the last valid content is still served"))
	})
	if d := w.rolledOut("lamps", 2); d.Generation != first.Generation {
		t.Error("content that cannot be served was rolled out")
	}
	// A replica that starts now serves the last valid content.
	if copied := w.mounted(first); copied.Data["packages"] != good || !*copied.Immutable || len(copied.Labels) == 0 {
		t.Errorf("replicas serve %+v", copied)
	}
	// Valid content is rolled out.
	held.Data["packages"] = strings.Replace(good, "stable", "fast", 1)
	if err := w.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	last := w.rolledOut("lamps", 2, func(g gomega.Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Labels["olm.configMapResourceVersion"]).To(gomega.Equal(held.ResourceVersion))
	})
	copied := w.mounted(last)
	if diff := cmp.Diff(held.Data, copied.Data); diff != "" {
		t.Errorf("replicas serve (-want +got):\n%s", diff)
	}
	// A copy exists as long as it is in use.
	copies := func() (named []string) {
		var all corev1.ConfigMapList
		w.Expect(w.List(t.Context(), &all, client.InNamespace(w.Namespace), client.MatchingLabels{"olm.catalogSource": "lamps"})).To(gomega.Succeed())
		for i := range all.Items {
			named = append(named, all.Items[i].Name)
		}
		return named
	}
	w.Eventually(copies).Should(gomega.ConsistOf(copied.Name))
	if err := w.Delete(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	w.Eventually(copies).Should(gomega.ConsistOf(copied.Name))
	w.Consistently(copies).Should(gomega.ConsistOf(copied.Name))
}

// mounted reads the ConfigMap that replicas mount.
func (w *world) mounted(d *appsv1.Deployment) *corev1.ConfigMap {
	w.T.Helper()
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			found := &corev1.ConfigMap{}
			w.get(w, v.ConfigMap.Name, found)
			return found
		}
	}
	w.T.Fatal("replicas mount no ConfigMap")
	return nil
}

// TestTemplate resolves a template and reports unknown variables.
func TestTemplate(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	_, digest := registry.push("shop:v1.37", nil)
	template := func(text string) func(*operatorsv1alpha1.CatalogSource) {
		return func(s *operatorsv1alpha1.CatalogSource) {
			s.Annotations = map[string]string{"olm.catalogImageTemplate": registry.host + text}
		}
	}
	w.Create(catalog("shop", "old", template("/shop:v{kube_major_version}.{kube_minor_version}")), catalog("odd", registry.host+"/shop:v1.37", template("/shop:{odd}")))
	w.supervise()
	w.rolledOut("shop", 2, runs(registry.host+"/shop@"+digest))
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(s.Spec.Image).To(gomega.Equal(registry.host + "/shop:v1.37"))
		g.Expect(condition(s, "TemplatesHaveResolved")).To(gomega.Equal("True AllTemplatesResolved catalog image reference was successfully resolved"))
		g.Expect(condition(s, "ResolvedImage")).To(gomega.Equal("True AllTemplatesResolved " + s.Spec.Image))
	})
	w.rolledOut("odd", 2)
	w.becomes("odd", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(condition(s, "TemplatesHaveResolved")).To(gomega.Equal("False UnableToResolve cannot construct catalog image reference, because one or more template(s) has improper syntax"))
		s.Annotations = nil
		g.Expect(w.Update(t.Context(), s)).To(gomega.Succeed())
	})
	w.becomes("odd", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(condition(s, "TemplatesHaveResolved") + condition(s, "ResolvedImage")).To(gomega.BeEmpty())
	})
}

// TestRegistryOnContent serves the content of images with Chandlery's registry.
func TestRegistryOnContent(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	_, digest := registry.push("shop:1", map[string]string{"operators.operatorframework.io.index.configs.v1": "/catalog"})
	w.Create(catalog("shop", registry.host+"/shop:1"))
	w.supervise(func(h *catalogsource.Config) { h.Server = deployment.ServerRegistry })
	d := w.rolledOut("shop", 2, runs("chandlery/registry:latest"))
	init := d.Spec.Template.Spec.InitContainers
	if len(init) != 2 || init[1].Image != registry.host+"/shop@"+digest || !slices.Contains(init[1].Args, "--catalog.from=/catalog") {
		t.Errorf("init containers %+v", init)
	}
}
