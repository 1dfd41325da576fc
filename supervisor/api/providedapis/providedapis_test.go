package providedapis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

const (
	lamp = "Lamp.v1.shop.example"
	tray = "Tray.v1.shop.example"
	soup = "Soup.v2.kitchen.example"
)

// group returns an OperatorGroup in the namespace of the same name, created a number of hours after the first.
func group(name string, age int, claims string, targets ...string) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name, Name: "group",
			CreationTimestamp: metav1.NewTime(time.Date(2026, 8, 1, age, 0, 0, 0, time.UTC)),
		},
		Status: operatorsv1.OperatorGroupStatus{Namespaces: targets},
	}
	if claims != "" {
		g.Annotations = map[string]string{"olm.providedAPIs": claims}
	}
	return g
}

func static(g *operatorsv1.OperatorGroup) *operatorsv1.OperatorGroup {
	g.Spec.StaticProvidedAPIs = true
	return g
}

func groups(list ...*operatorsv1.OperatorGroup) []operatorsv1.OperatorGroup {
	var out []operatorsv1.OperatorGroup
	for _, g := range list {
		out = append(out, *g)
	}
	return out
}

func operator(namespace string, apis ...string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}}
	for _, api := range providedapis.Parse(strings.Join(apis, ",")).Sorted() {
		csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{
			Name: strings.ToLower(api.Kind) + "s." + api.Group, Version: api.Version, Kind: api.Kind,
		})
	}
	for _, mode := range []operatorsv1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		csv.Spec.InstallModes = append(csv.Spec.InstallModes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true})
	}
	return csv
}

func TestOf(t *testing.T) {
	csv := operator("kitchen", lamp, soup)
	csv.Spec.CustomResourceDefinitions.Owned = append(csv.Spec.CustomResourceDefinitions.Owned,
		operatorsv1alpha1.CRDDescription{Name: "nogroup", Version: "v1", Kind: "NoGroup"},
		operatorsv1alpha1.CRDDescription{Name: "nokinds.shop.example", Version: "v1"},
		operatorsv1alpha1.CRDDescription{Name: "noversions.shop.example", Kind: "NoVersion"},
		operatorsv1alpha1.CRDDescription{Name: "dots.shop.example", Version: "v1.2", Kind: "Dot"},
		operatorsv1alpha1.CRDDescription{Name: "commas.shop.example,x", Version: "v1", Kind: "Comma"})
	csv.Spec.CustomResourceDefinitions.Required = []operatorsv1alpha1.CRDDescription{{Name: "spoons.kitchen.example", Version: "v1", Kind: "Spoon"}}
	csv.Spec.APIServiceDefinitions.Owned = []operatorsv1alpha1.APIServiceDescription{
		{Name: "trays", Group: "shop.example", Version: "v1", Kind: "Tray"},
	}
	if got, want := providedapis.Of(csv).String(), lamp+","+soup+","+tray; got != want {
		t.Errorf("Of(...) = %q, want %q", got, want)
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Empty":     {"no claim", "", ""},
		"Sorted":    {"the order of the text says nothing", soup + "," + lamp, lamp + "," + soup},
		"Spaces":    {"people write spaces", " " + lamp + " , " + lamp, lamp},
		"Nonsense":  {"what is no API is no claim", "Lamp,.v1.g,Lamp..g," + lamp, lamp},
		"CoreGroup": {"an API without group", "Pod.v1.", "Pod.v1."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := providedapis.Parse(tc.text).String(); got != tc.want {
				t.Errorf("%s\nParse(%q) = %q, want %q", tc.reason, tc.text, got, tc.want)
			}
		})
	}
}

func TestHash(t *testing.T) {
	// FNV-1a, 64 bits, in hexadecimal, as found on clusters that OLM ran.
	api := schema.GroupVersionKind{Group: "packages.operators.coreos.com", Version: "v1", Kind: "PackageManifest"}
	if got, want := providedapis.Hash(api), "4bca9f23e412d79d"; got != want {
		t.Errorf("Hash(%s) = %s, want %s", api, got, want)
	}
}

func TestIntersect(t *testing.T) {
	cases := map[string]struct {
		reason string
		a, b   *operatorsv1.OperatorGroup
		want   bool
	}{
		"Apart":      {"each its own", group("a", 0, "", "a"), group("b", 0, "", "b"), false},
		"Shared":     {"one namespace in both", group("a", 0, "", "x", "y"), group("b", 0, "", "y"), true},
		"Home":       {"an operator reaches the namespace it runs in", group("a", 0, "", "b"), group("b", 0, "", "c"), true},
		"Global":     {"all namespaces has every other's", group("a", 0, "", ""), group("b", 0, "", "b"), true},
		"TwoGlobal":  {"all and all", group("a", 0, "", ""), group("b", 0, "", ""), true},
		"NoTargets":  {"a group without targets reaches nothing", group("a", 0, "", ""), group("b", 0, ""), false},
		"BothNobody": {"nor do two", group("a", 0, ""), group("b", 0, ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := providedapis.Intersect(tc.a, tc.b); got != tc.want {
				t.Errorf("%s\nIntersect(a, b) = %t, want %t", tc.reason, got, tc.want)
			}
			if got := providedapis.Intersect(tc.b, tc.a); got != tc.want {
				t.Errorf("%s\nIntersect(b, a) = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestEvaluateClaims(t *testing.T) {
	type want struct {
		Result providedapis.Result
		APIs   string
		Groups []string
	}
	cases := map[string]struct {
		reason string
		group  *operatorsv1.OperatorGroup
		others []operatorsv1.OperatorGroup
		csv    *operatorsv1alpha1.ClusterServiceVersion
		want   want
	}{
		"Nothing":   {"what provides nothing disturbs nobody", group("a", 0, "", ""), nil, operator("a"), want{Result: providedapis.UpToDate}},
		"Settled":   {"all is claimed", group("a", 0, lamp+","+tray, "a"), nil, operator("a", lamp), want{Result: providedapis.UpToDate}},
		"Add":       {"the group has yet to claim", group("a", 0, lamp, "a"), nil, operator("a", lamp, tray), want{Result: providedapis.Add, APIs: tray}},
		"Elsewhere": {"who claims it reaches other namespaces", group("a", 0, "", "a"), groups(group("b", 0, lamp, "b")), operator("a", lamp), want{Result: providedapis.Add, APIs: lamp}},
		"OtherAPI": {
			"who reaches the same namespaces claims something else", group("a", 0, "", "a"), groups(group("b", 0, soup, "")),
			operator("a", lamp),
			want{Result: providedapis.Add, APIs: lamp},
		},
		"OtherVersion": {
			"another version is another API", group("a", 0, "", "a"), groups(group("b", 0, "Lamp.v2.shop.example", "")),
			operator("a", lamp),
			want{Result: providedapis.Add, APIs: lamp},
		},
		"Conflict": {
			"somebody else has it, though younger", group("a", 0, "", "x"), groups(group("c", 9, lamp, "x"), group("b", 9, lamp+","+tray, "x")),
			operator("a", lamp, tray),
			want{providedapis.Conflict, lamp + "," + tray, []string{"b/group", "c/group"}},
		},
		"Keeps": {
			"of two that claimed, the older keeps", group("a", 0, lamp, "x"), groups(group("b", 9, lamp, "x")),
			operator("a", lamp),
			want{Result: providedapis.UpToDate},
		},
		"Remove": {
			"and the younger gives back", group("a", 9, lamp, "x"), groups(group("b", 0, lamp, "x")),
			operator("a", lamp),
			want{providedapis.Remove, lamp, []string{"b/group"}},
		},
		"Tie": {
			"of two as old, the first by name keeps", group("b", 0, lamp, "x"), groups(group("a", 0, lamp, "x")),
			operator("b", lamp),
			want{providedapis.Remove, lamp, []string{"a/group"}},
		},
		"Fixed": {
			"a fixed list goes before an older find", group("a", 0, lamp, "x"), groups(static(group("b", 9, lamp, "x"))),
			operator("a", lamp),
			want{providedapis.Remove, lamp, []string{"b/group"}},
		},
		"StaticMissing": {"a fixed list is not added to", static(group("a", 0, lamp, "x")), nil, operator("a", lamp, tray), want{Result: providedapis.Static, APIs: tray}},
		"StaticSettled": {"what it names may run", static(group("a", 0, lamp, "x")), groups(group("b", 0, lamp, "x")), operator("a", lamp), want{Result: providedapis.UpToDate}},
		"TwoStatic": {
			"of two fixed lists the older keeps", static(group("a", 9, lamp, "x")), groups(static(group("b", 0, lamp, "x"))),
			operator("a", lamp),
			want{providedapis.Static, lamp, []string{"b/group"}},
		},
		"SameNamespace": {
			"groups of one namespace do not compete", group("a", 9, lamp, "x"), groups(group("a", 0, lamp, "x")),
			operator("a", lamp),
			want{Result: providedapis.UpToDate},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := providedapis.Evaluate(tc.group, tc.others, tc.csv)
			got := want{Result: found.Result, APIs: found.APIs.String()}
			for _, key := range found.Groups {
				got.Groups = append(got.Groups, key.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nVerdict(...): -want, +got:\n%s", tc.reason, diff)
			}
			if explained := found.Explain() != ""; explained != found.Blocks() {
				t.Errorf("%s\nBlocks() = %t, Explain() = %q", tc.reason, found.Blocks(), found.Explain())
			}
		})
	}
}

func TestDesired(t *testing.T) {
	unfit := operator("a", lamp)
	unfit.Spec.InstallModes = []operatorsv1alpha1.InstallMode{{Type: "AllNamespaces", Supported: true}}
	leaving := operator("a", lamp)
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 8, 2, 0, 0, 0, 0, time.UTC)}
	type csvs = []operatorsv1alpha1.ClusterServiceVersion
	cases := map[string]struct {
		reason  string
		group   *operatorsv1.OperatorGroup
		others  []operatorsv1.OperatorGroup
		members csvs
		closed  bool
		want    string
	}{
		"Claim":     {"what members provide", group("a", 0, "", "a"), nil, csvs{*operator("a", soup), *operator("a", lamp)}, false, lamp + "," + soup},
		"Gone":      {"what nobody provides any longer is given back", group("a", 0, lamp+","+tray, "a"), nil, csvs{*operator("a", lamp)}, false, lamp},
		"Yield":     {"so is what another keeps", group("a", 9, lamp+","+tray, "a"), groups(group("b", 0, lamp, "")), csvs{*operator("a", lamp), *operator("a", tray)}, false, tray},
		"YieldAll":  {"and what its provider then no longer serves", group("a", 9, lamp+","+tray, "a"), groups(group("b", 0, lamp, "")), csvs{*operator("a", lamp, tray)}, false, ""},
		"Whole":     {"a member with a conflict claims nothing", group("a", 0, "", "a"), groups(group("b", 0, lamp, "")), csvs{*operator("a", lamp, tray), *operator("a", soup)}, false, soup},
		"Crowded":   {"a group among several takes on no more", group("a", 0, lamp, "a"), nil, csvs{*operator("a", lamp, tray)}, true, lamp},
		"Static":    {"a fixed list stays", static(group("a", 0, lamp, "a")), nil, csvs{*operator("a", soup)}, false, lamp},
		"Unfit":     {"what cannot run here claims nothing", group("a", 0, "", "a"), nil, csvs{*unfit}, false, ""},
		"UnfitNow":  {"but what it had claimed is still in use", group("a", 0, lamp, "a"), nil, csvs{*unfit}, false, lamp},
		"Leaving":   {"what is being deleted keeps its claim to the end", group("a", 0, lamp, "a"), nil, csvs{*leaving}, false, lamp},
		"LateComer": {"and makes no new one", group("a", 0, "", "a"), nil, csvs{*leaving}, false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := providedapis.Desired(tc.group, tc.others, tc.members, !tc.closed).String(); got != tc.want {
				t.Errorf("%s\nDesired(...) = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
