package remove

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
)

// TestNewPlan covers what is removed and what stays.
func TestNewPlan(t *testing.T) {
	t.Parallel()
	sub := func(annotations map[string]string) *operatorsv1alpha1.Subscription {
		return &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp", Annotations: annotations}}
	}
	csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp.v1"}}
	const removedSub, removedCSV, kept = "Subscription shop/lamp", "ClusterServiceVersion shop/lamp.v1 with its Deployments and RBAC", "Namespace shop, with its OperatorGroup"
	lamps, wicks := definition{Name: "lamps", Objects: new(2)}, definition{Name: "wicks", Objects: new(1), Users: []string{"other/torch.v1"}}
	for name, tt := range map[string]struct {
		has  inventory
		crds bool
		want plan
	}{
		"NotInstalled": {has: inventory{subscription: sub(nil)}, want: plan{Remove: []string{removedSub}, Stays: []string{kept}}},
		"Definitions": {
			has: inventory{subscription: sub(nil), versions: []operatorsv1alpha1.ClusterServiceVersion{csv}, definitions: []definition{lamps, wicks}},
			want: plan{Remove: []string{removedSub, removedCSV}, Stays: []string{
				"CustomResourceDefinition lamps with 2 custom resources", "CustomResourceDefinition wicks with 1 custom resource, which other/torch.v1 uses", kept,
			}},
		},
		"CRDs": {
			has: inventory{subscription: sub(nil), versions: []operatorsv1alpha1.ClusterServiceVersion{csv}, definitions: []definition{lamps, wicks}}, crds: true,
			want: plan{
				Remove: []string{removedSub, removedCSV, "CustomResourceDefinition lamps with 2 custom resources"}, Lost: 2, Definitions: []definition{lamps},
				Stays: []string{"CustomResourceDefinition wicks with 1 custom resource, which other/torch.v1 uses", kept},
			},
		},
		"Uncounted": {
			has:  inventory{subscription: sub(nil), definitions: []definition{{Name: "lamps"}}},
			want: plan{Remove: []string{removedSub}, Stays: []string{"CustomResourceDefinition lamps with its custom resources", kept}},
		},
		"Required": {
			has: inventory{subscription: sub(nil), definitions: []definition{
				{Name: "lamps", Objects: new(1), Users: []string{"shop/torch.v1"}, Dependents: []string{"shop/torch.v1"}},
			}},
			want: plan{
				Remove: []string{removedSub}, Stays: []string{"CustomResourceDefinition lamps with 1 custom resource, which shop/torch.v1 uses", kept},
				Notes: []string{"ClusterServiceVersion shop/torch.v1 requires CustomResourceDefinition lamps: the supervisor installs the operator again"},
			},
		},
		"Generated": {
			has:  inventory{subscription: sub(nil), generated: []string{"wick", "oil"}},
			want: plan{Remove: []string{removedSub}, Stays: []string{"Subscriptions that were created for dependencies: wick, oil", kept}},
		},
		"OnDelete": {
			has: inventory{subscription: sub(map[string]string{api.AnnotationOnDelete: "uninstall"}), generated: []string{"wick"}},
			want: plan{Remove: []string{removedSub}, Stays: []string{kept}, Notes: []string{
				"annotation chandlery.dev/on-delete=uninstall of the Subscription also uninstalls dependencies that nothing else needs",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, newPlan(&tt.has, tt.crds)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCleanupPlan covers the custom resources that a clean-up deletes although their definitions stay.
func TestCleanupPlan(t *testing.T) {
	t.Parallel()
	csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp.v1"}}
	csv.Spec.Cleanup.Enabled = true
	cleaned := func(name string, objects *int, count int, users ...string) definition {
		return definition{Name: name, Objects: objects, Cleanup: true, Cleaned: count, Users: users}
	}
	lamps, wicks := cleaned("lamps", new(2), 2), cleaned("wicks", new(1), 1, "other/torch.v1")
	const (
		removedSub, removedCSV = "Subscription shop/lamp", "ClusterServiceVersion shop/lamp.v1 with its Deployments and RBAC"
		keptWicks, kept        = "CustomResourceDefinition wicks, which other/torch.v1 uses, without its 1 custom resource", "Namespace shop, with its OperatorGroup"
	)
	notes := []string{"spec.cleanup of ClusterServiceVersion lamp.v1 also deletes its custom resources"}
	for name, tt := range map[string]struct {
		definitions []definition
		crds        bool
		want        plan
	}{
		"All":       {definitions: []definition{lamps, wicks}, want: plan{Lost: 3, Stays: []string{"CustomResourceDefinition lamps, without its 2 custom resources", keptWicks, kept}}},
		"Part":      {definitions: []definition{cleaned("oils", new(3), 1)}, want: plan{Lost: 1, Stays: []string{"CustomResourceDefinition oils, without 1 of its 3 custom resources", kept}}},
		"None":      {definitions: []definition{cleaned("jars", new(1), 0)}, want: plan{Stays: []string{"CustomResourceDefinition jars with 1 custom resource", kept}}},
		"Uncounted": {definitions: []definition{cleaned("caps", nil, 0)}, want: plan{Stays: []string{"CustomResourceDefinition caps, without its custom resources", kept}}},
		"CRDs": {definitions: []definition{lamps, wicks}, crds: true, want: plan{
			Remove: []string{"CustomResourceDefinition lamps with 2 custom resources"}, Lost: 3, Definitions: []definition{lamps}, Stays: []string{keptWicks, kept},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "lamp"}}
			tt.want.Remove, tt.want.Notes = append([]string{removedSub, removedCSV}, tt.want.Remove...), notes
			got := newPlan(&inventory{subscription: sub, versions: []operatorsv1alpha1.ClusterServiceVersion{csv}, definitions: tt.definitions}, tt.crds)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutput covers the output before and after the removal.
func TestOutput(t *testing.T) {
	t.Parallel()
	const human = "To remove:\n  - Subscription shop/lamp\nTo keep:\n  - Namespace shop\n"
	for name, tt := range map[string]struct {
		form string
		done outcome
		want string
	}{
		"DryRun":  {form: console.Human, done: outcomePlanned, want: human + "Nothing was changed (dry run).\n"},
		"Removed": {form: console.Human, done: outcomeRemoved, want: human + "Removed.\n"},
		"JSON": {form: console.JSON, done: outcomeRemoved, want: `{
  "remove": [
    "Subscription shop/lamp"
  ],
  "lostObjects": 0,
  "stays": [
    "Namespace shop"
  ],
  "outcome": "removed"
}
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{output: console.Output{Form: tt.form}}
			p := &plan{Remove: []string{"Subscription shop/lamp"}, Stays: []string{"Namespace shop"}}
			var out strings.Builder
			if err := errors.Join(o.show(&out, p), o.finish(&out, p, tt.done)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusedOutput covers the output of a removal that the user does not confirm.
func TestRefusedOutput(t *testing.T) {
	t.Parallel()
	refused := errors.New("nothing was removed")
	for form, want := range map[string]string{
		console.Human: "",
		console.JSON:  "{\n  \"remove\": [\n    \"Subscription shop/lamp\"\n  ],\n  \"lostObjects\": 0,\n  \"stays\": [],\n  \"outcome\": \"planned\"\n}\n",
	} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			o := options{output: console.Output{Form: form}}
			var out strings.Builder
			err := o.withDocument(&out, &plan{Remove: []string{"Subscription shop/lamp"}, Stays: []string{}}, outcomePlanned, refused)
			if diff := cmp.Diff(want, out.String()); diff != "" || !errors.Is(err, refused) {
				t.Errorf("error %v; (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestUsers finds the other versions that need a definition. Copies do not count.
func TestUsers(t *testing.T) {
	t.Parallel()
	version := func(uid types.UID, owned, required string, labels map[string]string) operatorsv1alpha1.ClusterServiceVersion {
		csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: string(uid), UID: uid, Labels: labels}}
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: owned}}
		csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: required}}
		return csv
	}
	copied := version("copied", "lamps", "", map[string]string{operatorsv1alpha1.CopiedLabelKey: "other"})
	copied.Status.Reason = operatorsv1alpha1.CSVReasonCopied
	all := []operatorsv1alpha1.ClusterServiceVersion{
		version("own", "lamps", "", nil), version("owner", "lamps", "", nil), version("needs", "", "lamps", nil), version("not", "wicks", "oils", nil), copied,
	}
	for name, tt := range map[string]struct {
		all               []operatorsv1alpha1.ClusterServiceVersion
		users, dependents []string
	}{
		"Owned":    {all: all, users: []string{"shop/owner", "shop/needs"}},
		"Required": {all: slices.Delete(slices.Clone(all), 1, 2), users: []string{"shop/needs"}, dependents: []string{"shop/needs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			users, dependents := usersOf("lamps", tt.all, all[:1])
			if diff := cmp.Diff([][]string{tt.users, tt.dependents}, [][]string{users, dependents}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCleanedObjects counts the custom resources that a clean-up deletes.
func TestCleanedObjects(t *testing.T) {
	t.Parallel()
	version := func(uid, targets string, cleanup bool, change ...func(*operatorsv1alpha1.ClusterServiceVersion)) operatorsv1alpha1.ClusterServiceVersion {
		csv := operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), Annotations: map[string]string{operatorsv1.OperatorGroupTargetsAnnotationKey: targets},
		}}
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "lamps"}}
		csv.Spec.Cleanup.Enabled = cleanup
		for _, c := range change {
			c(&csv)
		}
		return csv
	}
	annotated := func(key, value string) func(*operatorsv1alpha1.ClusterServiceVersion) {
		return func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations = map[string]string{key: value} }
	}
	objects := []metav1.PartialObjectMetadata{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}, {ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}},
	}
	for name, tt := range map[string]struct {
		own     operatorsv1alpha1.ClusterServiceVersion
		others  []operatorsv1alpha1.ClusterServiceVersion
		want    int
		cleanup bool
	}{
		"None":       {own: version("own", "", false)},
		"All":        {own: version("own", "", true), want: 3, cleanup: true},
		"Targets":    {own: version("own", "a,c", true), want: 1, cleanup: true},
		"Unrecorded": {own: version("own", "", true, annotated("x", "y")), want: 3, cleanup: true},
		"Skipped":    {own: version("own", "", true, annotated(api.AnnotationSkipCleanup, "true"))},
		"Shared":     {own: version("own", "", true), others: []operatorsv1alpha1.ClusterServiceVersion{version("other", "b", true)}, want: 2, cleanup: true},
		"Other":      {own: version("own", "", false), others: []operatorsv1alpha1.ClusterServiceVersion{version("other", "b", true)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := []operatorsv1alpha1.ClusterServiceVersion{tt.own}
			if got, cleanup := cleanedObjects("lamps", objects, append(own, tt.others...), own); got != tt.want || cleanup != tt.cleanup {
				t.Errorf("got %d, %t, want %d, %t", got, cleanup, tt.want, tt.cleanup)
			}
		})
	}
}
