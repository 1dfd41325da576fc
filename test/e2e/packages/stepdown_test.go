package packages_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/testenv"
)

// TestSteppingDown starts OLM beside supervisors. They step down and are not ready any more, so that their APIService must
// go: without a server, it prevents the deletion of every namespace. It returns when OLM is gone. Supervisors that do not lead
// report no Subscriptions, and the next leader counts each of them once.
func TestSteppingDown(t *testing.T) {
	s := open(t)
	s.registered(true)
	s.Create(&operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "lamp"},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "shop", CatalogSourceNamespace: s.Namespace, Package: "lamp0"},
	})
	s.counts(s.leader(""), 1)
	if err := olmobjects.New(s.Client).InstallOLM(t.Context()); err != nil {
		t.Fatal(err)
	}
	removeOLM := func() {
		if err := s.DeleteAllOf(context.WithoutCancel(t.Context()), &appsv1.Deployment{}, client.InNamespace(olmobjects.Namespace)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(removeOLM)
	testenv.Until(t, testenv.Patience, "the leader to step down", func(ctx context.Context) string {
		lease := &coordinationv1.Lease{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
			return err.Error()
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	})
	for _, p := range s.pods {
		s.probes(p, http.StatusInternalServerError)
		s.mark(p, false)
		s.counts(p, 0)
	}
	s.registered(false)
	s.deletesNamespace()

	removeOLM()
	s.counts(s.leader(""), 1)
	for _, p := range s.pods {
		s.probes(p, http.StatusOK)
		s.mark(p, true)
	}
	s.registered(true)
}

// registered waits until the APIService exists, or does not exist.
func (s *scene) registered(want bool) {
	s.T.Helper()
	testenv.Until(s.T, testenv.Patience, "the registration of PackageManifests to change", func(ctx context.Context) string {
		live := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"}}
		err := s.Get(ctx, client.ObjectKey{Name: "v1.packages.operators.coreos.com"}, live)
		switch {
		case err == nil && !want:
			return "the APIService exists"
		case err != nil && (want || !apierrors.IsNotFound(err)):
			return err.Error()
		}
		return ""
	})
}

// counts waits until a supervisor reports a number of Subscriptions, and that all of them wait.
func (s *scene) counts(p *pod, want int) {
	s.T.Helper()
	testenv.Until(s.T, testenv.Patience, "the metrics of "+p.identity+" to change", func(ctx context.Context) string {
		families, err := p.scrape(ctx)
		if err != nil {
			return err.Error()
		}
		counted := 0.0
		for _, m := range families["subscription_count"].GetMetric() {
			counted += m.GetGauge().GetValue()
		}
		waiting := len(families["chandlery_subscription_waiting_since_timestamp_seconds"].GetMetric())
		if counted != float64(want) || waiting != want {
			return fmt.Sprintf("%v Subscriptions, %d wait, want %d", counted, waiting, want)
		}
		return ""
	})
}

// scrape returns the metrics of a supervisor.
func (p *pod) scrape(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("preparing to read metrics: %w", err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { _ = reply.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return families, nil
}

// deletesNamespace creates a namespace, and waits for a minute at most until it can be deleted.
func (s *scene) deletesNamespace() {
	s.T.Helper()
	bystander := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bystander-"}}
	s.Create(bystander)
	if err := s.Delete(s.T.Context(), bystander); err != nil {
		s.T.Fatal(err)
	}
	testenv.Until(s.T, time.Minute, "namespace "+bystander.Name+" to be deleted", func(ctx context.Context) string {
		if err := s.Get(ctx, client.ObjectKeyFromObject(bystander), bystander); !apierrors.IsNotFound(err) {
			return "it exists"
		}
		return ""
	})
}
