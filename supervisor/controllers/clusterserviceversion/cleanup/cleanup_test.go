package cleanup

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

// cupOwner returns an owner of cups that watches some namespaces.
func cupOwner(namespace string, targets ...string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := kettle()
	csv.Namespace, csv.UID = namespace, types.UID("uid-"+namespace)
	csv.Spec.InstallModes = nil
	for _, mode := range []operatorsv1alpha1.InstallModeType{
		operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
		operatorsv1alpha1.InstallModeTypeMultiNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces,
	} {
		csv.Spec.InstallModes = append(csv.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true})
	}
	csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: "cups.example.com", Kind: "Cup"}}
	for i, target := range targets {
		if i == 0 {
			csv.Annotations = map[string]string{"olm.targetNamespaces": target}
			continue
		}
		csv.Annotations["olm.targetNamespaces"] += "," + target
	}
	return csv
}

func TestScope(t *testing.T) {
	leaving := cupOwner("leaving", "a")
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	stranger := kettle()
	stranger.UID = "stranger"
	narrow, confused, cleaned := cupOwner("a", ""), cupOwner("a", ""), cupOwner("a", "")
	narrow.Spec.InstallModes = narrow.Spec.InstallModes[:1]
	confused.Status.Phase, confused.Status.Reason = broken, "UnsupportedOperatorGroup"
	for _, reason := range []operatorsv1alpha1.ConditionReason{"UnsupportedOperatorGroup", "WaitingOnCleanup"} {
		cleaned.SetPhase(broken, reason, "m", &metav1.Time{Time: noon()})
	}
	ran, idle := cupOwner("b"), cupOwner("b")
	ran.SetPhase(succeeded, "r", "m", &metav1.Time{Time: noon()})
	ran.SetPhase(broken, "NoOperatorGroup", "m", &metav1.Time{Time: noon()})
	idle.SetPhase(broken, "NoOperatorGroup", "m", &metav1.Time{Time: noon()})
	many := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}
	cases := map[string]struct {
		reason  string
		csv     *operatorsv1alpha1.ClusterServiceVersion
		others  versions.List
		cluster bool
		lists   []string
		holds   []string // of the namespaces a, b and 1
	}{
		"Own":        {"what it was told to look after", cupOwner("a", "a"), nil, false, []string{"a"}, []string{"a"}},
		"NeverTold":  {"it never looked after anything", cupOwner("a"), nil, false, nil, nil},
		"Narrow":     {"what it was told and could not do it did not look after", narrow, nil, false, nil, nil},
		"Confused":   {"all namespaces may mean none, which its reason says", confused, nil, false, nil, nil},
		"Cleaned":    {"and said before the clean-up began", cleaned, nil, false, nil, nil},
		"All":        {"everything", cupOwner("a", ""), nil, false, []string{""}, []string{"a", "b", "1"}},
		"Shared":     {"but what another looks after", cupOwner("a", ""), versions.List{cupOwner("b", "b")}, false, []string{""}, []string{"a", "1"}},
		"BothAll":    {"nothing, where another looks after all", cupOwner("a", ""), versions.List{cupOwner("b", "")}, false, nil, nil},
		"Unknown":    {"nor where nobody knows what another looks after", cupOwner("a", ""), versions.List{ran}, false, nil, nil},
		"Idle":       {"one that never ran may come to look after its own namespace", cupOwner("a", ""), versions.List{idle}, false, []string{""}, []string{"a", "1"}},
		"Overlap":    {"of several what is its own alone", cupOwner("a", "a", "b"), versions.List{cupOwner("b", "b")}, false, []string{"a"}, []string{"a"}},
		"Leaving":    {"who leaves too looks after nothing", cupOwner("b", "a", "b"), versions.List{leaving, stranger, cupOwner("b", "a", "b")}, false, []string{"a", "b"}, []string{"a", "b"}},
		"Many":       {"many are listed at once", cupOwner("a", many...), nil, false, []string{""}, []string{"1"}},
		"Cluster":    {"what has no namespace", cupOwner("a", "a"), nil, true, []string{""}, []string{"a"}},
		"ClusterOne": {"is left to any other", cupOwner("a", "a"), versions.List{cupOwner("b", "b")}, true, nil, []string{"a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := scopeOf(tc.csv, "cups.example.com", tc.others)
			scope := apiextensionsv1.NamespaceScoped
			if tc.cluster {
				scope = apiextensionsv1.ClusterScoped
			}
			if diff := cmp.Diff(tc.lists, got.lists(scope)); diff != "" {
				t.Errorf("%s\nlists(%s): -want, +got:\n%s", tc.reason, scope, diff)
			}
			var holds []string
			for _, namespace := range []string{"a", "b", "1"} {
				if len(tc.lists) > 0 && got.contains(namespace) {
					holds = append(holds, namespace)
				}
			}
			if diff := cmp.Diff(tc.holds, holds); diff != "" && len(tc.lists) > 0 {
				t.Errorf("%s\nholds(...): -want, +got:\n%s", tc.reason, diff)
			}
			if len(tc.lists) > 0 && !got.contains("") {
				t.Errorf("%s\nwhat has no namespace is left out", tc.reason)
			}
		})
	}
}

func TestScopeWaitsForTheUndecided(t *testing.T) {
	fresh := cupOwner("b")
	if got := scopeOf(cupOwner("a", ""), "cups.example.com", versions.List{fresh}); got.undecided != fresh || got.keepReason != "" {
		t.Errorf("with one that nobody has looked at, undecided is %v and leaves %q", got.undecided, got.keepReason)
	}
	if got := scopeOf(cupOwner("a", ""), "cups.example.com", versions.List{cupOwner("b", "")}); got.keepReason != "csv b/kettle.v1 serves all namespaces" {
		t.Errorf("with one for all namespaces, leaves is %q", got.keepReason)
	}
}

func TestReplacedLeavesWhatUsersMade(t *testing.T) {
	old, next := version("kettle.v1", "", replacing), version("kettle.v2", "kettle.v1", installs)
	next.UID = "2"
	elsewhere := version("kettle.v3", "kettle.v1", installs)
	elsewhere.Namespace, elsewhere.UID = "bar", "3"
	gone := version("kettle.v2", "kettle.v1", installs)
	gone.DeletionTimestamp = &metav1.Time{Time: noon()}
	self := version("kettle.v1", "", deleting)
	cases := map[string]struct {
		reason string
		csv    *operatorsv1alpha1.ClusterServiceVersion
		others versions.List
		want   bool
	}{
		"Alone":     {"no version takes over", old, versions.List{old}, false},
		"Replaced":  {"the next version does", old, versions.List{old, next}, true},
		"Elsewhere": {"one of another namespace does not", old, versions.List{old, elsewhere}, false},
		"BothGo":    {"nor one that goes too", old, versions.List{old, gone}, false},
		"ByItself":  {"what deleted itself has been replaced", self, versions.List{self}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&cleanup{csv: tc.csv, others: tc.others}).replaced(); got != tc.want {
				t.Errorf("%s\nreplaced() = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// mug returns a custom resource that has been terminating for a while.
func mug(name string, going time.Duration, finalizers ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Cup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: name, Finalizers: finalizers},
	}
	if going > 0 {
		o.DeletionTimestamp = &metav1.Time{Time: noon().Add(-going)}
	}
	return o
}

func TestWaitingNamesWhatIsWaitedFor(t *testing.T) {
	var left stageResult
	for _, o := range []*metav1.PartialObjectMetadata{
		mug("a", 0), mug("b", time.Second, "example.com/drain"), mug("c", 2*time.Minute, "example.com/drain"), mug("d", 2*time.Minute),
	} {
		left.add(o)
		if isStuck(o, noon()) {
			left.recordStuck(o, "cups.example.com")
		}
	}
	got := waitingFor("clean-up, stage 1 of 9 (custom resources)", left)
	want := &Report{
		Message: "waiting for clean-up, stage 1 of 9 (custom resources): 4 left, first Cup kitchen/a, Cup kitchen/b, Cup kitchen/c; " +
			"Cup kitchen/c has been blocked for more than a minute by the finalizers example.com/drain; " +
			`see "kubectl get cups.example.com c -n kitchen -o yaml"`,
		Pending: []operatorsv1alpha1.ResourceList{{Group: "example.com", Kind: "Cup", Instances: []operatorsv1alpha1.ResourceInstance{
			{Namespace: "kitchen", Name: "b"}, {Namespace: "kitchen", Name: "c"},
		}}},
		Cause: &api.Cause{Reason: "FinalizersRemaining"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Report{})); diff != "" {
		t.Errorf("waitingFor(...): -want, +got:\n%s", diff)
	}
	if left.isDone() || left.delay(0) != stuckDelay {
		t.Errorf("isDone() = %t, delay(0) = %s; want false, %s", left.isDone(), left.delay(0), stuckDelay)
	}
}

func TestCleanupStatus(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon().Add(d) }
	begun := (&Report{Message: "9 left"}).Status(operatorsv1alpha1.ClusterServiceVersionStatus{Phase: succeeded, Reason: "InstallSucceeded", Message: "m"}, at(0))
	if begun == nil || begun.Phase != succeeded || begun.Reason != "WaitingOnCleanup" || begun.Message != "9 left" {
		t.Fatalf("the first report is written at once and leaves the phase: %+v", begun)
	}
	cases := map[string]struct {
		reason  string
		report  *Report
		after   time.Duration
		written bool
	}{
		"Same":   {"what is the same is not written again", &Report{Message: "9 left"}, time.Hour, false},
		"Soon":   {"what moves is written now and then", &Report{Message: "8 left"}, time.Second, false},
		"Later":  {"every few seconds", &Report{Message: "8 left"}, 5 * time.Second, true},
		"Urgent": {"what fails is said at once", failing("clean-up", errors.New("boom"), "go on"), time.Second, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.report.Status(*begun, at(tc.after)); (got != nil) != tc.written {
				t.Errorf("%s\nStatus(...) = %+v, want written %t", tc.reason, got, tc.written)
			}
		})
	}
}

func TestListable(t *testing.T) {
	v := func(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Storage: storage}
	}
	cases := map[string]struct {
		reason   string
		versions []apiextensionsv1.CustomResourceDefinitionVersion
		want     string
	}{
		"Stored":    {"what is stored needs no conversion", []apiextensionsv1.CustomResourceDefinitionVersion{v("v1", true, false), v("v2", true, true)}, "v2"},
		"NotServed": {"unless it is not served", []apiextensionsv1.CustomResourceDefinitionVersion{v("v1", true, false), v("v2", false, true)}, "v1"},
		"None":      {"nothing is served", []apiextensionsv1.CustomResourceDefinitionVersion{v("v1", false, true)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: tc.versions}}
			if got, ok := listable(crd); got.Version != tc.want || ok != (tc.want != "") {
				t.Errorf("%s\nlistable(...) = %s, %t, want %q", tc.reason, got.Version, ok, tc.want)
			}
		})
	}
}
