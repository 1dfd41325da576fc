package installplan

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// TestApplyCRD applies the step of a definition, and lists the writes.
func TestApplyCRD(t *testing.T) {
	const (
		crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"},` +
			`"spec":{"group":"example","names":{"kind":"Lamp","plural":"lamps"},"versions":[{"name":"v1","served":true,"storage":true}]}}`
		created = operatorsv1alpha1.StepStatusWaitingForAPI // the fake API server does not serve it
		present = operatorsv1alpha1.StepStatusPresent
	)
	served := func(t *testing.T) *unstructured.Unstructured {
		t.Helper()
		live := parsed(t, crd)
		setDefaults(live)
		live.SetUID("1")
		// A plan adds its keys to a definition only if it has labels and annotations already.
		live.SetAnnotations(map[string]string{"example.com/made-by": "test"})
		live.SetLabels(map[string]string{"example.com/made-by": "test", api.LabelManaged: "true"})
		live.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"},
		}}
		return live
	}
	for name, tc := range map[string]struct {
		reason string
		// exists and races report whether the definition exists before the step is applied, and
		// whether another client creates it just before the step would.
		exists, races bool
		asAccount     bool
		writes        []string
		want          operatorsv1alpha1.StepStatus
	}{
		"Absent":  {reason: "it is created", writes: []string{"create"}, want: created},
		"Exists":  {reason: "only the keys of the version are missing", exists: true, writes: []string{"patch"}, want: present},
		"Account": {reason: "an account needs no right to patch", exists: true, asAccount: true, writes: []string{"update"}, want: present},
		"Races":   {reason: "the plan reads the definition that the other client created", races: true, writes: []string{"create", "patch"}, want: present},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder()
			if tc.exists {
				builder.WithObjects(served(t))
			}
			var writes []string
			c := builder.WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					writes = append(writes, "create")
					if tc.races {
						if err := c.Create(ctx, served(t)); err != nil {
							t.Error(err)
						}
					}
					return c.Create(ctx, o, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					writes = append(writes, "update")
					return c.Update(ctx, o, opts...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
					writes = append(writes, "patch")
					return c.Patch(ctx, o, patch, opts...)
				},
			}).Build()
			a := &crdApplier{
				observer: &observer{namespace: "ops", live: c, content: &content{namespace: "ops", versions: map[string]*unstructured.Unstructured{"lamp.v1": nil}}},
				checker:  &crdChecker{client: c}, writer: c, unbounded: true, asAccount: tc.asAccount, locks: newCRDLocks(), equal: &equalCRDs{},
				prepared: map[*operatorsv1alpha1.Step]*crdChange{},
			}
			got, err := a.apply(t.Context(), &operatorsv1alpha1.Step{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{
				Group: groupAPIExtensions, Version: "v1", Kind: kindCRD, Name: "lamps.example", Manifest: crd,
			}})
			if err != nil || got != tc.want {
				t.Errorf("%s: status %s, want %s, error %v", tc.reason, got, tc.want, err)
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" {
				t.Errorf("%s: writes -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecordOfADeletedVersion installs a version again whose clean-up ends while the plan begins: after the
// plan has read the definition, and before it creates the version.
func TestRecordOfADeletedVersion(t *testing.T) {
	const (
		crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"},` +
			`"spec":{"group":"example","names":{"kind":"Lamp","plural":"lamps"},"versions":[{"name":"v1","served":true,"storage":true}]}}`
		csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1","namespace":"ops"}}`
	)
	for _, asAccount := range []bool{false, true} {
		live := parsed(t, crd)
		setDefaults(live)
		live.SetUID("1")
		live.SetLabels(map[string]string{"example.com/made-by": "test", api.LabelManaged: "true"})
		live.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"},
		}}
		record := types.NamespacedName{Namespace: "ops", Name: "lamp.v1"}
		setInstalledAlongside(live, []types.NamespacedName{record})
		scheme := fixtures.Scheme(t)
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := apply.RemoveAnnotations(ctx, c, live, plansteps.InstalledAlongsideKeys(live, record)); err != nil {
					t.Error(err)
				}
				return c.Create(ctx, o, opts...)
			},
		}).Build()
		leaving := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: "lamp.v1", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"example.com/clean-up"},
		}}
		bundle := &content{namespace: "ops", versions: map[string]*unstructured.Unstructured{"lamp.v1": nil}}
		o := &observer{namespace: "ops", cached: fake.NewClientBuilder().WithScheme(scheme).WithObjects(leaving).Build(), live: c, content: bundle}
		e := &execution{
			namespace: "ops", observer: o, content: bundle, owners: &owners{observer: o, byName: map[string]*owner{}},
			objects: &objectApplier{observer: o, writer: c, own: c}, warnings: &warningRecorder{client: c, content: bundle},
			crds: &crdApplier{
				observer: o, checker: &crdChecker{client: c}, writer: c, unbounded: true, asAccount: asAccount, locks: newCRDLocks(), equal: &equalCRDs{},
				prepared: map[*operatorsv1alpha1.Step]*crdChange{},
			},
		}
		err := e.run(t.Context(), []*operatorsv1alpha1.Step{
			{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{
				Group: operatorsv1alpha1.GroupName, Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: "lamp.v1", Manifest: csv,
			}},
			{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{
				Group: groupAPIExtensions, Version: "v1", Kind: kindCRD, Name: "lamps.example", Manifest: crd,
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]types.NamespacedName{record}, plansteps.InstalledAlongside(live)); diff != "" {
			t.Errorf("as account %t: records -want, +got:\n%s", asAccount, diff)
		}
	}
}

// TestChangeKeepsRecordOfANewVersion creates the version of another namespace after the definition that records it
// was read, as another plan does during the checks.
func TestChangeKeepsRecordOfANewVersion(t *testing.T) {
	const crd = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example"},` +
		`"spec":{"group":"example","names":{"kind":"Lamp","plural":"lamps"},"versions":[{"name":"v1","served":true,"storage":true}]}}`
	scheme := fixtures.Scheme(t)
	other := types.NamespacedName{Namespace: "b", Name: "lamp.v1"}
	for _, exists := range []bool{false, true} {
		live := parsed(t, crd)
		setInstalledAlongside(live, []types.NamespacedName{other})
		c := fake.NewClientBuilder().WithScheme(scheme)
		if exists {
			c.WithObjects(&operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: other.Namespace, Name: other.Name}})
		}
		reader := c.Build()
		version := types.NamespacedName{Namespace: "ops", Name: "lamp.v1"}
		a := &crdApplier{observer: &observer{namespace: "ops", cached: reader, live: reader}, checker: &crdChecker{client: reader}, unbounded: true, asAccount: true}
		change, err := a.change(t.Context(), &crdState{
			name: "lamps.example", version: version, bundle: parsed(t, crd), live: live, recorded: []recordedVersion{{NamespacedName: other, stale: []string{installedAlongsideKey(other)}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []types.NamespacedName{version}
		if exists {
			want = []types.NamespacedName{other, version}
		}
		if diff := cmp.Diff(want, plansteps.InstalledAlongside(change.wanted)); diff != "" {
			t.Errorf("exists %t: records -want, +got:\n%s", exists, diff)
		}
	}
}
