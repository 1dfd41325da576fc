package packagemanifest

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestWithdrawal has installations in different states, and checks which of them keep their APIService: when a cache shows a
// change, and when the process stops.
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	const system = "chandlery-system"
	active := func() client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}} }
	terminating := func() client.Object {
		n := active()
		n.SetDeletionTimestamp(new(metav1.Now()))
		n.SetFinalizers([]string{"example.com/test"})
		return n
	}
	deployment := func(replicas *int32) client.Object {
		d := fixtures.Deployment(system, supervisorName, "supervisor")
		d.Spec.Replicas = replicas
		return d
	}
	ending := func() client.Object {
		d := deployment(nil)
		d.SetDeletionTimestamp(new(metav1.Now()))
		d.SetFinalizers([]string{"foregroundDeletion"})
		return d
	}
	record := func(phase string) client.Object {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: migration.RecordName}, Data: map[string]string{"record.json": `{"phase":"` + phase + `"}`},
		}
	}
	own := func(i installation, namespace string) client.Object {
		u := i.apiService(namespace, nil, nil)
		u.SetUID("1")
		return u
	}
	auto := installationOf(Auto)
	for name, tt := range map[string]struct {
		objects []client.Object
		// hidden is true if Deployments cannot be read.
		hidden bool
		want   bool
	}{
		"Installed":            {objects: []client.Object{active(), deployment(nil), own(auto, system)}},
		"OneReplica":           {objects: []client.Object{active(), deployment(new(int32(1))), own(auto, system)}},
		"NoReplicas":           {objects: []client.Object{active(), deployment(new(int32(0))), own(auto, system)}, want: true},
		"NoDeployment":         {objects: []client.Object{active(), own(auto, system)}, want: true},
		"DeploymentDeleted":    {objects: []client.Object{active(), ending(), own(auto, system)}, want: true},
		"NamespaceTerminating": {objects: []client.Object{terminating(), deployment(nil), own(auto, system)}, want: true},
		"PermissionDeleted":    {objects: []client.Object{terminating(), own(auto, system)}, hidden: true, want: true},
		"Unknown":              {objects: []client.Object{active(), own(auto, system)}, hidden: true},
		"NoNamespace":          {objects: []client.Object{own(auto, system)}, want: true},
		"NoAPIService":         {objects: []client.Object{active()}},
		"OtherNamespace":       {objects: []client.Object{own(auto, "elsewhere")}},
		"OtherInstallation":    {objects: []client.Object{own(installationOf(Only), system)}},
		"AfterTakeover":        {objects: []client.Object{active(), own(auto, system), record("TakenOver")}, want: true},
		"Handback":             {objects: []client.Object{active(), own(auto, system), record("HandingBack")}},
	} {
		for when, run := range map[string]func(context.Context, *withdrawal){
			"Change": func(ctx context.Context, w *withdrawal) {
				_, _ = w.Reconcile(ctx, ctrl.Request{})
			},
			"Stop": func(ctx context.Context, w *withdrawal) {
				ctx, stop := context.WithCancel(ctx)
				stop()
				_ = w.checkAtStop(ctx)
			},
		} {
			t.Run(name+when, func(t *testing.T) {
				t.Parallel()
				recording, writes := fixtures.RecordingClient(t, tt.objects...)
				c := client.Client(recording)
				if tt.hidden {
					c = withoutDeployments(recording)
				}
				// The cache lacks everything.
				empty, _ := fixtures.RecordingClient(t)
				run(t.Context(), &withdrawal{registrar: &registrar{installation: auto, client: c, live: c, namespace: system}, cached: empty})
				if got := len(writes.Deletions) == 1; got != tt.want {
					t.Fatalf("deletions %v, want one: %v", writes.Deletions, tt.want)
				}
				if only := types.UID("1"); tt.want && (writes.Deletions[0].Preconditions == nil || *writes.Deletions[0].Preconditions.UID != only) {
					t.Errorf("the deletion has the preconditions %v", writes.Deletions[0].Preconditions)
				}
			})
		}
	}
}

// withoutDeployments returns a client whose user may not read Deployments.
func withoutDeployments(c client.WithWatch) client.Client {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*appsv1.Deployment); is {
				return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, key.Name, nil)
			}
			return c.Get(ctx, key, o, options...)
		},
	})
}

// TestWithdrawalAtRest has caches with an installation. There is no request then.
func TestWithdrawalAtRest(t *testing.T) {
	t.Parallel()
	cached, _ := fixtures.RecordingClient(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "chandlery-system"}}, fixtures.Deployment("chandlery-system", supervisorName, "supervisor"))
	// Without a client, a request would panic.
	w := &withdrawal{registrar: &registrar{installation: installationOf(Auto), namespace: "chandlery-system"}, cached: cached}
	if result, err := w.Reconcile(t.Context(), ctrl.Request{}); err != nil || !result.IsZero() {
		t.Errorf("result %+v, %v", result, err)
	}
}
