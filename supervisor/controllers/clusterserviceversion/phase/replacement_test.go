package phase

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/versions"
)

func version(name, replaces string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *operatorsv1alpha1.ClusterServiceVersion {
	csv := kettle()
	csv.Name, csv.UID = name, "uid-"+csv.UID
	csv.Spec.Replaces, csv.Status.Phase = replaces, phase
	return csv
}

func TestReplacementOf(t *testing.T) {
	a, b, c := version("a", "", replacing), version("b", "a", replacing), version("c", "b", installs)
	self := version("self", "self", succeeded)
	x, y, tail := version("x", "y", pending), version("y", "x", pending), version("tail", "x", pending)
	y.CreationTimestamp = metav1.NewTime(noon())
	leaving := version("leaving", "self", pending)
	leaving.DeletionTimestamp = &metav1.Time{Time: noon()}
	orphan := version("orphan", "never", pending)
	bad, good := version("bad", "orphan", broken), version("good", "orphan", pending)
	others := versions.List{a, b, bad, c, good, leaving, orphan, self, tail, x, y}
	at := func(name string, phase operatorsv1alpha1.ClusterServiceVersionPhase) *Neighbour {
		return &Neighbour{Name: name, Phase: phase}
	}
	circle := func(names ...string) []string { return names }
	cases := map[string]struct {
		reason string
		csv    *operatorsv1alpha1.ClusterServiceVersion
		want   Replacement
	}{
		"Leaf":   {"the end of the chain counts", a, Replacement{Successor: at("b", replacing), Last: at("c", installs)}},
		"Middle": {"both neighbours", b, Replacement{Predecessor: at("a", replacing), Successor: at("c", installs), Last: at("c", installs)}},
		"Head":   {"nobody after", c, Replacement{Predecessor: at("b", replacing)}},
		"Self":   {"replacing oneself is replacing nobody, and one that leaves replaces nobody", self, Replacement{}},
		"Vanished": {"of two that replace it the one that works counts; and what it replaces is not there", orphan, Replacement{
			Successor: at("good", pending), Last: at("good", pending), MissingPredecessor: "never",
		}},
		"OlderInCircle":   {"of a circle the older gives way", x, Replacement{Successor: at("tail", pending), Last: at("tail", pending), Cycle: circle("x", "y")}},
		"YoungerInCircle": {"to the younger", y, Replacement{Predecessor: at("x", pending), Cycle: circle("y", "x")}},
		"OutsideCircle":   {"who only leads to a circle is not in it", tail, Replacement{Predecessor: at("x", pending)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ReplacementOf(tc.csv, others)); diff != "" {
				t.Errorf("%s\nreplacementOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChainsComeToRest checks versions with random spec.replaces, including cycles, in random
// phases. Without problems, all reach Succeeded or are deleted, at least one stays, and each
// deleted one leaves a replacement.
func TestChainsComeToRest(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		var all versions.List
		for i, name := range names {
			v := version(name, rapid.SampledFrom([]string{"", "a", "b", "c", "d", "never"}).Draw(t, "replaces"),
				rapid.SampledFrom(allPhases()).Draw(t, "phase"))
			v.UID = types.UID(strconv.Itoa(i))
			v.CreationTimestamp = metav1.NewTime(noon().Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour))
			v.Status.Reason = rapid.SampledFrom(allReasons()).Draw(t, "reason")
			all = append(all, v)
		}
		now := noon()
		for range 60 {
			all = step(t, all, now)
			now = now.Add(time.Minute)
		}
		if len(all) == 0 {
			t.Fatal("nothing is left")
		}
		for _, v := range all {
			if v.Status.Phase != succeeded {
				t.Fatalf("%s, which replaces %q, is %s (%s: %s)", v.Name, v.Spec.Replaces, v.Status.Phase, v.Status.Reason, v.Status.Message)
			}
		}
	})
}

// step makes each version do one transition, from the state before any of them.
func step(t *rapid.T, all versions.List, now time.Time) versions.List {
	var left versions.List
	for _, v := range all {
		o := good(v.Status.Phase, v.Status.Reason)
		o.CSV = v.DeepCopy()
		o.CSV.Annotations, o.CSV.Labels = GroupAnnotations(&o.Groups[0]), Labels(o.CSV, &o.Groups[0])
		o.Now, o.Replacement = now, ReplacementOf(v, all)
		next := Next(o)
		if slices.Contains(next.Actions, DeleteSelf) {
			if o.Replacement.Successor == nil {
				t.Fatalf("%s goes and nothing replaces it", v.Name)
			}
			continue
		}
		follow(&o, next)
		left = append(left, o.CSV)
	}
	return left
}
