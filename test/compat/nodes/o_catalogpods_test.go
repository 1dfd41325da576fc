package nodes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/pause"
)

// TestCatalogPods checks the pods of catalogs.
func TestCatalogPods(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "O1", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c)
		found := pods(t, c, "shelf")
		if len(found) == 0 {
			t.Fatal("no pod has the label")
		}
		for i := range found {
			p := &found[i]
			owner := metav1.GetControllerOf(p)
			_, updates := p.Labels["catalogsource.operators.coreos.com/update"]
			if p.Labels["olm.managed"] != "true" || owner == nil || owner.Kind != "ReplicaSet" || updates {
				t.Errorf("pod %s: labels %v, owner %+v", p.Name, p.Labels, owner)
			}
		}
	})
	compattest.Check(t, "O2", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c)
		old := pods(t, c, "shelf")[0]
		if err := c.Delete(t.Context(), &old); err != nil {
			t.Fatal(err)
		}
		c.Eventually(10*time.Second, func() string {
			if !slices.ContainsFunc(pods(t, c, "shelf"), func(p corev1.Pod) bool { return p.UID != old.UID }) {
				return "there is no other pod"
			}
			return ""
		})
	})
}

// TestObjectsOfCatalogPods checks the objects beside the pods of catalogs.
func TestObjectsOfCatalogPods(t *testing.T) {
	t.Parallel()
	policy := func(c *compattest.Cluster, name string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}}
	}
	compattest.Check(t, "O3", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c)
		found := policy(c, "shelf-grpc-server")
		if left := c.Read(found); left != "" {
			t.Fatal(left)
		}
		old := found.UID
		if err := c.Delete(t.Context(), found); err != nil {
			t.Fatal(err)
		}
		c.Eventually(10*time.Second, func() string {
			if left := c.Read(found); left != "" {
				return left
			}
			if found.UID == old {
				return "it is the old one"
			}
			return ""
		})
	})
	compattest.Check(t, "O4", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c)
		found := policy(c, "shelf-grpc-server")
		c.Read(found)
		before := c.Manifest(found.Spec)
		update(t, c, found, func() { found.Spec.Ingress, found.Spec.PolicyTypes = nil, []networkingv1.PolicyType{"Egress"} })
		c.Eventually(10*time.Second, func() string {
			if left := c.Read(found); left != "" {
				return left
			}
			if now := c.Manifest(found.Spec); now != before {
				return now + ", before " + before
			}
			return ""
		})
	})
	compattest.Check(t, "O5", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c)
		own := policy(c, "shelf-unpack-bundles")
		c.Make(own)
		c.AtRest(10*time.Second, own)
	})
	compattest.Check(t, "O6", func(t *testing.T, c *compattest.Cluster) {
		want := operatorsv1alpha1.GrpcPodConfig{
			NodeSelector:      map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/hostname": bed(t).Nodes()[0]},
			Tolerations:       []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}},
			PriorityClassName: new("system-cluster-critical"),
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}}}}},
			}}},
		}
		polled(t, c, func(s *operatorsv1alpha1.CatalogSource) { s.Spec.GrpcPodConfig = &want })
		spec := pods(t, c, "shelf")[0].Spec
		if c.Manifest(spec.NodeSelector) != c.Manifest(want.NodeSelector) || spec.PriorityClassName != *want.PriorityClassName ||
			c.Manifest(spec.Affinity.NodeAffinity) != c.Manifest(want.Affinity.NodeAffinity) || !slices.Contains(spec.Tolerations, want.Tolerations[0]) {
			t.Errorf("the pod has %s", c.Manifest(spec))
		}
	})
}

// TestSecurityOfCatalogPods checks security contexts, and a catalog that cannot be served.
func TestSecurityOfCatalogPods(t *testing.T) {
	t.Parallel()
	restricted := func(p corev1.Pod) bool {
		context, container := p.Spec.SecurityContext, p.Spec.Containers[0].SecurityContext
		return context != nil && context.RunAsNonRoot != nil && *context.RunAsNonRoot && context.SeccompProfile != nil && context.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault &&
			container != nil && container.AllowPrivilegeEscalation != nil && !*container.AllowPrivilegeEscalation &&
			container.Capabilities != nil && slices.Contains(container.Capabilities.Drop, "ALL")
	}
	secured := func(level operatorsv1alpha1.SecurityConfig) func(*operatorsv1alpha1.CatalogSource) {
		return func(s *operatorsv1alpha1.CatalogSource) {
			s.Spec.GrpcPodConfig = &operatorsv1alpha1.GrpcPodConfig{SecurityContextConfig: level}
		}
	}
	compattest.Check(t, "O7-legacy", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c, secured(operatorsv1alpha1.Legacy))
		if p := pods(t, c, "shelf")[0]; restricted(p) || !equality.Semantic.DeepEqual(p.Spec.SecurityContext, &corev1.PodSecurityContext{}) {
			t.Errorf("the security context is not empty: %s", c.Manifest(p.Spec))
		}
	})
	compattest.Check(t, "O7-restricted", func(t *testing.T, c *compattest.Cluster) {
		polled(t, c, secured(operatorsv1alpha1.Restricted))
		if p := pods(t, c, "shelf")[0]; !restricted(p) {
			t.Errorf("the pod is not restricted: %s", c.Manifest(p.Spec))
		}
	})
	compattest.Check(t, "O7-namespace", func(t *testing.T, c *compattest.Cluster) {
		source, _ := polled(t, c)
		if p := pods(t, c, "shelf")[0]; restricted(p) {
			t.Errorf("the pod is restricted: %s", c.Manifest(p.Spec))
		}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
		update(t, c, ns, func() { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
		c.Eventually(compattest.Patience, func() string {
			found := pods(t, c, "shelf")
			if len(found) != 1 || !restricted(found[0]) {
				return fmt.Sprintf("%d pods, not all restricted; %+v", len(found), source.Status.Conditions)
			}
			return ""
		})
	})
	compattest.Check(t, "O8", func(t *testing.T, c *compattest.Cluster) {
		broken, err := images.Broken(compattest.Registry(t))
		if err != nil {
			t.Fatal(err)
		}
		tag := bed(t).Images.Address() + "/" + c.Namespace + "/shelf:v1"
		if _, err := images.Push(t.Context(), tag, broken); err != nil {
			t.Fatal(err)
		}
		source := &operatorsv1alpha1.CatalogSource{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "shelf"},
			Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Image: tag},
		}
		c.Make(source)
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(source); left != "" {
				return left
			}
			condition := apimeta.FindStatusCondition(source.Status.Conditions, api.ConditionProgressing)
			if condition == nil || condition.Status != metav1.ConditionFalse || !contains(condition.Message, "belongs to a package that the catalog does not declare") {
				return fmt.Sprintf("Progressing is %+v", condition)
			}
			return ""
		})
	})
}

// TestConfigMapOwnersOnNodes checks the rules about owners of ConfigMaps that need a serving catalog.
func TestConfigMapOwnersOnNodes(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "D3", func(t *testing.T, c *compattest.Cluster) {
		_, source := serve(t, c, "goods", oldLamp(t, c).data(t))
		if err := c.Delete(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		again := configMap(c, "goods", lamp(t, c).data(t))
		c.Eventually(30*time.Second, func() string {
			again.ResourceVersion, again.UID = "", ""
			if err := c.Create(t.Context(), again); err != nil {
				return err.Error()
			}
			return ""
		})
		next, began := internal(c, "goods", "goods"), time.Now()
		c.Make(next)
		ready(c, next, time.Minute)
		served(c, "lamp", "main")
		if after := time.Since(began); after > compattest.Limit(compattest.Stretched(time.Minute), 2*compattest.Patience) {
			t.Errorf("the new content was served after %s", after)
		}
		c.Read(next)
		if next.Status.Reason != "" {
			t.Errorf("%s: %s", next.Status.Reason, next.Status.Message)
		}
	})
	compattest.Check(t, "D4", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "goods", lamp(t, c).data(t))
		other := internal(c, "other", "goods")
		c.Make(other)
		ready(c, other, compattest.Patience)
		if err := c.Delete(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); pause.For(t.Context(), 200*time.Millisecond) {
			c.Read(other)
			if left := unready(other) + c.Read(held); left != "" {
				t.Fatal(left)
			}
		}
		if len(held.OwnerReferences) != 1 || held.OwnerReferences[0].UID != other.UID {
			t.Errorf("the owners are %+v", held.OwnerReferences)
		}
		c.Subscribe("other", "lamp")
		installed(c, "lamp.v1.1.0")
	})
	compattest.Check(t, "D10", func(t *testing.T, c *compattest.Cluster) {
		held, source := serve(t, c, "goods", lamp(t, c).data(t))
		settled(c, source)
		replica := pods(t, c, "goods")[0].UID
		const every, most = 10 * time.Second, 10
		// The first reference is no restoration.
		restored, period := -1, max(c.Rest(), 65*time.Second)
		for begin := time.Now(); time.Since(begin) < period; {
			update(t, c, held, func() {
				if len(held.OwnerReferences) > 0 {
					restored++
				}
				held.OwnerReferences = nil
			})
			for next := time.Now().Add(every); time.Now().Before(next); pause.For(t.Context(), time.Second) {
				if left := c.Read(source) + unready(source); left != "" {
					t.Fatal(left)
				}
			}
		}
		if limit := min(most, int(period/time.Minute)+1); restored < 1 || restored > limit {
			t.Errorf("the reference was restored %d times, at most %d", restored, limit)
		}
		exhausted := eventsOf(c, source, "ConfigMapOwnerRemoved")
		if complete := period > (most+1)*time.Minute; complete && (len(exhausted) != 1 || !contains(exhausted[0].Message, api.AnnotationKeepConfigMap+"=true")) {
			t.Errorf("the Events are %+v", exhausted)
		}
		if found := pods(t, c, "goods"); len(found) != 1 || found[0].UID != replica {
			t.Error("the replica was replaced")
		}
	})
}
