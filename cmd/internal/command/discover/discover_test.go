package discover

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/discovery"
)

func TestParse(t *testing.T) {
	gvk := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	for argument, want := range map[string]discovery.Target{
		"widgets.example.com":    {GroupVersionKind: gvk("example.com", "", ""), Resource: "widgets"},
		"Widget.example.com":     {GroupVersionKind: gvk("example.com", "", "Widget")},
		"Widget.v1.example.com":  {GroupVersionKind: gvk("example.com", "v1", "Widget")},
		"pods":                   {Resource: "pods"},
		"Pod.v1":                 {GroupVersionKind: gvk("", "v1", "Pod")},
		"widgets.v1beta2.apps":   {GroupVersionKind: gvk("apps", "v1beta2", ""), Resource: "widgets"},
		"widgets.v1x.example.io": {GroupVersionKind: gvk("v1x.example.io", "", ""), Resource: "widgets"},
	} {
		got, err := parse(argument, known(""))
		if err != nil || got.Target != want {
			t.Errorf("parse(%q): %+v, %v, want %+v", argument, got.Target, err, want)
		}
	}
	for _, argument := range []string{"", ".", "widgets.", ".example.com", "a/b", "bad..name", "widgets.Example_com"} {
		if got, err := parse(argument, nil); err == nil {
			t.Errorf("parse(%q): %+v, want an error", argument, got)
		}
	}
	if got, err := parse("servicemonitor", known("")); err != nil || got.Group != "monitoring.coreos.com" || got.optional {
		t.Errorf("a known kind that is named: %+v, %v, want that it is missed where it is not installed", got, err)
	}
}

func TestWorst(t *testing.T) {
	of := func(optional bool, outcomes ...discovery.Outcome) []checkResult {
		var all []checkResult
		for _, outcome := range outcomes {
			all = append(all, checkResult{requestedAPI{optional: optional}, discovery.Result{Verdict: discovery.Verdict{Outcome: outcome}}})
		}
		return all
	}
	for _, tc := range []struct {
		reason string
		found  []checkResult
		want   console.Code
	}{
		{"all is well", of(false, discovery.Installed), console.Fine},
		{"what is degraded is there", of(false, discovery.Installed, discovery.Degraded), console.Degraded},
		{"what is missing is worse", of(false, discovery.NotInstalled, discovery.Degraded), console.Negative},
		{"what is not known may be worse still", of(false, discovery.NotInstalled, discovery.Forbidden), console.Forbidden},
		{"most of all where nobody answers", of(false, discovery.Forbidden, discovery.Unreachable), console.Unreachable},
		{"the cluster is well without it", of(true, discovery.NotInstalled), console.Fine},
		{"what is broken is told of", of(true, discovery.Unreachable), console.Unreachable},
	} {
		if got := exitCode(tc.found); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", tc.reason, got, tc.want)
		}
	}
}

func TestTogether(t *testing.T) {
	of := func(kind string, reason discovery.Reason, detail string) checkResult {
		target := discovery.Target{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}}
		return checkResult{requestedAPI{Target: target}, discovery.Result{Target: target, Verdict: discovery.Verdict{Outcome: discovery.Degraded, Reason: reason}, Detail: detail}}
	}
	all := []checkResult{
		of("Lamp", discovery.ReasonNoOperator, "no Lease"), of("Wick", discovery.ReasonNoOperator, "no Lease"),
		of("Glass", discovery.ReasonNoOperator, "another reason"), of("Oil", discovery.ReasonNoOperator, "no Lease"),
	}
	for i, want := range []string{
		"Each is installed, but no operator reconciles it: no Lease | Lamp.example.com Wick.example.com Oil.example.com",
		"Each is installed, but no operator reconciles it: no Lease | Wick.example.com Oil.example.com",
		"Glass.v1.example.com is installed, but no operator reconciles it: another reason | Glass.example.com",
		"Oil.v1.example.com is installed, but no operator reconciles it: no Lease | Oil.example.com",
	} {
		what, names := sharedProblem(all[i:])
		if got := what + " | " + strings.Join(names, " "); got != want {
			t.Errorf("from the finding %d on: %q, want %q", i, got, want)
		}
	}
	var b strings.Builder
	(&options{}).explain(&b, console.Paint{}, all)
	if n := strings.Count(b.String(), "no operator reconciles it"); n != 2 {
		t.Errorf("what is the same for three is said %d times for two reasons:\n%s", n, &b)
	}
}
