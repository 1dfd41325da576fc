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

	"github.com/chandlery/chandlery/supervisor/crd/rollback"
	"github.com/chandlery/chandlery/test/listpages"
)

// shelf is a reader that returns one object per page.
type shelf struct {
	client.Reader

	objects []string
	// answers are errors for the first requests.
	answers []error
	// limit is the largest number of objects that a request asked for; 0 for all.
	limit int64
	pages listpages.Recorder[unstructured.Unstructured]
}

func (s *shelf) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
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
	var items []unstructured.Unstructured
	if at < len(s.objects) {
		item := unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(s.objects[at]), &item.Object); err != nil {
			return err
		}
		items = append(items, item)
	}
	s.pages.Page(ctx, items)
	list.Items, list.Object = items, map[string]any{"metadata": map[string]any{}}
	if at+1 < len(s.objects) {
		list.SetContinue(o.Continue + "x")
	}
	return nil
}

func TestUsing(t *testing.T) {
	lamps := schema.GroupResource{Group: "shop.example", Resource: "lamps"}
	forbidden, expired := apierrors.NewForbidden(lamps, "", nil), apierrors.NewResourceExpired("too old")
	expired.ErrStatus.Continue = "x"
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
		{reason: "reading took too long and continues at the newest state", objects: []string{dim, dim, bright}, answers: []error{nil, expired}, want: []string{uses}},
		{
			reason: "objects may not be read", answers: []error{forbidden},
			want: []string{"lamp.v1 does not know field v1 spec.bright, and the supervisor lacks permission to check whether objects of lamps.shop.example use it; allow its service account to list lamps.shop.example (a ClusterRole and a ClusterRoleBinding)"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			live, older := schemaOf(t, spec(`"bright":{"type":"boolean"}`)), schemaOf(t, spec(""))
			live.Spec.Group, live.Spec.Names.Kind, live.Spec.Names.Plural = lamps.Group, "Lamp", lamps.Resource
			reader := &shelf{objects: tt.objects, answers: tt.answers}
			objects := rollback.Objects{Reader: reader}
			using := func(ctx context.Context) ([]string, error) {
				return objects.UsedFields(ctx, live, lampV1().LostFields(live, older), "lamp.v1")
			}
			reader.pages.Again = func(ctx context.Context) error {
				_, err := using(ctx)
				return err
			}
			got, err := using(t.Context())
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v, using (-want +got):\n%s", err, diff)
			}
			if len(tt.answers) == 0 {
				reader.pages.Check(t, listpages.WholeObject)
				if reader.limit == 0 || reader.limit > 4 {
					t.Errorf("%d objects are read at once, want 4", reader.limit)
				}
			}
		})
	}
}
