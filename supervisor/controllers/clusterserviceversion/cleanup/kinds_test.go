package cleanup

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/ownership"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// withConsole returns the mapper of a cluster with priority classes and console links.
func withConsole() apimeta.RESTMapper {
	priorities := schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}
	links := schema.GroupVersionKind{Group: "console.openshift.io", Version: "v1", Kind: "ConsoleLink"}
	m := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{priorities.GroupVersion(), links.GroupVersion()})
	m.Add(priorities, apimeta.RESTScopeRoot)
	m.Add(links, apimeta.RESTScopeRoot)
	return m
}

// TestServedKinds looks up kinds in clusters that have some API groups. It asks for each group
// once, and asks the mapper for kinds of existing groups only.
func TestServedKinds(t *testing.T) {
	const console, scheduling = "console.openshift.io", "scheduling.k8s.io"
	priorities := map[string]string{"priorityclasses." + scheduling: scheduling + "/v1, Kind=PriorityClass"}
	links := map[string]string{"consolelinks." + console: console + "/v1, Kind=ConsoleLink"}
	both := maps.Clone(priorities)
	maps.Copy(both, links)
	broken := errors.New("no answer")
	for name, tc := range map[string]struct {
		reason string
		groups map[string]error
		want   map[string]string
		err    error
	}{
		"Both":      {"the kinds that the mapper knows", nil, both, nil},
		"NoConsole": {"no kind of a group that does not exist", map[string]error{console: apierrors.NewNotFound(schema.GroupResource{}, console)}, priorities, nil},
		"NoAnswer":  {"an unknown group is not an absent one", map[string]error{console: broken}, nil, broken},
	} {
		t.Run(name, func(t *testing.T) {
			asked := map[string]int{}
			hasGroup := func(_ context.Context, group string) (bool, error) {
				asked[group]++
				err := tc.groups[group]
				return err == nil, client.IgnoreNotFound(err)
			}
			kinds, err := servedKinds(t.Context(), withConsole(), hasGroup, contentKinds(nil))
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			var got map[string]string
			for _, k := range kinds {
				if got == nil {
					got = map[string]string{}
				}
				got[k.resource] = k.gvk.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for group, n := range asked {
				if n > 1 {
					t.Errorf("asked %d times for the group %s", n, group)
				}
			}
		})
	}
}

// TestGroupsOfKubernetesNeedNoRequest checks for which groups the API server is asked.
func TestGroupsOfKubernetesNeedNoRequest(t *testing.T) {
	for group, want := range map[string]bool{"scheduling.k8s.io": false, "console.openshift.io": true} {
		asked := false
		c := &Cleaner{client: memory(t), hasGroup: func(context.Context, string) (bool, error) {
			asked = true
			return true, nil
		}}
		if has, err := c.servesGroup(t.Context(), group); !has || err != nil || asked != want {
			t.Errorf("servesGroup(%s) = %t, %v, after a request: %t, want %t", group, has, err, asked, want)
		}
	}
}

// TestWhatPlansMakeIsCleanedUp checks that each kind that only labels connect to a version has a
// stage, and that the supervisor has the permissions for it.
func TestWhatPlansMakeIsCleanedUp(t *testing.T) {
	text, err := os.ReadFile("../../../../deploy/rbac/supervisor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(text), "\n---\n")
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
		t.Fatal(err)
	}
	for _, gk := range plansteps.Kinds(nil).Labelled() {
		swept := slices.ContainsFunc(slices.Concat(bindings(), roles()), func(k kind) bool { return k.gvk.GroupKind() == gk })
		if !swept && !slices.Contains(contentKinds(nil), gk) {
			t.Errorf("no stage looks for %s", gk)
		}
		resource, _ := apimeta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
		for _, verb := range []string{"list", "delete"} {
			if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, gk.Group) && slices.Contains(r.Resources, resource.Resource) && slices.Contains(r.Verbs, verb)
			}) {
				t.Errorf("the supervisor may not %s %s", verb, resource.GroupResource())
			}
		}
	}
}

func TestSelectable(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   bool
	}{
		"Usual":   {"most names label what is theirs", "kettle.v1", true},
		"Longest": {"up to a length", strings.Repeat("k", 63), true},
		"TooLong": {"a longer one labels nothing, and the API server takes no such selector", strings.Repeat("k", 64), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			csv := kettle()
			csv.Name = tc.name
			for _, k := range []kind{apiServiceKind(), bindings()[0], roles()[0]} {
				if got := selectable(k.labels(csv)); got != tc.want {
					t.Errorf("%s\nselectable(%s) = %t, want %t", tc.reason, k.resource, got, tc.want)
				}
			}
			if !selectable(copies().labels(csv)) {
				t.Errorf("%s\ncopies are found by the namespace and not by the name", tc.reason)
			}
			if got := selectable(client.MatchingLabels(ownership.ManagedLabels(csv))); got != tc.want {
				t.Errorf("%s\nselectable(owned) = %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
