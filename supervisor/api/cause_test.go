package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestCause(t *testing.T) {
	p := &operatorsv1alpha1.InstallPlan{}
	if c, found := api.CauseOf(p); found {
		t.Errorf("a plan without a cause has %+v", c)
	}
	want := api.Cause{Reason: api.ReasonKindNotAllowed, Step: new(2), Remedy: "ask the author", Final: true}
	api.SetCause(p, &want)
	got, found := api.CauseOf(p)
	if diff := cmp.Diff(want, got); diff != "" || !found {
		t.Errorf("found %t, -want +got:\n%s", found, diff)
	}
	if text, want := p.Annotations[api.AnnotationCause], `{"reason":"KindNotAllowed","step":2,"remedy":"ask the author","final":true}`; text != want {
		t.Errorf("the annotation is %s, want %s", text, want)
	}
	api.SetCause(p, nil)
	if _, found := api.CauseOf(p); found || len(p.Annotations) > 0 {
		t.Errorf("annotations %v are left", p.Annotations)
	}
}

func TestCauseThatIsNotValid(t *testing.T) {
	for _, text := range []string{"", "null", "[]", `{"step":1}`, `{"reason":"StepFailed","step":-1}`, `{"reason":"StepFailed","step":"1"}`} {
		p := &operatorsv1alpha1.InstallPlan{}
		p.Annotations = map[string]string{api.AnnotationCause: text}
		if c, found := api.CauseOf(p); found {
			t.Errorf("CauseOf(%q) = %+v", text, c)
		}
	}
}
