package cleanup

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
	"github.com/chandlery/chandlery/supervisor/rbac/impersonate"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// cupDefinition returns a definition that plans of some versions have brought.
func cupDefinition(scope apiextensionsv1.ResourceScope, names ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "cups.example.com", Annotations: map[string]string{}},
		Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Group: "example.com", Scope: scope},
	}
	for _, v := range names {
		crd.Annotations["operatorframework.io/installed-alongside-"+v[:1]] = v
	}
	return crd
}

// boundedBy returns the policy of a group that targets namespaces.
func boundedBy(namespaces ...string) deletionPolicy {
	return deletionPolicy{group: &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "own"},
		Status:     operatorsv1.OperatorGroupStatus{Namespaces: namespaces, LastUpdated: &metav1.Time{Time: noon()}},
	}}
}

func TestBoundsOfCleanUp(t *testing.T) {
	const namespaced, cluster = apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped
	mine := cupDefinition(namespaced, "b/pot.v1", "a/kettle.v1")
	wide := cupDefinition(cluster, "a/kettle.v1")
	elsewhere := cupDefinition(namespaced, "b/kettle.v1", "c/a/kettle.v1")
	otherKey := cupDefinition(namespaced)
	otherKey.Annotations["example.com/installed-alongside"] = "a/kettle.v1"
	ours := cupDefinition(namespaced, "a/kettle.v1")
	ours.Spec.Group = "operators.coreos.com"
	oursWide := cupDefinition(cluster, "a/kettle.v1")
	oursWide.Spec.Group = "operators.coreos.com"
	const (
		unrecorded = "no install plan of this version created the definition"
		never      = "kinds of operators.coreos.com are never cleaned up"
		bounded    = "the kind is cluster-scoped and the OperatorGroup does not target all namespaces"
		unbounded  = "the namespace does not have exactly one OperatorGroup, whose targets and account limit the clean-up"
	)
	cases := map[string]struct {
		reason string
		told   []string // the namespaces in the annotation of the version
		policy deletionPolicy
		crd    *apiextensionsv1.CustomResourceDefinition
		lists  []string
		leaves string
	}{
		"Own":             {"its plan brought it, in the namespace of the group", []string{"a"}, boundedBy("a"), mine, []string{"a"}, ""},
		"Unrecorded":      {"an administrator brought it", []string{"a"}, boundedBy("a"), cupDefinition(namespaced), nil, unrecorded},
		"Elsewhere":       {"a version of another namespace brought it", []string{"a"}, boundedBy("a"), elsewhere, nil, unrecorded},
		"OtherAnnotation": {"an annotation of another name is no record", []string{"a"}, boundedBy("a"), otherKey, nil, unrecorded},
		"OurKinds":        {"operators are not for operators to delete", []string{""}, boundedBy(""), ours, nil, never},
		"OurWideKinds":    {"nor those without a namespace", []string{""}, boundedBy(""), oursWide, nil, never},
		"ClusterBounded":  {"a bounded group has no part of a cluster-scoped kind", []string{"a"}, boundedBy("a"), wide, nil, bounded},
		"ClusterClaimed":  {"not even if the version claims to watch all", []string{""}, boundedBy("a"), wide, nil, bounded},
		"ClusterGlobal":   {"a group for all namespaces has", []string{""}, boundedBy(""), wide, []string{""}, ""},
		"Global":          {"it bounds no version that was told less", []string{"a"}, boundedBy(""), mine, []string{"a"}, ""},
		"Claimed":         {"what the version claims counts within the group", []string{""}, boundedBy("a"), mine, []string{"a"}, ""},
		"Narrowed":        {"so it does when the group targets less than before", []string{"a", "b"}, boundedBy("b"), mine, []string{"b"}, ""},
		"Widened":         {"or more than the version was told", []string{"a"}, boundedBy("a", "b"), mine, []string{"a"}, ""},
		"Moved":           {"or others", []string{"a"}, boundedBy("b"), mine, nil, "the OperatorGroup no longer targets the namespaces of the version"},
		"NoTargets":       {"a group may select none", []string{"a"}, boundedBy(), mine, nil, "OperatorGroup own targets no namespace"},
		"NoGroup":         {"without a group neither targets nor account are known", []string{"a"}, deletionPolicy{}, mine, nil, unbounded},
		"Untold":          {"a version that was told nothing looks after nothing", nil, boundedBy("a"), mine, nil, "the namespaces of the version are unknown"},
		"Terminating":     {"in a namespace that is deleted all objects are", []string{""}, deletionPolicy{terminating: true}, mine, []string{"a"}, ""},
		"TerminatingWide": {"but none outside of it", []string{""}, deletionPolicy{terminating: true}, wide, nil, bounded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.policy.scope(cupOwner("a", tc.told...), tc.crd, nil)
			if diff := cmp.Diff(tc.lists, got.lists(tc.crd.Spec.Scope)); diff != "" {
				t.Errorf("%s\nlists(): -want, +got:\n%s", tc.reason, diff)
			}
			if got.keepReason != tc.leaves {
				t.Errorf("%s\nleaves = %q, want %q", tc.reason, got.keepReason, tc.leaves)
			}
		})
	}
}

// TestBoundsKeepWhatOthersLookAfter has another version of the kind in one of the namespaces.
func TestBoundsKeepWhatOthersLookAfter(t *testing.T) {
	crd := cupDefinition(apiextensionsv1.NamespaceScoped, "a/kettle.v1")
	got := boundedBy("a", "b").scope(cupOwner("a", ""), crd, versions.List{cupOwner("b", "b")})
	if diff := cmp.Diff([]string{"a"}, got.lists(crd.Spec.Scope)); diff != "" || got.contains("b") {
		t.Errorf("contains(b) = %t; lists(): -want, +got:\n%s", got.contains("b"), diff)
	}
	got = boundedBy("").scope(cupOwner("a", ""), crd, versions.List{cupOwner("b", "b")})
	if diff := cmp.Diff([]string{""}, got.lists(crd.Spec.Scope)); diff != "" || got.contains("b") || !got.contains("c") {
		t.Errorf("of all namespaces: contains(b) = %t, contains(c) = %t; lists(): -want, +got:\n%s", got.contains("b"), got.contains("c"), diff)
	}
}

func TestObserveBounds(t *testing.T) {
	group := func(namespace, name string) client.Object {
		return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	leaving := there.DeepCopy()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: noon()}, []string{"example.com/keep"}
	for name, tc := range map[string]struct {
		objects     []client.Object
		fails       string // the kind that cannot be read
		group       string
		deleted     bool
		terminating bool
		err         string
	}{
		"Group":               {objects: []client.Object{there, group("a", "own"), group("b", "other")}, group: "own"},
		"GroupInLeaving":      {objects: []client.Object{leaving, group("a", "own")}, group: "own"},
		"TwoGroups":           {objects: []client.Object{there, group("a", "own"), group("a", "other")}},
		"TwoGroupsInLeaving":  {objects: []client.Object{leaving, group("a", "own"), group("a", "other")}, terminating: true},
		"NoGroup":             {objects: []client.Object{there, group("b", "other")}, deleted: true},
		"NoGroupInLeaving":    {objects: []client.Object{leaving}, deleted: true, terminating: true},
		"NoNamespace":         {deleted: true},
		"UnreadableGroups":    {objects: []client.Object{leaving}, fails: "OperatorGroupList", err: "listing OperatorGroups of namespace a: not now"},
		"UnreadableNamespace": {objects: []client.Object{leaving}, fails: "Namespace", err: "getting Namespace a: not now"},
		"NamespaceNotNeeded":  {objects: []client.Object{group("a", "own")}, fails: "Namespace", group: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := fixtures.Scheme(t)
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.fails == "OperatorGroupList" {
						return errors.New("not now")
					}
					return c.List(ctx, list, opts...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if tc.fails == "Namespace" {
						return errors.New("not now")
					}
					return c.Get(ctx, key, o, opts...)
				},
			}).Build()
			got, err := (resourceCleaner{live: live}).observePolicy(t.Context(), "a")
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %s", err, tc.err)
				}
				return
			}
			found := ""
			if got.group != nil {
				found = got.group.Name
			}
			if err != nil || found != tc.group || got.deleted != tc.deleted || got.terminating != tc.terminating {
				t.Errorf("group %q, deleted %t, terminating %t, error %v; want %q, %t, %t",
					found, got.deleted, got.terminating, err, tc.group, tc.deleted, tc.terminating)
			}
		})
	}
}

// TestBoundsOfADeletedGroup has a version with a record of the group that was deleted before it.
func TestBoundsOfADeletedGroup(t *testing.T) {
	const unbounded = "the namespace does not have exactly one OperatorGroup, whose targets and account limit the clean-up"
	deleted := deletionPolicy{deleted: true}
	terminating := deletionPolicy{deleted: true, terminating: true}
	cases := map[string]struct {
		reason  string
		account *string // the record; nil for none
		told    []string
		policy  deletionPolicy
		scope   apiextensionsv1.ResourceScope
		lists   []string
		leaves  string
	}{
		"Global":       {"the group targeted all namespaces", new("none"), []string{""}, deleted, apiextensionsv1.NamespaceScoped, []string{""}, ""},
		"GlobalWide":   {"and may have cluster-scoped objects", new("none"), []string{""}, deleted, apiextensionsv1.ClusterScoped, []string{""}, ""},
		"Bounded":      {"the group targeted two", new("none"), []string{"a", "b"}, deleted, apiextensionsv1.NamespaceScoped, []string{"a", "b"}, ""},
		"BoundedWide":  {"and no cluster-scoped objects", new("none"), []string{"a"}, deleted, apiextensionsv1.ClusterScoped, nil, "the kind is cluster-scoped and the OperatorGroup does not target all namespaces"},
		"Leaving":      {"a namespace that is deleted as a whole takes the group first", new("none"), []string{""}, terminating, apiextensionsv1.NamespaceScoped, []string{""}, ""},
		"Account":      {"the account bounded the clean-up and is not known to exist", new("named"), []string{""}, deleted, apiextensionsv1.NamespaceScoped, nil, unbounded},
		"LeavingCook":  {"objects of the namespace are deleted in any case", new("named"), []string{""}, terminating, apiextensionsv1.NamespaceScoped, []string{"a"}, ""},
		"Unrecorded":   {"a version that no group was recorded on claims what it likes", nil, []string{""}, deleted, apiextensionsv1.NamespaceScoped, nil, unbounded},
		"SeveralExist": {"the record is of a time with one group", new("none"), []string{""}, deletionPolicy{}, apiextensionsv1.NamespaceScoped, nil, unbounded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := cupOwner("a", tc.told...)
			if tc.account != nil {
				csv.Labels = map[string]string{"chandlery.dev/operator-group-account": *tc.account}
			}
			got := tc.policy.scope(csv, cupDefinition(tc.scope, "a/kettle.v1"), nil)
			if diff := cmp.Diff(tc.lists, got.lists(tc.scope)); diff != "" {
				t.Errorf("%s\nlists(): -want, +got:\n%s", tc.reason, diff)
			}
			if got.keepReason != tc.leaves {
				t.Errorf("%s\nleaves = %q, want %q", tc.reason, got.keepReason, tc.leaves)
			}
		})
	}
}

func TestBoundsArePendingUntilTheGroupHasTargets(t *testing.T) {
	b := boundedBy("a")
	if got := b.pending(); got != "" {
		t.Errorf("pending() = %q of a group with targets", got)
	}
	b.group.Status.LastUpdated = nil
	if got, want := b.pending(), "the status of OperatorGroup own does not list its namespaces yet"; got != want {
		t.Errorf("pending() = %q, want %q", got, want)
	}
	if got := (deletionPolicy{}).pending(); got != "" {
		t.Errorf("pending() = %q without a group", got)
	}
}

// TestCleanUpActsForTheGroupsAccount checks that the supervisor gets no right to delete where an
// account deletes.
func TestCleanUpActsForTheGroupsAccount(t *testing.T) {
	if got := (resourceDeleter{}).permission(); got != "cleanup" {
		t.Errorf("without an account the right is %q", got)
	}
	if got := (resourceDeleter{actingAs: "as an account"}).permission(); got != "check" {
		t.Errorf("with an account the right is %q", got)
	}
}

// TestDeletesWithTheRightsOf deletes with the account of the group, or with the supervisor's permissions
// where the group names none.
func TestDeletesWithTheRightsOf(t *testing.T) {
	own, accounts := memory(t), memory(t)
	r := resourceCleaner{client: own, accounts: impersonate.New(&rest.Config{}, func(cfg *rest.Config, _ client.Options) (client.Client, error) {
		if cfg.Impersonate.UserName != "system:serviceaccount:a:cook" {
			return nil, errors.New("no client for " + cfg.Impersonate.UserName)
		}
		return accounts, nil
	}, client.Options{})}
	limited, wrong := boundedBy("a"), boundedBy("a")
	limited.group.Spec.ServiceAccountName = "cook"
	wrong.group.Spec.ServiceAccountName = "waiter"
	for name, tc := range map[string]struct {
		policy deletionPolicy
		want   resourceDeleter
		err    string
	}{
		"NoGroup":    {deletionPolicy{}, resourceDeleter{client: own}, ""},
		"NoAccount":  {boundedBy("a"), resourceDeleter{client: own}, ""},
		"Account":    {limited, resourceDeleter{accounts, "as ServiceAccount cook of OperatorGroup own"}, ""},
		"Unreadable": {wrong, resourceDeleter{}, "making a client for ServiceAccount a/waiter: no client for system:serviceaccount:a:waiter"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.deleter(tc.policy)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("deletes %q, error %v; want %q, %q", got.actingAs, err, tc.want.actingAs, tc.err)
			}
		})
	}
}
