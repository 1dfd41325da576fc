package packagemanifest

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestAvailability reconciles different APIServices and compares the metric. Its alert must be silent without one.
func TestAvailability(t *testing.T) {
	const namespace, absent = "chandlery-system", -1
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: supervisorName}}
	apiService := func(service, status string) *unstructured.Unstructured {
		u := installation{endpoint: installationOf(Auto).endpoint}.apiService(namespace, nil, nil)
		if err := unstructured.SetNestedField(u.Object, service, "spec", "service", "name"); err != nil {
			t.Fatal(err)
		}
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": status}}}
		return u
	}
	own := installationOf(Auto).endpoint.ServiceName()
	for name, test := range map[string]struct {
		disabled bool
		objects  []client.Object
		want     float64
	}{
		"own, available":         {false, []client.Object{deployment, apiService(own, "True")}, 1},
		"own, unavailable":       {false, []client.Object{deployment, apiService(own, "False")}, 0},
		"another, available":     {false, []client.Object{deployment, apiService("packageserver-service", "True")}, 1},
		"another, unavailable":   {true, []client.Object{deployment, apiService("packageserver-service", "False")}, 0},
		"missing":                {false, []client.Object{deployment}, 0},
		"missing, uninstalled":   {false, nil, absent},
		"missing, disabled":      {true, []client.Object{deployment}, absent},
		"unavailable, no server": {false, []client.Object{apiService(own, "False")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}, test.objects...)
			c, _ := fixtures.RecordingClient(t, objects...)
			r := &registrar{
				installation: installationOf(Auto), client: c, live: c, clock: clock.RealClock{}, namespace: namespace, disabled: test.disabled,
				ready: func() bool { return true }, address: "localhost:0",
			}
			available.Reset()
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
			got := float64(absent)
			if testutil.CollectAndCount(available) > 0 {
				got = testutil.ToFloat64(available)
			}
			if got != test.want {
				t.Errorf("the metric is %g, want %g", got, test.want)
			}
		})
	}
}

// TestCertificateExpiry reads Secrets of the server and compares the metric.
func TestCertificateExpiry(t *testing.T) {
	const namespace = "chandlery-system"
	endpoint := installationOf(Auto).endpoint
	issued, err := webhook.Issue(endpoint, namespace, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data map[string][]byte
		want float64
	}{
		"issued":     {issued.Data(), float64(issued.NotAfter.Unix())},
		"unreadable": {map[string][]byte{corev1.TLSCertKey: []byte("none")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := fixtures.RecordingClient(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: endpoint.SecretName()}, Data: test.data,
			})
			s := &servingCertificate{reader: c, namespace: namespace, name: endpoint.SecretName()}
			if err := s.reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := testutil.ToFloat64(certificateExpiry); got != test.want {
				t.Errorf("the metric is %g, want %g", got, test.want)
			}
		})
	}
}

// TestResetMetrics checks that stopped controllers leave no series.
func TestResetMetrics(t *testing.T) {
	record(types.NamespacedName{Namespace: "metrics", Name: "shop"}, 3, 1)
	available.WithLabelValues().Set(0)
	ResetMetrics()
	p, b, a := testutil.CollectAndCount(packageCount), testutil.CollectAndCount(brokenChannels), testutil.CollectAndCount(available)
	if p != 0 || b != 0 || a != 0 {
		t.Errorf("%d, %d and %d series are left", p, b, a)
	}
}
