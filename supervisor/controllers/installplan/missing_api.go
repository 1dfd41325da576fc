package installplan

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandlery/chandlery/supervisor/api/olmtext"
)

// listKinds lists the kinds in a version of an API group. The error is NotFound if the cluster does not serve it.
type listKinds func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// missingKindError reports that the cluster serves a version of an API group without a kind.
type missingKindError struct {
	kind schema.GroupVersionKind
	err  error
}

// Error returns OLM's sentence.
func (e *missingKindError) Error() string {
	return olmtext.KindNotServed(e.kind.Group, e.kind.Version, e.kind.Kind)
}

// Unwrap returns the error of the search for the kind.
func (e *missingKindError) Unwrap() error { return e.err }

// explain returns a *missingKindError in place of an error about a kind that the cluster lacks in an API group that it
// serves. It returns other errors as they are.
func (l listKinds) explain(ctx context.Context, err error) error {
	missing, is := errors.AsType[*apimeta.NoKindMatchError](err)
	if !is || len(missing.SearchedVersions) != 1 {
		return err
	}
	kind := missing.GroupKind.WithVersion(missing.SearchedVersions[0])
	_, unserved := l(ctx, kind.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(unserved):
		return err
	case unserved != nil:
		return unserved
	default:
		return &missingKindError{kind: kind, err: err}
	}
}
