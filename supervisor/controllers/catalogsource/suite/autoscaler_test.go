package suite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestAutoscaler scales a catalog up and down with the Kubernetes HPA controller. The annotation of
// the CatalogSource requests other numbers all the time.
func TestAutoscaler(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	w.Create(catalog("shop", registry.host+"/shop:1"))
	w.supervise()
	w.rolledOut("shop", 2)
	numbers := w.numbers("shop")
	hpa := autoscaler("front", "shop", 4, 6)
	w.Create(hpa)
	touches := 0
	// touched requests another number and returns the current one.
	touched := func(g gomega.Gomega) int32 {
		touches++
		w.annotate(g, "chandlery.dev/replicas", strconv.Itoa(1+touches%3))
		return w.number(g, "shop")
	}
	for _, tt := range []struct{ least, most, want int32 }{{4, 6, 4}, {5, 6, 5}, {2, 3, 3}} {
		w.Eventually(func(g gomega.Gomega) {
			w.get(g, "front", hpa)
			hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas = &tt.least, tt.most
			g.Expect(w.Update(t.Context(), hpa)).To(gomega.Succeed())
		}).Should(gomega.Succeed())
		w.Eventually(touched).Should(gomega.Equal(tt.want))
		w.Consistently(touched).Should(gomega.Equal(tt.want))
		// The supervisor is a field manager of the number besides the autoscaler. Without an owner,
		// the number would become 1.
		w.Eventually(func(g gomega.Gomega) []string { return w.ownersOfNumber(g, "shop") }).Should(gomega.ContainElement(api.FieldManager))
		w.rolledOut("shop", tt.want)
	}
	// The autoscaler remains active while a finalizer blocks its deletion.
	hold := func(finalizers string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
		err := client.IgnoreNotFound(w.Patch(context.WithoutCancel(t.Context()), hpa, patch))
		if err != nil {
			t.Error(err)
		}
	}
	hold(`["example.com/keep"]`)
	t.Cleanup(func() { hold("null") })
	if err := w.Delete(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	w.Consistently(touched).Should(gomega.Equal(int32(3)))
	w.annotate(w, "chandlery.dev/replicas", "2")
	// The next change reaches the pods. By then, the supervisor has processed both.
	w.annotate(w, "example.com/make", "new")
	w.rolledOut("shop", 3, func(g gomega.Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Annotations).To(gomega.HaveKeyWithValue("example.com/make", "new"))
	})
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(condition(s, "Available")).To(gomega.HaveSuffix(
			"; HorizontalPodAutoscaler front sets the number of replicas, and annotation chandlery.dev/replicas has no effect"))
	})
	hold("null")
	// The Deployment does not change any more. The supervisor must still detect that the autoscaler
	// is gone.
	w.rolledOut("shop", 2)
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(condition(s, "Available")).NotTo(gomega.ContainSubstring("HorizontalPodAutoscaler"))
	})
	// The watch shows no other number in between.
	w.Eventually(numbers).Should(gomega.Equal([]int32{2, 4, 5, 3, 2}))
}

// TestAutoscalerAhead scales a catalog while the supervisor does not receive Deployment events. The
// supervisor must change the Deployment for another reason.
func TestAutoscalerAhead(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	news := &dam{}
	w.Config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return dammed{inner: inner, dam: news} })
	// An autoscaler without metrics leaves a number within its bounds unchanged.
	w.Create(catalog("shop", registry.host+"/shop:1"), autoscaler("front", "shop", 2, 6))
	w.supervise()
	w.rolledOut("shop", 2)
	numbers := w.numbers("shop")

	news.close()
	t.Cleanup(news.open)
	d := &appsv1.Deployment{}
	w.get(w, "shop", d)
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
	if err := w.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	// The annotation changes the pods, which requires a rollout.
	w.annotate(w, "example.com/make", "new")
	tries := func() int {
		return len(slices.DeleteFunc(w.written(), func(one string) bool {
			return !strings.HasPrefix(one, http.MethodPatch) || !strings.HasSuffix(one, "/deployments/shop")
		}))
	}
	before := tries()
	const some = 5
	w.Eventually(func() int { return tries() - before }).Should(gomega.BeNumerically(">=", some))
	w.Consistently(func(g gomega.Gomega) {
		g.Expect(w.number(g, "shop")).To(gomega.Equal(int32(4)))
		s := w.source(g, "shop")
		g.Expect(string(s.Status.Reason) + s.Status.Message).To(gomega.BeEmpty())
	}).Should(gomega.Succeed())

	news.open()
	w.rolledOut("shop", 4, func(g gomega.Gomega, d *appsv1.Deployment) {
		g.Expect(d.Spec.Template.Annotations).To(gomega.HaveKeyWithValue("example.com/make", "new"))
	})
	w.Eventually(numbers).Should(gomega.Equal([]int32{2, 4}))
}

// TestAutoscalersHidden runs a supervisor without permission to list autoscalers. It sets the
// number of replicas regardless of autoscalers and emits an Event.
func TestAutoscalersHidden(t *testing.T) {
	w, registry := newWorld(t), newImages(t, "", "")
	registry.push("shop:1", nil)
	blind := "blind-" + w.Namespace
	w.Create(fixtures.ClusterRole(blind, fixtures.User(blind), rbacv1.PolicyRule{
		APIGroups: []string{"", "apps", "policy", "networking.k8s.io", "operators.coreos.com", "events.k8s.io"},
		Resources: []string{"*"}, Verbs: []string{"*"},
	})...)
	w.Config.Impersonate = rest.ImpersonationConfig{UserName: blind}
	w.Create(catalog("shop", registry.host+"/shop:1"), autoscaler("front", "shop", 2, 6))
	w.supervise()
	w.rolledOut("shop", 2)
	w.annotate(w, "chandlery.dev/replicas", "3")
	d := w.rolledOut("shop", 3)
	numbers := w.numbers("shop")
	w.Expect(w.undone("shop")).To(gomega.BeEmpty(), "nobody has scaled it yet")

	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	if err := w.SubResource("scale").Update(t.Context(), d, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	w.Eventually(numbers).Should(gomega.Equal([]int32{3, 5, 3}))
	w.rolledOut("shop", 3)
	w.Eventually(func() []string { return w.undone("shop") }).Should(gomega.ConsistOf(
		gomega.HavePrefix("Deployment shop was reset from 5 to 3 replicas; if a HorizontalPodAutoscaler scales it, grant the supervisor")))
	w.becomes("shop", func(g gomega.Gomega, s *operatorsv1alpha1.CatalogSource) {
		g.Expect(string(s.Status.Reason) + s.Status.Message).To(gomega.BeEmpty())
	})
}

// autoscaler returns an autoscaler for the Deployment of a catalog.
func autoscaler(named, catalog string, least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: catalog},
		MinReplicas:    &least, MaxReplicas: most,
	}}
	hpa.Name = named
	return hpa
}

// annotate sets an annotation of the CatalogSource shop.
func (w *world) annotate(g gomega.Gomega, key, value string) {
	source := catalogs.NewObject()
	source.SetNamespace(w.Namespace)
	source.SetName("shop")
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	g.Expect(w.Patch(w.T.Context(), source, client.RawPatch(types.MergePatchType, []byte(patch)))).To(gomega.Succeed())
}

// number returns the wanted number of replicas of a Deployment.
func (w *world) number(g gomega.Gomega, named string) int32 {
	d := &appsv1.Deployment{}
	w.get(g, named, d)
	return *d.Spec.Replicas
}

// ownersOfNumber returns the field managers of a Deployment's number of replicas.
func (w *world) ownersOfNumber(g gomega.Gomega, named string) []string {
	d := &appsv1.Deployment{}
	w.get(g, named, d)
	var owners []string
	for _, entry := range d.ManagedFields {
		var fields map[string]map[string]any
		g.Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(gomega.Succeed())
		if _, has := fields["f:spec"]["f:replicas"]; has {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}

// undone returns the notes of a CatalogSource's Events about undone scaling.
func (w *world) undone(named string) []string {
	var list eventsv1.EventList
	w.Expect(w.List(w.T.Context(), &list, client.InNamespace(w.Namespace))).To(gomega.Succeed())
	var notes []string
	for i := range list.Items {
		if one := &list.Items[i]; one.Regarding.Name == named && one.Reason == "ScalingUndone" {
			notes = append(notes, one.Note)
		}
	}
	return notes
}

// numbers records every wanted number of replicas of a Deployment.
func (w *world) numbers(named string) func() []int32 {
	w.T.Helper()
	changes, err := controlplane.Client(w.T).Watch(w.T.Context(), &appsv1.DeploymentList{}, client.InNamespace(w.Namespace), client.MatchingFields{"metadata.name": named})
	if err != nil {
		w.T.Fatal(err)
	}
	var (
		mu   sync.Mutex
		seen []int32
	)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			d, is := change.Object.(*appsv1.Deployment)
			if !is {
				continue
			}
			mu.Lock()
			if len(seen) == 0 || seen[len(seen)-1] != *d.Spec.Replicas {
				seen = append(seen, *d.Spec.Replicas)
			}
			mu.Unlock()
		}
	}()
	w.T.Cleanup(func() {
		changes.Stop()
		<-ended
	})
	return func() []int32 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// dam delays the Deployment events of a supervisor while it is closed.
type dam struct {
	mu     sync.Mutex
	closed chan struct{}
}

func (d *dam) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = make(chan struct{})
}

func (d *dam) open() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed != nil {
		close(d.closed)
		d.closed = nil
	}
}

// opened returns a channel that closes when the dam opens; nil if it is open.
func (d *dam) opened() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

type dammed struct {
	inner http.RoundTripper
	dam   *dam
}

func (d dammed) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.inner.RoundTrip(req)
	if err == nil && req.URL.Query().Has("watch") && strings.HasSuffix(req.URL.Path, "/deployments") {
		resp.Body = &dammedBody{ReadCloser: resp.Body, dam: d.dam, gone: make(chan struct{})}
	}
	return resp, err
}

// dammedBody is the response body of a watch.
type dammedBody struct {
	io.ReadCloser

	dam  *dam
	once sync.Once
	gone chan struct{}
}

func (b *dammedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if opened := b.dam.opened(); opened != nil {
		select {
		case <-opened:
		case <-b.gone:
		}
	}
	return n, err
}

func (b *dammedBody) Close() error {
	b.once.Do(func() { close(b.gone) })
	return b.ReadCloser.Close()
}
