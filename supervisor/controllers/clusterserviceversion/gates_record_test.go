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
	none, cook := new(""), new("cook")
	cases := map[string]struct {
		reason   string
		phase    operatorsv1alpha1.ClusterServiceVersionPhase
		recorded *string
		targets  []string
		account  string
		want     *string
	}{
		"New":           {"the account is recorded with the targets", pending, nil, []string{"a"}, "", none},
		"NewAccount":    {"an account bounds the clean-up and may be deleted too", pending, nil, []string{"a"}, "cook", cook},
		"Gained":        {"a group that names an account counts at once", failed, none, []string{"a"}, "cook", cook},
		"GainedPending": {"so it does for a version that waits", pending, none, []string{"a"}, "cook", cook},
		"Other":         {"another account counts", failed, cook, []string{"a"}, "chef", new("chef")},
		"LostFailed":    {"a former account bounds more than need be, so it may stay", failed, cook, []string{"a"}, "", cook},
		"LostPending":   {"so it may for a version that waits", pending, cook, []string{"a"}, "", cook},
		"LostSucceeded": {"a version that works is written", succeeded, cook, []string{"a"}, "", none},
		"AllNamespaces": {"a group for all namespaces is recorded with no name of one", pending, nil, []string{""}, "", none},
		"NoTargets":     {"a group that selects nothing has the same targets as text, and no record", failed, nil, nil, "", nil},
		"TargetsLost":   {"a record of the time before is removed", failed, none, nil, "", nil},
		"LostBoth":      {"also one of an account", failed, cook, nil, "", nil},
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
			delete(csv.Annotations, api.AnnotationGroupAccount)
			if tc.recorded != nil {
				csv.Annotations[api.AnnotationGroupAccount] = *tc.recorded
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
			if account, recorded := found.Annotations[api.AnnotationGroupAccount]; recorded {
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

func get(t *testing.T, c client.Client, o, into client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), into); err != nil {
		t.Fatal(err)
	}
}
