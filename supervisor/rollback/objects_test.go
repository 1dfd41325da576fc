package rollback_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/rollback"
)

// shelf is a reader that returns one object per page.
type shelf struct {
	client.Reader

	objects []string
	// answers are errors for the first requests.
	answers []error
	// limit is the largest number of objects that a request asked for; 0 for all.
	limit int64
}

func (s *shelf) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if len(s.answers) > 0 {
		err := s.answers[0]
		s.answers = s.answers[1:]
		if err != nil {
			return err
		}
	}
	list, o := into.(*unstructured.UnstructuredList), client.ListOptions{}
	o.ApplyOptions(opts)
	s.limit = max(s.limit, o.Limit)
	at := len(o.Continue)
	list.Items, list.Object = nil, map[string]any{"metadata": map[string]any{}}
	if at < len(s.objects) {
		item := unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(s.objects[at]), &item.Object); err != nil {
			return err
		}
		list.Items = []unstructured.Unstructured{item}
	}
	if at+1 < len(s.objects) {
		list.SetContinue(o.Continue + "x")
	}
	return nil
}

func TestUsing(t *testing.T) {
	lamps := schema.GroupResource{Group: "shop.example", Resource: "lamps"}
	forbidden, expired := apierrors.NewForbidden(lamps, "", nil), apierrors.NewResourceExpired("too old")
	dim, bright := `{"metadata":{"namespace":"a","name":"dim"},"spec":{"dim":1}}`, `{"metadata":{"namespace":"a","name":"bright"},"spec":{"bright":true}}`
	const uses = "Lamp a/bright uses field v1 spec.bright, which lamp.v1 does not know and would drop"
	for _, tt := range []struct {
		reason  string
		objects []string
		answers []error
		want    []string
	}{
		{reason: "no objects"},
		{reason: "objects that do not use it", objects: []string{dim, dim}},
		{reason: "an object on a later page uses it", objects: []string{dim, bright, bright}, want: []string{uses}},
		{reason: "reading took too long and is begun again", objects: []string{bright, dim}, answers: []error{expired}, want: []string{uses}},
		{
			reason: "objects may not be read", answers: []error{forbidden},
			want: []string{"lamp.v1 does not know field v1 spec.bright, and the supervisor may not see whether objects of lamps.shop.example use it; let its service account list lamps.shop.example (a ClusterRole and a ClusterRoleBinding)"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			live, older := schemaOf(t, spec(`"bright":{"type":"boolean"}`)), schemaOf(t, spec(""))
			live.Spec.Group, live.Spec.Names.Kind, live.Spec.Names.Plural = lamps.Group, "Lamp", lamps.Resource
			reader := &shelf{objects: tt.objects, answers: tt.answers}
			objects := rollback.Objects{Reader: reader}
			got, err := objects.Using(t.Context(), live, lampV1().Lost(live, older), "lamp.v1")
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, using (-want +got):\n%s", err, diff)
			}
			// An object may have 1.5 MiB.
			if len(tt.answers) == 0 && (reader.limit == 0 || reader.limit*3<<19 > 32<<20) {
				t.Errorf("%d objects are read at once: they may exceed 32 MiB", reader.limit)
			}
		})
	}
}
