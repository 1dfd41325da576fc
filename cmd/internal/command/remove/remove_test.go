package remove

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	cleanup := csv
	cleanup.Spec.Cleanup.Enabled = true
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
		"Cleanup": {
			has: inventory{subscription: sub(nil), versions: []operatorsv1alpha1.ClusterServiceVersion{cleanup}},
			want: plan{Remove: []string{removedSub, removedCSV}, Stays: []string{kept}, Notes: []string{
				"spec.cleanup of ClusterServiceVersion lamp.v1 also deletes its custom resources",
			}},
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
	if diff := cmp.Diff([]string{"shop/owner", "shop/needs"}, usersOf("lamps", all, all[:1])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
