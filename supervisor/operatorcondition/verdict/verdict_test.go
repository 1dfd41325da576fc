package verdict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/operatorcondition/verdict"
)

// generation is that of each OperatorCondition of the tests.
const generation = 3

func noon() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC) }

func condition(kind string, status metav1.ConditionStatus, observed int64) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Boiling", Message: "the kettle is on", ObservedGeneration: observed, LastTransitionTime: metav1.NewTime(noon())}
}

func at(c metav1.Condition, when time.Time) metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(when)
	return c
}

func of(spec operatorsv2.OperatorConditionSpec, status ...metav1.Condition) *operatorsv2.OperatorCondition {
	return &operatorsv2.OperatorCondition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle.v1", Generation: generation},
		Spec:       spec, Status: operatorsv2.OperatorConditionStatus{Conditions: status},
	}
}

func TestConditions(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	list := func(conditions ...metav1.Condition) []metav1.Condition { return conditions }
	for name, tt := range map[string]struct {
		spec   operatorsv2.OperatorConditionSpec
		status []metav1.Condition
		want   []metav1.Condition
	}{
		"nothing": {},
		"a report is copied, as of now": {
			spec: operatorsv2.OperatorConditionSpec{Conditions: list(condition("Upgradeable", no, 1))},
			want: list(condition("Upgradeable", no, generation)),
		},
		"a newer report takes the place of the copy": {
			spec:   operatorsv2.OperatorConditionSpec{Conditions: list(condition("Upgradeable", yes, 0))},
			status: list(condition("Upgradeable", no, 2)),
			want:   list(condition("Upgradeable", yes, generation)),
		},
		"an override wins": {
			spec: operatorsv2.OperatorConditionSpec{
				Conditions: list(condition("Upgradeable", no, 0), condition("Hot", no, 0)), Overrides: list(condition("Upgradeable", yes, 0)),
			},
			want: list(condition("Upgradeable", yes, generation), condition("Hot", no, generation)),
		},
		"an override that does not say since when": {
			spec: operatorsv2.OperatorConditionSpec{
				Conditions: list(condition("Upgradeable", no, 0)), Overrides: list(at(condition("Upgradeable", yes, 0), time.Time{})),
			},
			status: list(condition("Upgradeable", no, 2)),
			want:   list(at(condition("Upgradeable", yes, generation), noon().Add(time.Hour))),
		},
		"an override that is shown": {
			spec: operatorsv2.OperatorConditionSpec{
				Conditions: list(condition("Upgradeable", no, 0)), Overrides: list(at(condition("Upgradeable", yes, 0), time.Time{})),
			},
			status: list(at(condition("Upgradeable", yes, 2), noon().Add(time.Minute))),
			want:   list(at(condition("Upgradeable", yes, generation), noon().Add(time.Minute))),
		},
		"an override of what nobody reports shows nothing": {
			spec: operatorsv2.OperatorConditionSpec{Overrides: list(condition("Upgradeable", yes, 0))},
		},
		"the last of two counts": {
			spec: operatorsv2.OperatorConditionSpec{Conditions: list(condition("Hot", no, 0), condition("Upgradeable", no, 0), condition("Hot", unknown, 0))},
			want: list(condition("Upgradeable", no, generation), condition("Hot", unknown, generation)),
		},
		"a copy goes with its original":         {status: list(condition("Upgradeable", no, 2))},
		"what an operator wrote itself stays":   {status: list(condition("Upgradeable", no, 0)), want: list(condition("Upgradeable", no, 0))},
		"so does what it says of this very one": {status: list(condition("Hot", no, generation)), want: list(condition("Hot", no, generation))},
		"and it is not written over by an override": {
			spec:   operatorsv2.OperatorConditionSpec{Overrides: list(condition("Upgradeable", yes, 0))},
			status: list(condition("Upgradeable", no, 0)),
			want:   list(condition("Upgradeable", no, 0)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := of(tt.spec, tt.status...)
			got := verdict.Conditions(c, noon().Add(time.Hour))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			c.Status.Conditions = got
			if diff := cmp.Diff(got, verdict.Conditions(c, noon().Add(2*time.Hour))); diff != "" {
				t.Errorf("a second look changes them (-first +second):\n%s", diff)
			}
		})
	}
}

func TestUpgradeable(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	spec := func(reported, override metav1.ConditionStatus) operatorsv2.OperatorConditionSpec {
		var s operatorsv2.OperatorConditionSpec
		if reported != "" {
			s.Conditions = []metav1.Condition{condition("Upgradeable", reported, 0)}
		}
		if override != "" {
			s.Overrides = []metav1.Condition{condition("Hot", no, 0), condition("Upgradeable", override, 0)}
		}
		return s
	}
	for name, tt := range map[string]struct {
		condition *operatorsv2.OperatorCondition
		want      bool
		says      string
	}{
		"no condition":             {nil, true, ""},
		"nothing said":             {of(spec("", "")), true, ""},
		"another condition":        {of(spec("", ""), condition("Hot", no, 0)), true, ""},
		"yes":                      {of(spec(yes, "")), true, ""},
		"unknown":                  {of(spec(unknown, "")), true, ""},
		"no":                       {of(spec(no, "")), false, "the operator says Upgradeable=False (Boiling): the kettle is on; to go on"},
		"no, overridden":           {of(spec(no, yes)), true, ""},
		"yes, overridden":          {of(spec(yes, no)), false, "spec.overrides says Upgradeable=False (Boiling): the kettle is on; change or remove"},
		"an override must say yes": {of(spec(yes, unknown)), false, "spec.overrides says Upgradeable=Unknown"},
		"an override, no report":   {of(spec("", no)), false, "spec.overrides"},
		"no in the status only":    {of(spec("", ""), condition("Upgradeable", no, 0)), false, "the operator says Upgradeable=False"},
		"overridden in the status": {of(spec("", yes), condition("Upgradeable", no, 0)), true, ""},
		"a no that was taken back": {of(spec("", ""), condition("Upgradeable", no, generation-1)), true, ""},
		"a yes not yet copied":     {of(spec(yes, ""), condition("Upgradeable", no, generation-1)), true, ""},
		"a no not yet copied":      {of(spec(no, ""), condition("Upgradeable", yes, generation)), false, "kitchen/kettle.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := verdict.Upgradeable(tt.condition)
			if got != tt.want || !strings.Contains(message, tt.says) || (message == "") != tt.want {
				t.Errorf("upgradeable %v, message %q; want %v and %q in it", got, message, tt.want, tt.says)
			}
		})
	}
}
