package groupindex_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/chandlery/chandlery/supervisor/informer/groupindex"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// group returns the OperatorGroup of a namespace.
func group(namespace string, targets ...string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own", UID: types.UID(namespace)},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: targets},
	}
}

func TestCompeting(t *testing.T) {
	scheme := fixtures.Scheme(t)
	second := group("a", "a")
	second.Name, second.UID = "second", "a2"
	reader := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&operatorsv1.OperatorGroup{}, groupindex.Field, groupindex.Keys).
		WithObjects(group("a", "a"), second, group("b", "b"), group("ab", "a", "b"), group("all", ""), group("none"), group("to-b", "b", "c")).Build()
	cases := map[string]struct {
		reason string
		group  *operatorsv1.OperatorGroup
		want   []string
	}{
		"Own":     {"who reaches its namespace, and who reaches all", group("a", "a"), []string{"ab", "all"}},
		"Two":     {"a group that reaches both of its namespaces comes once", group("x", "a", "b"), []string{"a", "a", "ab", "all", "b", "to-b"}},
		"Home":    {"operators reach the namespace in which they run", group("to-b", "c"), []string{"all"}},
		"All":     {"a group for all namespaces contends with all groups", group("all", ""), []string{"a", "a", "ab", "b", "none", "to-b"}},
		"Nothing": {"a group without targets reaches nothing", group("none"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := groupindex.Competing(t.Context(), reader, tc.group)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range found {
				got = append(got, found[i].Namespace)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestForNamespace(t *testing.T) {
	scheme := fixtures.Scheme(t)
	reader := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&operatorsv1.OperatorGroup{}, groupindex.Field, groupindex.Keys).
		WithObjects(group("a", "a"), group("ab", "a", "b"), group("all", "")).Build()
	found, err := groupindex.ForNamespace(t.Context(), reader, "b")
	if err != nil || len(found) != 1 || found[0].Namespace != "ab" {
		t.Errorf("the groups that reach b are %d, error %v; want the one of namespace ab", len(found), err)
	}
}
