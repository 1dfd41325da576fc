package compat_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/pause"
)

// deadlineSlack bounds how much later than its deadline a plan fails. OLM retries every five seconds, later if it is
// busy.
func deadlineSlack() time.Duration {
	return compattest.Stretched(compattest.Limit(2*time.Second, 15*time.Second))
}

// awaiting returns a plan whose steps each need a ClusterServiceVersion that does not exist.
func (f *planFixture) awaiting(name string, csvs ...string) *operatorsv1alpha1.InstallPlan {
	f.t.Helper()
	// OLM sets a condition, whose time then stays, while the OperatorGroup has no targets.
	awaitTargets(f.Cluster)
	var steps []*operatorsv1alpha1.Step
	for _, csv := range csvs {
		k := kindNamed("ConfigMap")
		manifest := setMetadata(setMetadata(f.manifestOf(k), "ownerReferences", []any{ownerReference(csv, "")}), "name", "for-"+csv)
		steps = append(steps, f.step(k, manifest, unresolved, func(s *operatorsv1alpha1.Step) { s.Resource.Name = "for-" + csv }))
	}
	return f.plan(name, steps...)
}

// neverFails watches a plan, and returns a function that fails if the plan was ever Failed.
func (f *planFixture) neverFails(p *operatorsv1alpha1.InstallPlan) (check func()) {
	f.t.Helper()
	w, err := f.Watch(f.t.Context(), &operatorsv1alpha1.InstallPlanList{}, client.InNamespace(p.Namespace), client.MatchingFields{"metadata.name": p.Name})
	if err != nil {
		f.t.Fatal(err)
	}
	failed, ended := "", make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if seen, is := e.Object.(*operatorsv1alpha1.InstallPlan); is && seen.Status.Phase == operatorsv1alpha1.InstallPlanPhaseFailed {
				failed = seen.Status.Message
			}
		}
	}()
	return func() {
		f.t.Helper()
		w.Stop()
		<-ended
		if failed != "" {
			f.t.Errorf("InstallPlan %s was Failed: %s", p.Name, failed)
		}
	}
}

// failsInTime waits until a plan fails with texts, and checks that it was at its deadline.
func (f *planFixture) failsInTime(p *operatorsv1alpha1.InstallPlan, texts ...string) {
	f.t.Helper()
	f.fails(retryLimit(), p, texts...)
	f.inTime(p, deadlineSlack())
}

// inTime fails unless a plan failed at its deadline, or later by some slack. Times of the API are whole seconds, and so are
// retry timeouts: a plan that fails earlier fails at an earlier second.
func (f *planFixture) inTime(p *operatorsv1alpha1.InstallPlan, slack time.Duration) {
	f.t.Helper()
	window := compattest.RetryWindow()
	if after := failedAfter(p); after < window || after > window+slack {
		f.t.Errorf("InstallPlan %s failed %s after its start, want %s", p.Name, after, window)
	}
}

// TestDeadlines checks when a plan fails.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	window := compattest.RetryWindow()
	compattest.Check(t, "I1", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.retrying(p, "ghost")
		f.failsInTime(p, "ghost")
	})
	compattest.Check(t, "I2-10m", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		pause.For(t.Context(), window-3*time.Second)
		f.retrying(p, "ghost")
		f.failsInTime(p, "ghost")
	})
	compattest.Check(t, "I3", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.retrying(p, "ghost")
		text := strings.TrimPrefix(p.Status.Message, "retrying execution due to error: ")
		f.fails(retryLimit(), p, text)
		if !strings.HasPrefix(p.Status.Message, text) || !strings.HasPrefix(p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).Message, text) {
			t.Errorf("the messages do not begin with %q: %s", text, f.Manifest(p.Status))
		}
	})
	compattest.Check(t, "I4", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost", "wraith")
		f.retrying(p, "ghost")
		first := p.Status.StartTime
		pause.For(t.Context(), window/2)
		f.Make(f.CSV("ghost"))
		f.retrying(p, "wraith")
		f.failsInTime(p, "wraith")
		// The limit is one retry timeout for each step, and one more.
		if installing := p.Status.GetCondition(operatorsv1alpha1.InstallPlanInstalled).LastTransitionTime.Sub(first.Time); installing > 3*window {
			t.Errorf("the plan was Installing for %s, want at most %s", installing, 3*window)
		}
		if moved := p.Status.StartTime.Sub(first.Time); moved < window/2-time.Second {
			t.Errorf("status.startTime moved by %s, so the second step did not have the whole retry timeout", moved)
		}
	})
	compattest.Check(t, "I5", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		neverFailed := f.neverFails(p)
		f.retrying(p, "ghost")
		pause.For(t.Context(), time.Until(p.Status.StartTime.Add(window-2*time.Second)))
		f.Make(f.CSV("ghost"))
		f.completes(p)
		neverFailed()
	})
}

// TestFailedPlans checks plans that continue after a failure, or that fail for other reasons than a deadline.
func TestFailedPlans(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "I6", func(t *testing.T, c *compattest.Cluster) {
		f := newPlanFixture(t, c)
		p := f.awaiting("by-hand", "ghost")
		f.fails(retryLimit(), p, "ghost")
		f.Make(f.CSV("ghost"))
		f.completes(p)
	})
	k := kindNamed("Service")
	refused := func(id, text string, refuse func(*testing.T, *planFixture)) {
		compattest.Check(t, id, func(t *testing.T, c *compattest.Cluster) {
			f := newPlanFixture(t, c)
			refuse(t, f)
			p := f.plan("by-hand", f.step(k, f.manifestOf(k)))
			neverFailed := f.neverFails(p)
			f.retrying(p, text)
			pause.For(t.Context(), max(compattest.RetryWindow()+deadlineSlack(), c.Rest()))
			f.retrying(p, text)
			neverFailed()
		})
	}
	refused("I7", `cannot create resource "services" in API group ""`, func(t *testing.T, f *planFixture) {
		t.Helper()
		newInstallerAccount(t, f.Cluster, ruleFor("", "configmaps", "get")).use()
	})
	refused("I7-Quota", "exceeded quota: few", func(_ *testing.T, f *planFixture) { f.limitServices() })
	refused("I7-Webhook", "denied the request: not on weekends", func(t *testing.T, f *planFixture) {
		t.Helper()
		denyServices(t, f.Cluster)
	})
	compattest.Check(t, "I10", func(t *testing.T, c *compattest.Cluster) {
		f, k := newPlanFixture(t, c), kindNamed("Role")
		p := f.plan("by-hand", f.step(k, f.manifestOf(kindNamed("ConfigMap"))))
		f.refuses(p, "Role", "ConfigMap")
	})
	compattest.Check(t, "I12", func(t *testing.T, c *compattest.Cluster) {
		f, k, versions := newPlanFixture(t, c), kindNamed("CustomResourceDefinition"), kindNamed("ClusterServiceVersion")
		f.complete(f.plan("first", f.step(k, f.manifestOf(k))))
		manifest := strings.Replace(f.Manifest(f.manifestOf(k)), `"name":"v1"`, `"name":"v2"`, 1)
		unsafe := f.step(k, nil, func(s *operatorsv1alpha1.Step) { s.Resource.Manifest = manifest })
		p := f.plan("second", f.step(versions, f.manifestOf(versions)), unsafe)
		f.fails(retryLimit(), p, "risk of data loss updating", "no ClusterServiceVersion was created")
		if after, window := failedAfter(p), compattest.RetryWindow(); after > window+deadlineSlack() {
			t.Errorf("the plan failed %s after its start, want at most %s", after, window)
		}
		f.absent(f.objectOf(versions))
	})
}

// limitServices creates a quota that allows no Services, and waits until it is in effect.
func (f *planFixture) limitServices() {
	f.t.Helper()
	none := corev1.ResourceList{corev1.ResourceServices: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	f.Make(quota)
	f.Eventually(compattest.Patience, func() string {
		if left := f.Read(quota); left != "" || len(quota.Status.Hard) > 0 {
			return left
		}
		return "the quota has no status"
	})
}

// denyServices makes a webhook deny new Services in the namespace of the case, and waits until it is in effect.
func denyServices(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("reading the review: %v", err), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "not on weekends",
		}}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c.Make(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: c.Namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "weekends.compat.example", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: c.Namespace}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{webhookRule("", "services")},
		}},
	})
	trial := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "trial"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	c.Eventually(compattest.Patience, func() string {
		if err := c.Create(t.Context(), trial.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Sprintf("the answer is %v", err)
		}
		return ""
	})
}

// TestManyDeadlines checks when many plans fail. It is not parallel, because the load would disturb other cases.
func TestManyDeadlines(t *testing.T) {
	compattest.CheckAlone(t, "I11", func(t *testing.T, c *compattest.Cluster) {
		// A namespace keeps five plans that have ended.
		var plans []*operatorsv1alpha1.InstallPlan
		f := &planFixture{stepObjects: stepObjects{c, t}}
		for range 10 {
			in := *c
			in.Namespace = c.NewNamespace()
			in.Make(&operatorsv1.OperatorGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{in.Namespace}},
			})
			for i := range 5 {
				plans = append(plans, (&planFixture{stepObjects: stepObjects{&in, t}, crane: c.CSV("crane.v1")}).awaiting(fmt.Sprintf("by-hand-%d", i), fmt.Sprintf("ghost-%d", i)))
			}
		}
		// OLM retries the plans one after the other.
		slack := compattest.Stretched(compattest.Limit(2*time.Second, 45*time.Second))
		for _, p := range plans {
			f.fails(retryLimit(), p, "ghost")
			f.inTime(p, slack)
		}
	})
}
