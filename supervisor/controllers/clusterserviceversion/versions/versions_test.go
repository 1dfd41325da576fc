package versions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

// version returns a version that replaces another.
func version(name, replaces string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: name}}
	csv.Spec.Replaces = replaces
	return csv
}

// deleted returns a version that is being deleted.
func deleted(name, replaces string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := version(name, replaces)
	csv.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
	return csv
}

func names(list versions.List) []string {
	var out []string
	for _, csv := range list {
		out = append(out, csv.Name)
	}
	return out
}

// TestAffected checks which versions a changed or deleted version concerns.
func TestAffected(t *testing.T) {
	a, b, c := version("a", ""), version("b", "a"), version("c", "b")
	stranger := version("stranger", "")
	sharer, owner := version("sharer", ""), version("owner", "")
	for _, csv := range []*operatorsv1alpha1.ClusterServiceVersion{sharer, owner} {
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com"}}
	}
	cases := map[string]struct {
		reason string
		csv    *operatorsv1alpha1.ClusterServiceVersion
		others versions.List
		want   []string
	}{
		"Changes":  {"all of its chain", b, versions.List{a, b, c, stranger}, []string{"a", "c"}},
		"LeafGone": {"the next leaf has waited for it", a, versions.List{b, c, stranger}, []string{"b", "c"}},
		"HeadGone": {"those that it was to replace", c, versions.List{a, b, stranger}, []string{"a", "b"}},
		"Shares":   {"a version that may not own an API because of it", owner, versions.List{sharer, stranger}, []string{"sharer"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(tc.others.Affected(tc.csv))); diff != "" {
				t.Errorf("%s\nAffected(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAdoptable checks the versions whose objects a version may take over.
func TestAdoptable(t *testing.T) {
	a, b := version("a", ""), version("b", "a")
	cases := map[string]struct {
		reason string
		others versions.List
		want   []string
	}{
		"Chain":          {"the versions before and after it", versions.List{a, b, version("c", "b")}, []string{"a", "c"}},
		"FailedUpgrade":  {"a replacement that is being deleted", versions.List{a, b, deleted("c", "b")}, []string{"a", "c"}},
		"AllOfIt":        {"and the one after it", versions.List{a, b, deleted("c", "b"), deleted("d", "c")}, []string{"a", "c", "d"}},
		"OfTheOlder":     {"one that was to replace the same", versions.List{a, b, deleted("other", "a")}, []string{"a", "other"}},
		"Stranger":       {"not a deleted version of another chain", versions.List{a, b, deleted("stranger", "")}, []string{"a"}},
		"ReplacesAbsent": {"nor one that replaces a version that does not exist", versions.List{a, b, deleted("stranger", "never")}, []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, names(tc.others.Adoptable(b))); diff != "" {
				t.Errorf("%s\nAdoptable(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
