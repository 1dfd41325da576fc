package suite_test

import (
	"context"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

var (
	running   = discovery.Verdict{Outcome: discovery.Installed, Reason: discovery.ReasonOperatorRunning}
	unknown   = discovery.Verdict{Outcome: discovery.Installed, Reason: discovery.ReasonOperatorUnknown}
	missing   = discovery.Verdict{Outcome: discovery.Degraded, Reason: discovery.ReasonNoOperator}
	down      = discovery.Verdict{Outcome: discovery.Degraded, Reason: discovery.ReasonOperatorDown}
	stale     = discovery.Verdict{Outcome: discovery.Degraded, Reason: discovery.ReasonLeaseStale}
	everybody = person{}
)

// operator creates the Deployment of an operator, with a number of running pods.
func (w *world) operator(name string, pods int32) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/version": "1.2.3"}
	d := fixtures.Deployment(w.Namespace, name, "operator")
	d.Labels, d.Spec.Template.Labels, d.Spec.Selector.MatchLabels, d.Spec.Replicas = labels, labels, labels, &pods
	w.Create(d)
	w.eventually("Deployment "+name+" runs", func(ctx context.Context) bool {
		return w.Get(ctx, client.ObjectKeyFromObject(d), d) == nil && d.Status.ObservedGeneration > 0 && d.Status.AvailableReplicas == pods
	})
	return d
}

// lease creates a Lease that was renewed some time ago.
func (w *world) lease(name string, ago time.Duration) types.NamespacedName {
	holder, duration, renewed := name+"-7", int32(15), metav1.NewMicroTime(time.Now().Add(-ago))
	w.Create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &duration, RenewTime: &renewed},
	})
	return types.NamespacedName{Namespace: w.Namespace, Name: name}
}

func (w *world) with(ref discovery.OperatorRef) discovery.Target {
	target := w.widgets("v1")
	target.Operator = ref
	return target
}

// TestOperatorStates uses operators in all states.
func TestOperatorStates(t *testing.T) {
	w := newWorld(t)
	w.serve(w.definition("v1"))
	named := func(d *appsv1.Deployment) types.NamespacedName { return client.ObjectKeyFromObject(d) }
	good, stopped := named(w.operator("good", 1)), named(w.operator("stopped", 0))
	fresh, old := w.lease("fresh", 0), w.lease("old", time.Hour)
	absent := types.NamespacedName{Namespace: w.Namespace, Name: "absent"}

	w.expect(everybody, w.with(discovery.OperatorRef{Deployment: good}), running, "operator runs: Deployment "+good.String()+" 1.2.3")
	w.expect(everybody, w.with(discovery.OperatorRef{Deployment: good, Lease: fresh}), running, "Deployment "+good.String())
	w.expect(everybody, w.with(discovery.OperatorRef{Selector: "app.kubernetes.io/name=good"}), running, "Deployment "+good.String())
	w.expect(everybody, w.with(discovery.OperatorRef{Lease: fresh}), running, "Lease "+fresh.String()+" (holder fresh-7)")
	w.expect(everybody, w.with(discovery.OperatorRef{Deployment: stopped}), down, "0 of 0 pods are available")
	w.expect(everybody, w.with(discovery.OperatorRef{Deployment: absent}), missing, "Deployment "+absent.String()+" does not exist")
	w.expect(everybody, w.with(discovery.OperatorRef{Selector: "app.kubernetes.io/name=absent"}), missing, "there are no Deployments with the labels")
	w.expect(everybody, w.with(discovery.OperatorRef{Deployment: good, Lease: old}), stale, "does not renew Lease "+old.String()+" (holder old-7): it was renewed 1h0m")
	w.expect(everybody, w.with(discovery.OperatorRef{Owned: true}), missing, "")
}

// TestOperatorIsNotReadable uses a user who may read the kind and nothing else.
func TestOperatorIsNotReadable(t *testing.T) {
	w := newWorld(t)
	w.serve(w.definition("v1"))
	w.operator("good", 1)
	target := w.with(discovery.OperatorRef{Selector: "app.kubernetes.io/name=good"})
	w.apply(w.find(w.nobody(), target).Grant)
	w.eventually("the rights are in force", func(ctx context.Context) bool {
		return w.findWithin(ctx, w.nobody(), target).Outcome == discovery.Installed
	})
	w.expect(w.nobody(), target, unknown, "the state of its operator is unknown: you lack permission to read Deployments with the labels")
}

// TestOwner uses ClusterServiceVersions that own the definition.
func TestOwner(t *testing.T) {
	w := newWorld(t)
	w.withVersions()
	w.serve(w.definition("v1"))
	target := w.with(discovery.OperatorRef{Owned: true})
	w.expect(everybody, target, missing, "no ClusterServiceVersion owns widgets."+w.group)

	csv := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": w.Namespace, "name": "widgets.v1.4.0"},
		"spec": map[string]any{
			"displayName": "Widgets", "version": "1.4.0",
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{}}},
			"customresourcedefinitions": map[string]any{"owned": []any{
				map[string]any{"name": "widgets." + w.group, "kind": "Widget", "version": "v1"},
			}},
		},
	}}
	csv.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	w.Create(csv)
	w.expect(everybody, target, down, "its operator does not run: ClusterServiceVersion "+w.Namespace+"/widgets.v1.4.0 1.4.0: it has no phase")
	for _, step := range []struct {
		phase string
		want  discovery.Verdict
		say   string
	}{
		{"Failed", down, "its phase is Failed: the pod crashes"},
		{"Succeeded", running, "its operator runs: ClusterServiceVersion " + w.Namespace + "/widgets.v1.4.0 1.4.0"},
	} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "`+step.phase+`", "message": "the pod crashes"}}`))
		if err := w.Status().Patch(t.Context(), csv, patch); err != nil {
			t.Fatal(err)
		}
		w.expect(everybody, target, step.want, step.say)
	}
}

// TestBackendDown uses an aggregated API whose Service does not exist.
func TestBackendDown(t *testing.T) {
	w := newWorld(t)
	service := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "v1." + w.group},
		"spec": map[string]any{
			"group": w.group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": w.Namespace, "name": "absent"},
		},
	}}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	w.Create(service)
	w.eventually("the API server has tried the backend", func(ctx context.Context) bool {
		return w.findWithin(ctx, everybody, w.widgets("v1")).Verdict == backendDown
	})
	w.expect(everybody, w.widgets("v1"), backendDown, "APIService v1."+w.group+" is not available: Service "+w.Namespace+"/absent: ")
	unnamed := w.widgets("")
	unnamed.Resource = ""
	w.expect(everybody, unnamed, backendDown, "APIService v1."+w.group)
}

// TestChangesAreNoticed uses a Finder that caches results for long, and an informer that invalidates them.
func TestChangesAreNoticed(t *testing.T) {
	w := newWorld(t)
	cfg := controlplane.Get(t).Config()
	finder, err := discovery.New(cfg, discovery.Options{InstalledTTL: time.Hour, OtherTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	factory := metadatainformer.NewSharedInformerFactory(watcher, 0)
	informer := factory.ForResource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Informer()
	if _, err := informer.AddEventHandler(finder.Handler()); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer does not start")
	}
	becomes := func(want discovery.Verdict) {
		t.Helper()
		w.eventually("the result is "+string(want.Outcome), func(ctx context.Context) bool {
			result, err := finder.Find(ctx, discovery.Auto, w.widgets("v1"))
			return err == nil && result.Verdict == want
		})
	}
	becomes(noGroup)
	crd := w.definition("v1")
	w.serve(crd)
	becomes(served)
	if err := w.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	becomes(noGroup)
}
