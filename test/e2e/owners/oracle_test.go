package owners_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// The packages of the catalog. A lamp and a clock have a second version in the channel beta. A fan
// and a radio need a socket.
var (
	heads = map[string]map[string]int{
		"lamp": {"stable": 1, "beta": 2}, "clock": {"stable": 1, "beta": 2},
		"fan": {"stable": 1}, "radio": {"stable": 1}, "socket": {"stable": 1},
	}
	needs    = map[string]string{"fan": "socket", "radio": "socket"}
	packages = slices.Sorted(maps.Keys(heads))
)

// ask is the request of a Subscription.
type ask struct {
	name, pkg, channel string
	manual             bool
}

// wanted is an expected InstallPlan.
type wanted struct {
	versions, owners []string
	manual           bool
}

func (w wanted) String() string {
	return fmt.Sprintf("%s for %s", strings.Join(w.versions, "+"), strings.Join(w.owners, "+"))
}

// expect returns the expected InstallPlans for the requests and the installed versions of packages.
// Requests that share a package, requested or needed, have one InstallPlan.
func expect(asks []ask, installed map[string]int) []wanted {
	type group struct {
		packages map[string]int
		asks     []ask
	}
	var groups []*group
	for _, a := range asks {
		head := heads[a.pkg][a.channel]
		if head <= installed[a.pkg] {
			continue
		}
		joined := &group{packages: map[string]int{a.pkg: head}, asks: []ask{a}}
		if need := needs[a.pkg]; need != "" && installed[need] == 0 {
			joined.packages[need] = heads[need]["stable"]
		}
		var apart []*group
		for _, g := range groups {
			if !meet(g.packages, joined.packages) {
				apart = append(apart, g)
				continue
			}
			maps.Copy(joined.packages, g.packages)
			joined.asks = append(joined.asks, g.asks...)
		}
		apart = append(apart, joined)
		groups = apart
	}
	var plans []wanted
	for _, g := range groups {
		var w wanted
		for pkg, n := range g.packages {
			w.versions = append(w.versions, version(pkg, n))
		}
		for _, a := range g.asks {
			w.owners = append(w.owners, a.name)
			w.manual = w.manual || a.manual
		}
		slices.Sort(w.versions)
		slices.Sort(w.owners)
		plans = append(plans, w)
	}
	slices.SortFunc(plans, func(a, b wanted) int { return cmp.Compare(a.String(), b.String()) })
	return plans
}

// meet reports whether both have a common package.
func meet(a, b map[string]int) bool {
	for pkg := range a {
		if b[pkg] != 0 {
			return true
		}
	}
	return false
}

// version returns the name of a version.
func version(pkg string, n int) string { return fmt.Sprintf("%s.v%d", pkg, n) }

func TestExpect(t *testing.T) {
	lamp := ask{name: "a", pkg: "lamp", channel: "stable", manual: true}
	for name, tc := range map[string]struct {
		asks      []ask
		installed map[string]int
		want      string
	}{
		"nothing": {},
		"apart": {
			asks: []ask{lamp, {name: "b", pkg: "clock", channel: "beta"}},
			want: "clock.v2 for b false; lamp.v1 for a true",
		},
		"the same": {asks: []ask{{name: "b", pkg: "lamp", channel: "stable"}, lamp}, want: "lamp.v1 for a+b true"},
		"a need shared": {
			asks: []ask{{name: "b", pkg: "fan", channel: "stable"}, {name: "a", pkg: "radio", channel: "stable"}, {name: "c", pkg: "clock", channel: "stable"}},
			want: "clock.v1 for c false; fan.v1+radio.v1+socket.v1 for a+b false",
		},
		"a need asked for": {
			asks: []ask{{name: "b", pkg: "fan", channel: "stable"}, {name: "a", pkg: "socket", channel: "stable", manual: true}},
			want: "fan.v1+socket.v1 for a+b true",
		},
		"a need met": {
			asks: []ask{{name: "b", pkg: "fan", channel: "stable"}, {name: "a", pkg: "radio", channel: "stable"}}, installed: map[string]int{"socket": 1},
			want: "fan.v1 for b false; radio.v1 for a false",
		},
		"installed": {asks: []ask{lamp}, installed: map[string]int{"lamp": 2}},
	} {
		var got []string
		for _, w := range expect(tc.asks, tc.installed) {
			got = append(got, fmt.Sprintf("%s %v", w, w.manual))
		}
		if diff := gocmp.Diff(tc.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
