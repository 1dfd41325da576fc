package installplan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// A definition is cluster-scoped, and an operator may be installed in several namespaces, in
// different versions. All of them use the definition of the newest version. An older definition
// would drop the fields that it lacks from stored objects, which the newer operator needs.

// errNewer reports that the definition of a newer version does not serve what an older version
// needs.
var errNewer = fmt.Errorf("%w: a newer version of the operator is in another namespace", errForeign)

// keepNewer leaves a definition unchanged if a newer version of the operator in another namespace
// brought it. The version that is being installed is recorded beside the existing ones. kept is
// false where there is no newer version.
func (e *execution) keepNewer(ctx context.Context, d *definition, s *operatorsv1alpha1.Step) (kept bool, err error) {
	newer, err := e.newerElsewhere(ctx, d.live, s.Resolving)
	if err != nil || newer == nil {
		return false, err
	}
	offers := servedIn(d.live)
	if lacks := slices.DeleteFunc(servedIn(d.wanted), func(v string) bool { return slices.Contains(offers, v) }); len(lacks) > 0 {
		return false, fmt.Errorf("%w: CustomResourceDefinition %s serves %s for ClusterServiceVersion %s/%s, and not %s, which %s needs; install a newer version of it, or uninstall that one",
			errNewer, d.live.GetName(), strings.Join(offers, ", "), newer.Namespace, newer.Name, strings.Join(lacks, ", "), s.Resolving)
	}
	d.wanted.Object["spec"] = runtime.DeepCopyJSONValue(d.live.Object["spec"])
	keepConversion(d.wanted, d.live, true)
	for _, promise := range []string{api.AnnotationStorageVersion, api.AnnotationConversion, api.AnnotationServedVersions} {
		if value, noted := d.live.GetAnnotations()[promise]; noted {
			note(d.wanted, promise, value)
		}
	}
	log.FromContext(ctx).Info("Keeping a definition as a newer version of the operator needs it", "crd", d.live.GetName(),
		"newer", newer.Namespace+"/"+newer.Name, "version", s.Resolving)
	return true, nil
}

// newerElsewhere returns a newer version of an operator in another namespace that a definition was
// installed with; nil for none.
func (e *execution) newerElsewhere(ctx context.Context, live *unstructured.Unstructured, name string) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	u, err := e.content.version(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading ClusterServiceVersion %s to compare its version: %w", name, err)
	}
	pkg := ""
	if u != nil {
		pkg = plan.PackageOf(u)
	}
	if pkg == "" {
		return nil, nil //nolint:nilnil // the doc comment says what nil means
	}
	var ours operatorsv1alpha1.ClusterServiceVersion
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &ours); err != nil {
		return nil, fmt.Errorf("reading ClusterServiceVersion %s to compare its version: %w", name, err)
	}
	for _, other := range plan.Alongside(live) {
		if other.Namespace == e.namespace {
			continue
		}
		theirs := &operatorsv1alpha1.ClusterServiceVersion{}
		switch err := e.cached.Get(ctx, other, theirs, readOnly); {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading ClusterServiceVersion %s, which has the same definition: %w", other, err)
		}
		// The package comes last: reading it decodes the properties of one version of many.
		if theirs.DeletionTimestamp.IsZero() && theirs.Spec.Version.GT(ours.Spec.Version.Version) && plan.PackageOf(theirs) == pkg {
			return theirs, nil
		}
	}
	return nil, nil //nolint:nilnil // the doc comment says what nil means
}
