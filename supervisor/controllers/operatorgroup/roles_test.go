package operatorgroup

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

func claiming(namespace, name, apis string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Annotations: map[string]string{"olm.providedAPIs": apis},
	}}
}

func TestGroupRoleNames(t *testing.T) {
	// OLM created these names on real clusters.
	for want, group := range map[string]*operatorsv1.OperatorGroup{
		"olm.og.olm-operators.admin-4ZLCGAP5QcGCG77n5nsv27O9w2VWNfAzuGGQ43":    claiming("olm", "olm-operators", ""),
		"olm.og.global-operators.admin-5UD4U2IfBGbw51Qy2Jaefk1uawvkj2OJILlc3w": claiming("operators", "global-operators", ""),
	} {
		if got := groupRoleName(group, admin); got != want {
			t.Errorf("groupRoleName(%s/%s) = %q, want %q", group.Namespace, group.Name, got, want)
		}
	}

	long := claiming("kitchen", strings.Repeat("g", validation.DNS1123SubdomainMaxLength), "")
	if got := groupRoleName(long, admin); len(got) != validation.DNS1123SubdomainMaxLength {
		t.Errorf("a name of a group with a long name has %d characters, want %d", len(got), validation.DNS1123SubdomainMaxLength)
	}
	if problems := validation.IsValidLabelValue(groupLabels(long)["olm.owner"]); len(problems) > 0 {
		t.Errorf("the label of a group with a long name: %s", problems)
	}
	dotted := claiming("kitchen", strings.Repeat("g", 62)+".-x", "")
	if problems := validation.IsValidLabelValue(groupLabels(dotted)["olm.owner"]); len(problems) > 0 {
		t.Errorf("the label of a group whose name is cut at a dot: %s", problems)
	}
	if groupRoleName(claiming("a", "group", ""), admin) == groupRoleName(claiming("b", "group", ""), admin) {
		t.Error("groups of two namespaces share a role")
	}
}

func TestGroupRoles(t *testing.T) {
	roles := groupRoles(claiming("kitchen", "group", "PackageManifest.v1.packages.operators.coreos.com,Lamp.v1.shop.example"))
	if len(roles) != 3 {
		t.Fatalf("groupRoles(...) = %d roles, want 3", len(roles))
	}
	wantLabels := map[string]string{
		"olm.managed": "true", "olm.owner": "group", "olm.owner.namespace": "kitchen", "olm.owner.kind": "OperatorGroup",
	}
	if diff := cmp.Diff(wantLabels, roles[0].Labels); diff != "" {
		t.Errorf("labels: -want, +got:\n%s", diff)
	}
	selectors := roles[2].AggregationRule.ClusterRoleSelectors
	if len(selectors) != 2 || selectors[1].MatchLabels["olm.opgroup.permissions/aggregate-to-4bca9f23e412d79d-view"] != "true" {
		t.Errorf("the role view gathers %v", selectors)
	}

	u, err := encode(roles[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := u.Object["rules"]; ok {
		t.Error("an aggregated role has explicit rules")
	}
	empty := groupRoles(claiming("kitchen", "group", ""))[0]
	u, err = encode(empty)
	if err != nil {
		t.Fatal(err)
	}
	if rules, ok := u.Object["rules"].([]any); !ok || len(rules) != 0 || u.Object["aggregationRule"] != nil {
		t.Errorf("a role that gathers nothing is sent as %v, want it with an empty list of rules", u.Object)
	}
}

func TestSameGroupRole(t *testing.T) {
	const apis = "Lamp.v1.shop.example,Tray.v1.shop.example"
	wanted := func() *rbacv1.ClusterRole { return groupRoles(claiming("kitchen", "group", apis))[0] }
	none := func() *rbacv1.ClusterRole { return groupRoles(claiming("kitchen", "group", ""))[0] }
	left := none()
	left.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"shop.example"}, Resources: []string{"lamps"}}}
	cases := map[string]struct {
		reason     string
		want, have *rbacv1.ClusterRole
		change     func(*rbacv1.ClusterRole)
		same       bool
	}{
		"Same":     {"nothing to do", wanted(), wanted(), func(*rbacv1.ClusterRole) {}, true},
		"Gathered": {"rules come from elsewhere", wanted(), wanted(), func(r *rbacv1.ClusterRole) { r.Rules = left.Rules }, true},
		"Order":    {"OLM writes no order", wanted(), wanted(), func(r *rbacv1.ClusterRole) { slices.Reverse(r.AggregationRule.ClusterRoleSelectors) }, true},
		"Labels":   {"others may label it", wanted(), wanted(), func(r *rbacv1.ClusterRole) { r.Labels["team"] = "x" }, true},
		"Stripped": {"a label of ours is missing", wanted(), wanted(), func(r *rbacv1.ClusterRole) { delete(r.Labels, "olm.owner") }, false},
		"Fewer": {"an API more is claimed", wanted(), wanted(), func(r *rbacv1.ClusterRole) {
			r.AggregationRule.ClusterRoleSelectors = r.AggregationRule.ClusterRoleSelectors[1:]
		}, false},
		"Empty":  {"none claimed, none gathered", none(), none(), func(*rbacv1.ClusterRole) {}, true},
		"Left":   {"what it gathered is still there", none(), left, func(*rbacv1.ClusterRole) {}, false},
		"First":  {"it begins to aggregate", wanted(), none(), func(*rbacv1.ClusterRole) {}, false},
		"NoMore": {"it gathers, and nothing is claimed", none(), wanted(), func(*rbacv1.ClusterRole) {}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.change(tc.have)
			if got := sameGroupRole(tc.want, tc.have); got != tc.same {
				t.Errorf("%s\nsameGroupRole(...) = %t, want %t", tc.reason, got, tc.same)
			}
		})
	}
}

func TestLeftovers(t *testing.T) {
	role := func(name, owner string) rbacv1.ClusterRole {
		return rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"olm.owner": owner, "olm.owner.namespace": "kitchen", "olm.owner.kind": "OperatorGroup",
		}}}
	}
	labelled := []rbacv1.ClusterRole{
		role("olm.og.alive.admin-x1", "alive"),
		role("alive-admin", "alive"),
		role("olm.og.gone.admin-x2", "gone"),
		role("gone-edit", "gone"),
		role("cluster-admin", "gone"),
		role("olm.og.other.admin-x3", "gone"),
		role("olm.og..admin-x4", ""),
	}
	var got []string
	for _, r := range orphanedRoles([]operatorsv1.OperatorGroup{*claiming("kitchen", "alive", "")}, labelled) {
		got = append(got, r.Name)
	}
	if diff := cmp.Diff([]string{"olm.og.gone.admin-x2", "gone-edit"}, got); diff != "" {
		t.Errorf("orphanedRoles(...): -want, +got:\n%s", diff)
	}

	long := claiming("kitchen", strings.Repeat("g", 100), "")
	if got := orphanedRoles([]operatorsv1.OperatorGroup{*long}, []rbacv1.ClusterRole{*groupRoles(long)[0]}); len(got) > 0 {
		t.Error("the role of a group with a long name is taken for left over")
	}
	if got := orphanedRoles(nil, []rbacv1.ClusterRole{*groupRoles(long)[0]}); len(got) != 1 {
		t.Error("the role of a group with a long name is not found when the group is gone")
	}
}

func TestAPIRoles(t *testing.T) {
	csv := lamps()
	csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{Name: "nogroup"})
	csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
		{Name: "packagemanifests", Group: "packages.operators.coreos.com", Version: "v1", Kind: "PackageManifest"},
	}
	found := providedAPIs(csv)
	if len(found) != 2 || found[0].Server != "lamps.shop.example" || found[1].Server != "v1.packages.operators.coreos.com" {
		t.Fatalf("providedAPIs(...) = %+v", found)
	}
	got := map[string][]string{}
	for _, s := range found {
		for _, role := range s.roles() {
			labels := make([]string, 0, len(role.Labels))
			for key, value := range role.Labels {
				labels = append(labels, key+"="+value)
			}
			slices.Sort(labels)
			rule := role.Rules[0]
			got[role.Name] = append([]string{
				strings.Join(rule.Verbs, ",") + " " + strings.Join(rule.Resources, ",") + "." + strings.Join(rule.APIGroups, ",") +
					" " + strings.Join(rule.ResourceNames, ","),
			}, labels...)
		}
	}
	labels := func(hash string, l accessLevel) []string {
		return []string{
			"olm.managed=true", "olm.opgroup.permissions/aggregate-to-" + hash + "-" + string(l) + "=true",
			"rbac.authorization.k8s.io/aggregate-to-" + string(l) + "=true",
		}
	}
	lamp, manifest := aggregationHash(found[0]), "4bca9f23e412d79d"
	want := map[string][]string{
		"lamps.shop.example-v1-admin":   append([]string{"* lamps.shop.example "}, labels(lamp, admin)...),
		"lamps.shop.example-v1-edit":    append([]string{"create,update,patch,delete lamps.shop.example "}, labels(lamp, edit)...),
		"lamps.shop.example-v1-view":    append([]string{"get,list,watch lamps.shop.example "}, labels(lamp, view)...),
		"lamps.shop.example-v1-crdview": append([]string{"get customresourcedefinitions.apiextensions.k8s.io lamps.shop.example"}, labels(lamp, view)...),
		"packagemanifests-v1-admin":     append([]string{"* packagemanifests.packages.operators.coreos.com "}, labels(manifest, admin)...),
		"packagemanifests-v1-edit":      append([]string{"create,update,patch,delete packagemanifests.packages.operators.coreos.com "}, labels(manifest, edit)...),
		"packagemanifests-v1-view":      append([]string{"get,list,watch packagemanifests.packages.operators.coreos.com "}, labels(manifest, view)...),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("roles: -want, +got:\n%s", diff)
	}
}

func TestSurfacesOfOneName(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
		{Group: "a.example", Version: "v1", Kind: "Backup", Name: "backups"},
		{Group: "b.example", Version: "v1", Kind: "Backup", Name: "backups"},
		{Group: "evil.example", Version: "v1", Kind: "Lamp", Name: "lamps.shop.example"},
	}
	found := providedAPIs(csv)
	if len(found) != 1 || found[0].API.Group != "a.example" {
		t.Errorf("providedAPIs(...) = %v, want the first of two with one name and none with that of a definition", found)
	}
}

func aggregationHash(s providedAPI) string {
	return strings.TrimSuffix(strings.TrimPrefix(aggregationLabel(s.API, admin), api.PrefixAggregate), "-admin")
}

func TestWhoseAPIRole(t *testing.T) {
	s := providedAPIs(lamps())[0]
	owner := metav1.OwnerReference{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "lamps.shop.example", UID: "1"}
	small := owner
	small.Kind = "customresourcedefinition"
	ours := func(refs ...metav1.OwnerReference) *rbacv1.ClusterRole {
		role := s.roles()[0]
		role.OwnerReferences = refs
		return role
	}
	another := owner
	another.Kind, another.Name = "APIService", "v1.other.example"
	bare := ours(small)
	bare.Labels = nil
	cases := map[string]struct {
		reason               string
		have                 *rbacv1.ClusterRole
		same, isOwnedByOther bool
	}{
		"Ours":      {"as wanted", ours(owner), true, false},
		"Ownerless": {"the garbage collector would not delete it", ours(), false, false},
		"OLM":       {"a kind in small letters is not collected either", ours(small), false, false},
		"OldOLM":    {"before OLM labelled its objects", bare, false, false},
		"Another":   {"that of an API of the same name in another group", ours(another), false, true},
		"Theirs":    {"a user's role with that name", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "lamps.shop.example-v1-admin"}}, false, true},
		"Managed": {"a role that a bundle has brought", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "lamps.shop.example-v1-admin", Labels: map[string]string{"olm.managed": "true"},
		}}, false, true},
		"Edited": {"rules are put back", func() *rbacv1.ClusterRole {
			role := ours(owner)
			role.Rules = nil
			return role
		}(), false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := s.sameAPIRole(s.roles()[0], tc.have); got != tc.same {
				t.Errorf("%s\nsameAPIRole(...) = %t, want %t", tc.reason, got, tc.same)
			}
			if got := s.isOwnedByOther(tc.have); got != tc.isOwnedByOther {
				t.Errorf("%s\nforeign(...) = %t, want %t", tc.reason, got, tc.isOwnedByOther)
			}
		})
	}
}

func TestMisfit(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Names.Kind = "Lamp"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}}
	for _, tc := range []struct {
		api  schema.GroupVersionKind
		want string
	}{
		{schema.GroupVersionKind{Version: "v1", Kind: "Lamp"}, ""},
		{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "its kind is Lamp, not Secret"},
		{schema.GroupVersionKind{Version: "v2", Kind: "Lamp"}, "it has no version v2"},
	} {
		if got := (providedAPI{API: tc.api}).mismatch(crd); got != tc.want {
			t.Errorf("misfit(%s) = %q, want %q", tc.api, got, tc.want)
		}
	}
}

func TestInstalls(t *testing.T) {
	for phase, want := range map[operatorsv1alpha1.ClusterServiceVersionPhase]bool{
		operatorsv1alpha1.CSVPhaseNone: false, operatorsv1alpha1.CSVPhasePending: false, operatorsv1alpha1.CSVPhaseInstallReady: true,
		operatorsv1alpha1.CSVPhaseInstalling: true, operatorsv1alpha1.CSVPhaseSucceeded: true, operatorsv1alpha1.CSVPhaseFailed: false,
		operatorsv1alpha1.CSVPhaseReplacing: true, operatorsv1alpha1.CSVPhaseDeleting: false,
	} {
		csv := lamps()
		csv.Status.Phase = phase
		if got := isVerified(csv); got != want {
			t.Errorf("installs(%q) = %t, want %t", phase, got, want)
		}
	}
}
