package apply_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/chandlery/chandlery/supervisor/apply"
)

func TestRequeueConflict(t *testing.T) {
	sources, errOther := schema.GroupResource{Resource: "catalogsources"}, errors.New("other")
	retry := reconcile.Result{RequeueAfter: apply.ConflictDelay}
	for _, tt := range []struct {
		reason string
		err    error
		want   reconcile.Result
		fails  bool
	}{
		{reason: "written since", err: apierrors.NewConflict(sources, "shop", errOther), want: retry},
		{reason: "changed since", err: apply.ErrStale, want: retry},
		{reason: "deleted since", err: apierrors.NewNotFound(sources, "shop")},
		{reason: "anything else", err: errOther, fails: true},
	} {
		got, err := apply.RequeueConflict(client.IgnoreNotFound(fmt.Errorf("writing: %w", tt.err)))
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v", tt.reason, got, err)
		}
	}
	if got, err := apply.RequeueConflict(nil); got != (reconcile.Result{}) || err != nil {
		t.Errorf("without an error: %+v, %v", got, err)
	}
}
