package clusterserviceversion

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/phase"
)

// TestRecordOfTheGroup checks the record of the account of a group, and of its targets. They bound
// the clean-up after the deletion of the group (package cleanup, TestBoundsOfADeletedGroup).
func TestRecordOfTheGroup(t *testing.T) {
	const failed, pending, succeeded = operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseSucceeded
	none, named := new(api.GroupAccountNone), new(api.GroupAccountNamed)
	cases := map[string]struct {
		reason   string
		phase    operatorsv1alpha1.ClusterServiceVersionPhase
		recorded *string
		targets  []string
		account  string
		want     *string
	}{
		"New":           {"the account is recorded with the targets", pending, nil, []string{"a"}, "", none},
		"NewAccount":    {"an account bounds the clean-up and may be deleted too", pending, nil, []string{"a"}, "cook", named},
		"Gained":        {"a group that names an account counts at once", failed, none, []string{"a"}, "cook", named},
		"GainedPending": {"so it does for a version that waits", pending, none, []string{"a"}, "cook", named},
		"Other":         {"another account bounds the clean-up too", failed, named, []string{"a"}, "chef", named},
		"LostFailed":    {"a former account bounds more than need be, so it may stay", failed, named, []string{"a"}, "", named},
		"LostPending":   {"so it may for a version that waits", pending, named, []string{"a"}, "", named},
		"LostSucceeded": {"a version that works is written", succeeded, named, []string{"a"}, "", none},
		"AllNamespaces": {"a group for all namespaces is recorded with no name of one", pending, nil, []string{""}, "", none},
		"NoTargets":     {"a group that selects nothing has the same targets as text, and no record", failed, nil, nil, "", nil},
		"TargetsLost":   {"a record of the time before is removed", failed, none, nil, "", nil},
		"LostBoth":      {"also one of an account", failed, named, nil, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := good(tc.phase, "", func(o *phase.Input) {
				o.Groups[0].Status.Namespaces = []string{"before"}
				o.CSV.Annotations = phase.GroupAnnotations(&o.Groups[0])
			})
			csv := kettle()
			csv.Namespace = "a"
			csv.Status, csv.Labels, csv.Annotations = o.CSV.Status, phase.APILabels(csv), maps.Clone(o.CSV.Annotations)
			o.CSV = csv
			if tc.recorded != nil {
				csv.Labels[api.LabelGroupAccount] = *tc.recorded
			}
			group := &o.Groups[0]
			group.Namespace, group.Spec.ServiceAccountName, group.Status.Namespaces = csv.Namespace, tc.account, tc.targets
			maps.Copy(csv.Annotations, map[string]string{
				"olm.operatorGroup": group.Name, "olm.operatorNamespace": group.Namespace, "olm.targetNamespaces": group.BuildTargetNamespaces(),
			})

			c := memory(t, csv)
			w := &versionWriter{client: c, clock: clocktesting.NewFakePassiveClock(noon())}
			found := &operatorsv1alpha1.ClusterServiceVersion{}
			get(t, c, csv, found)
			o.CSV = found
			if next := phase.Next(o); slices.Contains(next.Actions, phase.Annotate) {
				if err := w.annotate(t.Context(), o.CSV, &o.Groups[0], next.Cause); err != nil {
					t.Fatal(err)
				}
				get(t, c, csv, found)
				if o.CSV = found; slices.Contains(phase.Next(o).Actions, phase.Annotate) {
					t.Errorf("%s: annotations %v differ after the write", tc.reason, found.Annotations)
				}
			}
			var got *string
			if account, recorded := found.Labels[api.LabelGroupAccount]; recorded {
				got = &account
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: record -want, +got:\n%s", tc.reason, diff)
			}
			if got, want := found.Annotations["olm.targetNamespaces"], group.BuildTargetNamespaces(); got != want {
				t.Errorf("%s: targets %q, want %q", tc.reason, got, want)
			}
		})
	}
}

// TestFormerAnnotations checks that labels replace the annotations of earlier builds, which OLM would copy to pods.
func TestFormerAnnotations(t *testing.T) {
	for name, tc := range map[string]struct {
		former map[string]string
		want   map[string]string
	}{
		"Account": {map[string]string{"chandlery.dev/operator-group-account": "cook"}, map[string]string{api.LabelGroupAccount: "none"}},
		"Catalog": {
			map[string]string{"chandlery.dev/catalog": "olm/shop", "chandlery.dev/channel": "stable", "chandlery.dev/bundle-digest": "x"},
			map[string]string{api.LabelGroupAccount: "none", api.LabelCatalogNamespace: "olm", api.LabelCatalog: "shop"},
		},
	} {
		for _, p := range []operatorsv1alpha1.ClusterServiceVersionPhase{operatorsv1alpha1.CSVPhaseFailed, operatorsv1alpha1.CSVPhaseSucceeded} {
			o := good(p, "")
			maps.Copy(o.CSV.Annotations, tc.former)
			c := memory(t, o.CSV)
			w := &versionWriter{client: c, clock: clocktesting.NewFakePassiveClock(noon())}
			get(t, c, o.CSV, o.CSV)
			if !slices.Contains(phase.Next(o).Actions, phase.Annotate) {
				t.Errorf("%s, %s: annotations %v stay", name, p, o.CSV.Annotations)
			}
			if err := w.annotate(t.Context(), o.CSV, &o.Groups[0], nil); err != nil {
				t.Fatal(err)
			}
			get(t, c, o.CSV, o.CSV)
			if left := phase.FormerAnnotations(o.CSV); len(left) > 0 {
				t.Errorf("%s, %s: annotations %v are left", name, p, left)
			}
			if diff := cmp.Diff(tc.want, o.CSV.Labels); diff != "" {
				t.Errorf("%s, %s: labels (-want +got):\n%s", name, p, diff)
			}
			if slices.Contains(phase.Next(o).Actions, phase.Annotate) {
				t.Errorf("%s, %s: another write follows", name, p)
			}
		}
	}
}

func get(t *testing.T, c client.Client, o, into client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), into); err != nil {
		t.Fatal(err)
	}
}
