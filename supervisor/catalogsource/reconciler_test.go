package catalogsource

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestSilently(t *testing.T) {
	sources, errOther := schema.GroupResource{Resource: "catalogsources"}, errors.New("other")
	for _, tt := range []struct {
		reason string
		err    error
		want   ctrl.Result
		fails  bool
	}{
		{reason: "written meanwhile", err: apierrors.NewConflict(sources, "shop", errOther), want: ctrl.Result{RequeueAfter: conflictDelay}},
		{reason: "deleted meanwhile", err: apierrors.NewNotFound(sources, "shop")},
		{reason: "anything else", err: errOther, fails: true},
	} {
		got, err := silently(fmt.Errorf("writing: %w", tt.err))
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v", tt.reason, got, err)
		}
	}
}
