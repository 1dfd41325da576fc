package providedapis_test

import (
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// cluster holds some groups with their members, by namespace.
type cluster struct {
	groups  []operatorsv1.OperatorGroup
	members map[string][]operatorsv1alpha1.ClusterServiceVersion
}

// drawCluster draws groups with any targets, ages and claims, and with members that provide any of three APIs.
func drawCluster(t *rapid.T) cluster {
	namespaces := []string{"a", "b", "c", "d"}
	c := cluster{members: map[string][]operatorsv1alpha1.ClusterServiceVersion{}}
	drawAPIs := rapid.Map(rapid.SliceOfDistinct(rapid.SampledFrom([]string{lamp, tray, soup}), rapid.ID[string]),
		func(apis []string) string { return strings.Join(apis, ",") })
	for _, namespace := range namespaces {
		targets := rapid.SliceOfDistinct(rapid.SampledFrom(namespaces), rapid.ID[string]).Draw(t, "targets")
		if rapid.IntRange(0, 2).Draw(t, "global") == 0 {
			targets = []string{""}
		}
		g := group(namespace, rapid.IntRange(0, 3).Draw(t, "age"), drawAPIs.Draw(t, "claims"), targets...)
		g.Spec.StaticProvidedAPIs = rapid.IntRange(0, 5).Draw(t, "static") == 0
		c.groups = append(c.groups, *g)
		for range rapid.IntRange(0, 2).Draw(t, "members") {
			c.members[namespace] = append(c.members[namespace], *operator(namespace, drawAPIs.Draw(t, "provides")))
		}
	}
	return c
}

// claim makes a group read some state of the groups, and write its claims. It reports whether that changed
// anything.
func (c cluster) claim(i int, seen []operatorsv1.OperatorGroup) bool {
	g := c.groups[i].DeepCopy()
	want := providedapis.Desired(g, seen, c.members[g.Namespace], true)
	if want.String() == providedapis.Claimed(g).String() {
		return false
	}
	g.Annotations = map[string]string{operatorsv1.OperatorGroupProvidedAPIsAnnotationKey: want.String()}
	c.groups[i] = *g
	return true
}

func (c cluster) copied() []operatorsv1.OperatorGroup {
	return append([]operatorsv1.OperatorGroup(nil), c.groups...)
}

// TestClaimsConverge makes groups claim in any order, some of them based on outdated state, and then each on the
// current state. It checks that soon nothing changes any more. No two groups of a common namespace then have
// the same derived API. Every verdict on a member is then final: the member may run, or the verdict names the
// group in conflict.
func TestClaimsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		for range rapid.IntRange(0, 3).Draw(t, "rounds at once") {
			seen := c.copied()
			for i := range c.groups {
				c.claim(i, seen)
			}
		}
		for round := 0; ; round++ {
			changed := false
			for i := range c.groups {
				changed = c.claim(i, c.groups) || changed
			}
			if !changed {
				break
			}
			if round > len(c.groups) {
				t.Fatalf("claims still change after %d rounds", round)
			}
		}
		c.check(t)
	})
}

func (c cluster) check(t *rapid.T) {
	for i := range c.groups {
		g := &c.groups[i]
		for j := range i {
			other := &c.groups[j]
			both := providedapis.Claimed(g).Both(providedapis.Claimed(other))
			fixed := g.Spec.StaticProvidedAPIs && other.Spec.StaticProvidedAPIs
			if providedapis.Intersect(g, other) && len(both) > 0 && !fixed {
				t.Errorf("groups %s and %s both claim %s", g.Namespace, other.Namespace, both)
			}
		}
		for _, csv := range c.members[g.Namespace] {
			found := providedapis.Evaluate(g, c.groups, &csv)
			modes, err := operatorsv1alpha1.NewInstallModeSet(csv.Spec.InstallModes)
			if err != nil {
				t.Fatal(err)
			}
			fits := modes.Supports(csv.Namespace, g.Status.Namespaces) == nil
			if fits && found.Result == providedapis.Add || found.Result == providedapis.Remove {
				t.Errorf("in the end the verdict on %s in %s is %s", providedapis.Of(&csv), csv.Namespace, found.Result)
			}
		}
	}
}
