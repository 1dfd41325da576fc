package openshift

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/discovery"
	"github.com/chandlery/chandlery/test/openshiftobjects"
)

// TestList checks that objects whose absence is not certain are unknown.
func TestList(t *testing.T) {
	errForbidden := errors.New("forbidden")
	policies := openshiftobjects.Specs{"ImagePolicy": {"b/a": nil, "a/b": nil, "c": nil, "a/a": nil}}
	for _, tt := range []struct {
		reason  string
		outcome discovery.Outcome
		specs   openshiftobjects.Specs
		err     error
		want    []string
		unknown bool
	}{
		{reason: "the API is not used", outcome: discovery.Skipped, specs: policies},
		{reason: "the API is not installed", outcome: discovery.NotInstalled, err: errForbidden},
		{reason: "the kind does not exist", outcome: discovery.Installed},
		{reason: "the server does not know the kind any more", outcome: discovery.Installed, err: apierrors.NewNotFound(schema.GroupResource{}, "")},
		{reason: "the order is by namespace and name", outcome: discovery.Installed, specs: policies, want: []string{"/c", "a/a", "a/b", "b/a"}},
		{reason: "the kind cannot be listed", outcome: discovery.Installed, specs: policies, err: errForbidden, unknown: true},
		{reason: "the API may not be read", outcome: discovery.Forbidden, specs: policies, unknown: true},
		{reason: "no server answers", outcome: discovery.Unreachable, specs: policies, unknown: true},
		{reason: "the API was not checked", err: errForbidden, unknown: true},
	} {
		kind := schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "ImagePolicy"}
		reader := &openshiftobjects.Reader{Specs: tt.specs, Err: tt.err}
		objects, err := List(t.Context(), reader, openshiftobjects.Checked(tt.outcome), kind)
		if (err != nil) != tt.unknown {
			t.Errorf("%s: error %v, want one: %t", tt.reason, err, tt.unknown)
		}
		var got []string
		for i := range objects {
			got = append(got, client.ObjectKeyFromObject(&objects[i]).String())
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
	}
}
