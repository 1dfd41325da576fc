package installplan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	sharedCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
		`"metadata":{"name":"lamps.example","labels":{"bundled":"yes","olm.managed":"true"},"annotations":{"made-by":"test"}},` +
		`"spec":{"group":"example","scope":"Namespaced","names":{"kind":"Lamp","plural":"lamps"},"versions":[{"name":"v1","served":true,"storage":true}]}}`
	servedStatus = `{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}`
	lampVersion  = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},"spec":{"version":"1.0.0"}}`
	converting   = `{"kind":"ClusterServiceVersion","metadata":{"name":"lamp.v1"},"spec":{"version":"1.0.0","webhookdefinitions":[{"type":"ConversionWebhook","conversionCRDs":["lamps.example"]}]}}`
)

// lampIn returns a version of the package lamp in a namespace.
func lampIn(namespace string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "lamp.v1", Annotations: map[string]string{api.AnnotationProperties: ofLamp},
	}}
	csv.Spec.Version.Version = semver.MustParse("1.0.0")
	return csv
}

func stepOf(manifest string) *operatorsv1alpha1.Step {
	return &operatorsv1alpha1.Step{Resolving: "lamp.v1", Resource: operatorsv1alpha1.StepResource{
		Group: groupAPIExtensions, Version: "v1", Kind: kindCRD, Name: "lamps.example", Manifest: manifest,
	}}
}

// served returns the definition that many versions share, as the API server serves it.
func served(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	live := parsed(t, sharedCRD)
	setDefaults(live)
	live.SetUID("1")
	live.SetGeneration(1)
	live.Object["status"] = parsed(t, servedStatus).Object
	setInstalledAlongside(live, []types.NamespacedName{{Namespace: "a", Name: "lamp.v1"}})
	return live
}

// definitionRequests lists the requests for definitions.
type definitionRequests []string

func (r *definitionRequests) funcs() interceptor.Funcs {
	of := func(o client.Object, text string) {
		if o.GetObjectKind().GroupVersionKind().Kind == kindCRD {
			*r = append(*r, text)
		}
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, metadata := o.(*metav1.PartialObjectMetadata); metadata {
				of(o, "get metadata")
			} else {
				of(o, "get")
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			of(o, "create")
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			of(o, "update")
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			of(o, "patch")
			return c.Patch(ctx, o, patch, opts...)
		},
	}
}

// equalDefinitionCase has a plan of namespace b write a definition after a plan of namespace a found it equal.
type equalDefinitionCase struct {
	reason string
	// first is the status of the definition for the first plan.
	first string
	// change changes the definition between the plans; nil deletes it.
	change func(live *unstructured.Unstructured)
	// bundle is the definition of the second plan, and csv its version.
	bundle, csv                   string
	asAccount, unbounded, reverts bool
	// requests are those of the second plan, and again those of another pass of it.
	requests, again []string
	want            operatorsv1alpha1.StepStatus
	recorded        []string
}

func unchanged(*unstructured.Unstructured) {}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(live *unstructured.Unstructured) { annotate(live, key, value) }
}

func equalDefinitionCases() map[string]equalDefinitionCase {
	const present = operatorsv1alpha1.StepStatusPresent
	both := []string{"a/lamp.v1", "b/lamp.v1"}
	return map[string]equalDefinitionCase{
		"Same": {
			reason: "only the metadata is read", change: unchanged,
			requests: []string{"get metadata", "patch"}, again: []string{"get metadata"}, want: present, recorded: both,
		},
		"OtherVersion": {
			reason: "another version adds its keys", change: func(live *unstructured.Unstructured) {
				annotate(live, api.PrefixInstalledAlongside+"1", "c/lamp.v1")
				live.SetLabels(map[string]string{"bundled": "yes", api.LabelManaged: "true", plansteps.ComponentLabel("lamp", "c"): ""})
			},
			requests: []string{"get metadata", "patch"}, want: present, recorded: append(both, "c/lamp.v1"),
		},
		"Recorded": {
			reason: "nothing is missing", change: func(live *unstructured.Unstructured) {
				annotate(live, installedAlongsideKey(types.NamespacedName{Namespace: "b", Name: "lamp.v1"}), "b/lamp.v1")
				live.SetLabels(map[string]string{"bundled": "yes", api.LabelManaged: "true", plansteps.ComponentLabel("lamp", "b"): ""})
			},
			requests: []string{"get metadata"}, want: present, recorded: both,
		},
		"DeletedVersion": {
			reason: "its key is removed from the newest object", change: annotated(api.PrefixInstalledAlongside+"1", "gone/lamp.v1"),
			requests: []string{"get metadata", "get metadata", "patch"}, want: present, recorded: both,
		},
		"Spec": {
			reason: "another client changed the spec", change: func(live *unstructured.Unstructured) {
				live.SetGeneration(2)
				live.Object["spec"].(map[string]any)["scope"] = "Cluster" //nolint:forcetypeassert // it has a spec
			},
			requests: []string{"get metadata", "get", "update"}, want: present, recorded: both,
		},
		"Label": {
			reason: "another client changed a label of the bundle", change: func(live *unstructured.Unstructured) {
				live.SetLabels(map[string]string{"bundled": "no", api.LabelManaged: "true"})
			},
			requests: []string{"get metadata", "get", "update"}, want: present, recorded: both,
		},
		"Annotation": {
			reason: "another client added an annotation", change: annotated("example.com/note", "mine"),
			requests: []string{"get metadata", "get", "patch"}, want: present, recorded: both,
		},
		"Recreated": {
			reason: "another client recreated it", change: func(live *unstructured.Unstructured) { live.SetUID("2") },
			requests: []string{"get metadata", "get", "patch"}, want: present, recorded: both,
		},
		"Deleted": {
			reason:   "another client deleted it",
			requests: []string{"get metadata", "get", "create"}, want: operatorsv1alpha1.StepStatusWaitingForAPI, recorded: []string{"b/lamp.v1"},
		},
		"OtherBundle": {
			reason: "the bundle has another definition", change: unchanged, bundle: strings.Replace(sharedCRD, "Namespaced", "Cluster", 1),
			requests: []string{"get", "update"}, want: present, recorded: both,
		},
		"Converted": {
			reason: "the version converts it", change: unchanged, csv: converting,
			requests: []string{"get", "update"}, want: present, recorded: both,
		},
		"Account": {
			reason: "an account may lack permission to patch", change: unchanged, asAccount: true,
			requests: []string{"get", "update"}, want: present, recorded: both,
		},
		"Reverts": {
			reason: "objects may lose data", change: unchanged, reverts: true, requests: []string{"get", "patch"}, want: present, recorded: both,
		},
		"NotServed": {
			reason: "the first plan found a definition that was not served", first: `{}`, change: unchanged,
			requests: []string{"get", "patch"}, want: operatorsv1alpha1.StepStatusWaitingForAPI, recorded: both,
		},
		"OtherPackage": {
			reason: "it belongs to another package", change: annotated(api.PrefixInstalledAlongside+"1", "d/tray.v1"),
			requests: []string{"get metadata", "get"}, again: []string{"get"}, want: present, recorded: []string{"a/lamp.v1", "d/tray.v1"},
		},
		"OtherPackageUnbounded": {
			reason: "a plan for all namespaces may share it", change: annotated(api.PrefixInstalledAlongside+"1", "d/tray.v1"), unbounded: true,
			requests: []string{"get metadata", "patch"}, want: present, recorded: append(both, "d/tray.v1"),
		},
	}
}

func TestEqualDefinitionIsReadOnce(t *testing.T) {
	tray := lampIn("d")
	tray.Name, tray.Annotations = "tray.v1", map[string]string{api.AnnotationProperties: strings.Replace(ofLamp, `"lamp"`, `"tray"`, 1)}
	for name, tc := range equalDefinitionCases() {
		t.Run(name, func(t *testing.T) {
			live := served(t)
			if tc.first != "" {
				live.Object["status"] = parsed(t, tc.first).Object
			}
			plain := fake.NewClientBuilder().WithScheme(fixtures.Scheme(t)).WithObjects(lampIn("a"), lampIn("b"), lampIn("c"), tray, live).Build()
			requests, equal, locks := &definitionRequests{}, &equalCRDs{}, newCRDLocks()
			counted := interceptor.NewClient(plain, requests.funcs())
			applier := func(namespace, csv string) *crdApplier {
				versions := map[string]*unstructured.Unstructured{"lamp.v1": parsed(t, csv)}
				annotate(versions["lamp.v1"], api.AnnotationProperties, ofLamp)
				return &crdApplier{
					observer: &observer{namespace: namespace, cached: plain, live: counted, content: &content{namespace: namespace, versions: versions}},
					checker:  &crdChecker{client: plain}, writer: counted, locks: locks, equal: equal, prepared: map[*operatorsv1alpha1.Step]*crdChange{},
				}
			}
			if _, err := applier("a", lampVersion).apply(t.Context(), stepOf(sharedCRD)); err != nil {
				t.Fatal(err)
			}
			replaceDefinition(t, plain, tc.change)
			*requests = nil
			csv, bundle := lampVersion, sharedCRD
			if tc.csv != "" {
				csv = tc.csv
			}
			if tc.bundle != "" {
				bundle = tc.bundle
			}
			for _, want := range [][]string{tc.requests, tc.again} {
				a := applier("b", csv)
				if a.asAccount, a.unbounded = tc.asAccount, tc.unbounded; tc.reverts {
					a.reverts = "lamp.v1"
				}
				step := stepOf(bundle)
				if err := a.prepare(t.Context(), step); err != nil {
					t.Fatal(err)
				}
				status, err := a.apply(t.Context(), step)
				if err != nil || status != tc.want {
					t.Errorf("%s: status %s, want %s, error %v", tc.reason, status, tc.want, err)
				}
				if diff := cmp.Diff(want, []string(*requests)); diff != "" && want != nil {
					t.Errorf("%s: requests -want +got:\n%s", tc.reason, diff)
				}
				*requests = nil
			}
			if err := plain.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
				t.Fatal(err)
			}
			var recorded []string
			for _, version := range plansteps.InstalledAlongside(live) {
				recorded = append(recorded, version.String())
			}
			slices.Sort(tc.recorded)
			if diff := cmp.Diff(tc.recorded, recorded); diff != "" {
				t.Errorf("%s: records -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// replaceDefinition changes the definition as another client would, or deletes it without a change.
func replaceDefinition(t *testing.T, c client.Client, change func(live *unstructured.Unstructured)) {
	t.Helper()
	live := served(t)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), live.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if change == nil {
		return
	}
	change(live)
	live.SetResourceVersion("")
	if err := c.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
}

func TestStableMetadata(t *testing.T) {
	at := func(second int64) *metav1.Time { return new(metav1.Unix(second, 0)) }
	entry := func(manager, subresource string, second int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, Time: at(second)}
	}
	original := func() *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			UID: "1", Generation: 1, ResourceVersion: "5", Finalizers: []string{"example.com/clean-up"},
			Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"a": "1"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				entry(api.ManifestFieldManager, "", 1), entry("kubectl", "", 1), entry("kube-apiserver", "status", 1),
			},
		}
	}
	for name, tc := range map[string]struct {
		change func(m *metav1.ObjectMeta)
		same   bool
	}{
		"Nothing":     {func(*metav1.ObjectMeta) {}, true},
		"Version":     {func(m *metav1.ObjectMeta) { m.ResourceVersion = "6" }, true},
		"Record":      {func(m *metav1.ObjectMeta) { m.Annotations[api.PrefixInstalledAlongside+"1"] = "b/lamp.v1" }, true},
		"Component":   {func(m *metav1.ObjectMeta) { m.Labels[plansteps.ComponentLabel("lamp", "b")] = "" }, true},
		"OwnWrite":    {func(m *metav1.ObjectMeta) { m.ManagedFields[0].Time = at(2) }, true},
		"OtherWrite":  {func(m *metav1.ObjectMeta) { m.ManagedFields[1].Time = at(2) }, false},
		"StatusWrite": {func(m *metav1.ObjectMeta) { m.ManagedFields[2].Time = at(2) }, true},
		"Manager":     {func(m *metav1.ObjectMeta) { m.ManagedFields = m.ManagedFields[:1] }, false},
		"Spec":        {func(m *metav1.ObjectMeta) { m.Generation = 2 }, false},
		"Recreated":   {func(m *metav1.ObjectMeta) { m.UID = "2" }, false},
		"Deleted":     {func(m *metav1.ObjectMeta) { m.DeletionTimestamp = at(2) }, false},
		"Label":       {func(m *metav1.ObjectMeta) { m.Labels["b"] = "" }, false},
		"OddLabel":    {func(m *metav1.ObjectMeta) { m.Labels[plansteps.ComponentLabel("lamp", "b")] = "x" }, false},
		"Annotation":  {func(m *metav1.ObjectMeta) { delete(m.Annotations, "a") }, false},
		"Finalizer":   {func(m *metav1.ObjectMeta) { m.Finalizers = nil }, false},
		"Owner":       {func(m *metav1.ObjectMeta) { m.OwnerReferences = []metav1.OwnerReference{{UID: "3"}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			known, live := &equalCRD{metadata: stableMetadata(original())}, original()
			tc.change(live)
			if got := known.describes(live); got != tc.same {
				t.Errorf("same %t, want %t", got, tc.same)
			}
		})
	}
}

// crdServer serves a definition that many versions share, encoded as the API server would.
type crdServer struct {
	client.Client

	whole, metadata []byte
	versions        map[types.NamespacedName]*operatorsv1alpha1.ClusterServiceVersion
}

func (c *crdServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return o.UnmarshalJSON(c.whole)
	case *metav1.PartialObjectMetadata:
		gvk := o.GroupVersionKind()
		err := o.Unmarshal(c.metadata)
		o.SetGroupVersionKind(gvk)
		return err
	case *operatorsv1alpha1.ClusterServiceVersion:
		if csv := c.versions[key]; csv != nil {
			*o = *csv
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *crdServer) Patch(ctx context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return c.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// newCRDServer returns a server of a definition that the versions of some namespaces share.
func newCRDServer(b *testing.B, namespaces int) *crdServer {
	b.Helper()
	var live apiextensionsv1.CustomResourceDefinition
	whole := &unstructured.Unstructured{}
	for _, err := range []error{whole.UnmarshalJSON([]byte(sharedCRD)), json.Unmarshal([]byte(servedStatus), &live.Status)} {
		if err != nil {
			b.Fatal(err)
		}
	}
	setDefaults(whole)
	c := &crdServer{versions: map[types.NamespacedName]*operatorsv1alpha1.ClusterServiceVersion{}}
	annotations, labels := whole.GetAnnotations(), whole.GetLabels()
	var annotationFields, labelFields []string
	for i := range namespaces {
		csv := lampIn("namespace-" + strconv.Itoa(i))
		version := client.ObjectKeyFromObject(csv)
		c.versions[version] = csv
		annotation, label := installedAlongsideKey(version), plansteps.ComponentLabel("lamp", csv.Namespace)
		annotations[annotation], labels[label] = version.String(), ""
		annotationFields, labelFields = append(annotationFields, `"f:`+annotation+`":{}`), append(labelFields, `"f:`+label+`":{}`)
	}
	fields := fmt.Sprintf(`{"f:metadata":{"f:annotations":{".":{},"f:made-by":{},%s},"f:labels":{".":{},"f:bundled":{},%s}},"f:spec":{"f:conversion":{".":{},"f:strategy":{}},"f:group":{},"f:names":{"f:kind":{},"f:plural":{}},"f:scope":{},"f:versions":{}}}`,
		strings.Join(annotationFields, ","), strings.Join(labelFields, ","))
	meta := metav1.ObjectMeta{
		Name: whole.GetName(), UID: "1", Generation: 1, ResourceVersion: "5", Annotations: annotations, Labels: labels,
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: api.ManifestFieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apiextensions.k8s.io/v1",
			Time: new(metav1.NewTime(time.Unix(1, 0))), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
		}},
	}
	meta.ManagedFields[0].FieldsV1.SetRawBytes([]byte(fields))
	partial := &metav1.PartialObjectMetadata{ObjectMeta: meta}
	var err error
	if c.metadata, err = partial.Marshal(); err != nil {
		b.Fatal(err)
	}
	whole.Object["metadata"], whole.Object["status"] = meta, live.Status
	if c.whole, err = json.Marshal(whole.Object); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkApplyCRD applies the step of a definition that versions in other namespaces share.
func BenchmarkApplyCRD(b *testing.B) {
	for _, namespaces := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(namespaces), func(b *testing.B) {
			c := newCRDServer(b, namespaces)
			csv := &unstructured.Unstructured{}
			if err := csv.UnmarshalJSON([]byte(lampVersion)); err != nil {
				b.Fatal(err)
			}
			csv.SetAnnotations(map[string]string{api.AnnotationProperties: ofLamp})
			locks, equal := newCRDLocks(), &equalCRDs{}
			b.ReportAllocs()
			for b.Loop() {
				a := &crdApplier{
					observer: &observer{namespace: "ops", cached: c, live: c, content: &content{namespace: "ops", versions: map[string]*unstructured.Unstructured{"lamp.v1": csv}}},
					checker:  &crdChecker{client: c}, writer: c, locks: locks, equal: equal, prepared: map[*operatorsv1alpha1.Step]*crdChange{},
				}
				if status, err := a.apply(b.Context(), stepOf(sharedCRD)); err != nil || status != operatorsv1alpha1.StepStatusPresent {
					b.Fatal(status, err)
				}
			}
		})
	}
}
