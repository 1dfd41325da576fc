package suite_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
)

// packaged sets the component label of a version, as an InstallPlan does.
func (w *world) packaged(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Labels = map[string]string{"operators.coreos.com/kettle." + w.Namespace: ""}
}

func (w *world) wish(config *operatorsv1alpha1.SubscriptionConfig) *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "my-kettle"},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: "shop", CatalogSourceNamespace: w.Namespace, Package: "kettle", Config: config,
		},
	}
}

func (w *world) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{}
	w.Expect(w.Get(w.T.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}, d)).To(gomega.Succeed())
	return d
}

// change changes an object and retries after conflicts.
func (w *world) change(o client.Object, change func()) {
	w.T.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.T.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return w.Update(w.T.Context(), o)
	}).Should(gomega.Succeed())
}

func TestDeploymentsAreAsTheSubscriptionAsks(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	sub := w.wish(&operatorsv1alpha1.SubscriptionConfig{
		Env: []corev1.EnvVar{{Name: "HEAT", Value: "low"}}, Annotations: map[string]string{"team": "tea"},
	})
	w.Create(w.group("own", w.Namespace), sub, w.kettle("kettle.v1", w.packaged))
	w.succeeds("kettle.v1")

	d := w.deployment()
	w.Expect(d.Generation).To(gomega.Equal(int64(1)), "the first Deployment was not made as it is to stay")
	w.Expect(d.Annotations).To(gomega.HaveKeyWithValue("team", "tea"))
	w.Expect(d.Spec.Template.Spec.Containers[0].Env).To(gomega.ContainElement(corev1.EnvVar{Name: "HEAT", Value: "low"}))

	w.change(sub, func() { sub.Annotations = map[string]string{"chandlery.dev/config": `{"replicas":2}`} })
	w.Eventually(func() int32 { return *w.deployment().Spec.Replicas }).Should(gomega.Equal(int32(2)))
	w.succeeds("kettle.v1")

	// An unreadable annotation is reported, and changes nothing that runs.
	before := w.deployment()
	w.change(sub, func() { sub.Annotations["chandlery.dev/config"] = `{"replicas":"many"}` })
	w.Eventually(func() string { return w.csv("kettle.v1").Annotations[api.AnnotationCause] }).
		Should(gomega.ContainSubstring("the Deployments are not updated: annotation chandlery.dev/config of Subscription"))
	w.Expect(w.csv("kettle.v1").Status.Phase).To(gomega.Equal(operatorsv1alpha1.CSVPhaseSucceeded))
	w.Expect(w.deployment().Generation).To(gomega.Equal(before.Generation))

	w.change(sub, func() { sub.Spec.Config, sub.Annotations = nil, nil })
	w.Eventually(func() []corev1.EnvVar { return w.deployment().Spec.Template.Spec.Containers[0].Env }).Should(gomega.ContainElement(corev1.EnvVar{Name: "HEAT", Value: "high"}))
	w.Expect(w.deployment().Annotations).NotTo(gomega.HaveKey("team"))
}

func TestInstallsNothingFromSettingsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	sub := w.wish(nil)
	sub.Annotations = map[string]string{"chandlery.dev/config": "{"}
	w.Create(w.group("own", w.Namespace), sub, w.kettle("kettle.v1", w.packaged))
	csv := w.reaches("kettle.v1", operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonNeedsReinstall)
	w.Expect(csv.Status.Message).To(gomega.Equal("calculated deployment install is bad"))
	w.says(csv, "annotation chandlery.dev/config of Subscription")
	w.Consistently(func() string { return w.csv("kettle.v1").ResourceVersion }).
		WithTimeout(2 * time.Second).Should(gomega.Equal(csv.ResourceVersion))

	w.change(sub, func() { sub.Annotations = nil })
	w.succeeds("kettle.v1")
}

// TestSteadyStateWritesNothing checks that events cause no writes for a running operator.
func TestSteadyStateWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.supervise()
	sub := w.wish(nil)
	w.Create(w.group("own", w.Namespace), sub, w.kettle("kettle.v1", w.packaged))
	w.succeeds("kettle.v1")
	versions := func() []string {
		return []string{w.csv("kettle.v1").ResourceVersion, string(w.deployment().UID), w.deployment().Labels["olm.deployment-spec-hash"]}
	}
	before := versions()
	for range 3 {
		w.change(sub, func() { sub.Labels = map[string]string{"touched": time.Now().Format("150405.000")} })
	}
	w.Consistently(versions).WithTimeout(3 * time.Second).Should(gomega.Equal(before))
}
