package installplan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/crd/upgradesafety"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// crdState is what a pass reads before it writes a CustomResourceDefinition. Its methods read nothing
// and do not modify it.
type crdState struct {
	name string
	// version is the version that a plan installs, and csv its manifest; nil when the plan does not
	// contain it.
	version types.NamespacedName
	csv     *unstructured.Unstructured
	// bundle is the definition in the bundle; nil when the bundle has none. live is the definition in
	// the cluster; nil when there is none.
	bundle, live *unstructured.Unstructured
	// recorded are the versions that live was installed with.
	recorded []recordedVersion
}

// recordedVersion is a version that a definition was installed with.
type recordedVersion struct {
	types.NamespacedName

	// object is the version: a ClusterServiceVersion, or its metadata if the cache lacks it. It is nil
	// when the version does not exist.
	object metav1.Object
	// planned reports whether a plan is about to create the version.
	planned bool
}

// crdChange is what a pass writes of a CustomResourceDefinition.
type crdChange struct {
	// wanted is applied over live, or created if live is nil. Live does not change if wanted is nil.
	wanted, live *unstructured.Unstructured
	// missing are the annotations and labels of the version that live lacks. It is set where live
	// equals wanted in all other respects.
	missing *apply.MetadataPatch
}

// errNewer reports that the definition of a newer version does not serve what an older version
// needs.
var errNewer = fmt.Errorf("%w: a newer version of the operator is in another namespace", errOtherOwner)

// decide returns whether the definition may be created, changed or kept. unbounded reports whether
// the OperatorGroup targets all namespaces and names no service account.
func (s *crdState) decide(unbounded bool) (upgradesafety.Decision, error) {
	request := upgradesafety.Request{
		Namespace: s.version.Namespace, Version: s.version.Name, Unbounded: unbounded, Name: s.name, Converted: s.converted(),
	}
	var err error
	if s.bundle != nil {
		if request.Wanted, err = typedCRD(s.bundle); err != nil {
			return "", err
		}
	}
	if s.live != nil {
		if request.Live, err = typedCRD(s.live); err != nil {
			return "", err
		}
		request.Own, request.Others = s.installedBy()
	}
	return upgradesafety.Decide(request) //nolint:wrapcheck // names the definition
}

// converted reports whether the version declares a conversion webhook for the definition. The
// controller of versions sets up the conversion when the webhook runs.
func (s *crdState) converted() bool {
	return s.csv != nil && slices.Contains(conversionCRDs(s.csv), s.name)
}

// installedBy returns the existing versions that the definition was installed with. own reports
// whether one of them is of the operator of the version; others are versions of other operators.
func (s *crdState) installedBy() (own bool, others []types.NamespacedName) {
	operator := &owner{name: s.version.Name}
	if s.csv != nil {
		operator = ownerOf(s.csv)
	}
	operator.namespace = s.version.Namespace
	for _, r := range s.recorded {
		switch {
		case r.object == nil:
		case sameOperator(operator, r.object) && !ofAnotherPackage(operator, r.object):
			own = true
		default:
			others = append(others, r.NamespacedName)
		}
	}
	return own, others
}

// existingVersions returns the versions that the definition was installed with. They exist, or a plan is
// about to create them. stale are the annotation keys that name other versions.
func (s *crdState) existingVersions() (versions []types.NamespacedName, stale []string) {
	for _, r := range s.recorded {
		if r.object != nil || r.planned {
			versions = append(versions, r.NamespacedName)
			continue
		}
		stale = append(stale, plansteps.InstalledAlongsideKeys(s.live, r.NamespacedName)...)
	}
	slices.Sort(stale)
	return versions, slices.Compact(stale)
}

// newer returns a newer version of the operator in another namespace that the definition was
// installed with; nil for none.
//
// A definition is cluster-scoped, and an operator may be installed in several namespaces, in
// different versions. All of them use the definition of the newest version. An older definition
// would drop the fields that it lacks from stored objects, which the newer operator needs.
func (s *crdState) newer() (*operatorsv1alpha1.ClusterServiceVersion, error) {
	pkg := ""
	if s.csv != nil {
		pkg = plansteps.PackageOf(s.csv)
	}
	if pkg == "" {
		return nil, nil //nolint:nilnil // the doc comment says what nil means
	}
	var ours operatorsv1alpha1.ClusterServiceVersion
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.csv.Object, &ours); err != nil {
		return nil, fmt.Errorf("reading ClusterServiceVersion %s to compare its version: %w", s.version.Name, err)
	}
	for _, r := range s.recorded {
		other, cached := r.object.(*operatorsv1alpha1.ClusterServiceVersion)
		if !cached || r.Namespace == s.version.Namespace {
			continue
		}
		// The package comes last: reading it decodes the properties of one version of many.
		if other.DeletionTimestamp.IsZero() && other.Spec.Version.GT(ours.Spec.Version.Version) && plansteps.PackageOf(other) == pkg {
			return other, nil
		}
	}
	return nil, nil //nolint:nilnil // the doc comment says what nil means
}

// creation returns the change that creates the definition.
func (s *crdState) creation() *crdChange {
	wanted := s.wanted()
	setInstalledAlongside(wanted, []types.NamespacedName{s.version})
	if s.converted() {
		unstructured.RemoveNestedField(wanted.Object, "spec", "conversion")
		deferServed(wanted, nil, s.version)
	}
	return &crdChange{wanted: wanted}
}

// keepNewer returns the change that keeps the definition of a newer version of the operator, and
// records the version that is being installed.
func (s *crdState) keepNewer(newer *operatorsv1alpha1.ClusterServiceVersion) (*crdChange, error) {
	wanted := s.wanted()
	offers := servedIn(s.live)
	if lacks := slices.DeleteFunc(servedIn(wanted), func(v string) bool { return slices.Contains(offers, v) }); len(lacks) > 0 {
		return nil, fmt.Errorf("%w: CustomResourceDefinition %s serves %s for ClusterServiceVersion %s/%s, and not %s, which %s needs; install a newer version of this operator, or uninstall the other one",
			errNewer, s.name, strings.Join(offers, ", "), newer.Namespace, newer.Name, strings.Join(lacks, ", "), s.version.Name)
	}
	wanted.Object["spec"] = runtime.DeepCopyJSONValue(s.live.Object["spec"])
	for _, key := range []string{api.AnnotationStorageVersion, api.AnnotationConversion, api.AnnotationServedVersions} {
		if value, found := s.live.GetAnnotations()[key]; found {
			annotate(wanted, key, value)
		}
	}
	s.recordVersion(wanted)
	return &crdChange{wanted: wanted, live: s.live}, nil
}

// update returns the change that replaces the definition by the one of the bundle. Many versions of
// one operator have equal definitions. With addOnly, the change then only adds the keys of the version,
// instead of replacing the whole.
func (s *crdState) update(addOnly bool) (*crdChange, error) {
	wanted := s.wanted()
	keepConversion(wanted, s.live, s.converted())
	if s.converted() {
		deferStorage(wanted, s.live, s.version)
		deferConversion(wanted, s.live, s.version)
		deferServed(wanted, s.live, s.version)
	}
	if addOnly {
		if keys, err := s.missingKeys(wanted); keys != nil || err != nil {
			return &crdChange{wanted: wanted, live: s.live, missing: keys}, err
		}
	}
	s.recordVersion(wanted)
	return &crdChange{wanted: wanted, live: s.live}, nil
}

// missingKeys returns the keys that the live definition lacks if it otherwise equals the wanted one; nil if
// something else differs.
func (s *crdState) missingKeys(wanted *unstructured.Unstructured) (*apply.MetadataPatch, error) {
	same := wanted.DeepCopy()
	setInstalledAlongside(same, plansteps.InstalledAlongside(s.live))
	labels := same.GetLabels()
	missing := without(plansteps.ComponentLabels(labels), s.live.GetLabels())
	same.SetLabels(without(labels, missing))
	differs, err := apply.Differs(same, s.live)
	if err != nil || differs {
		return nil, err //nolint:wrapcheck // names the object
	}
	keys := &apply.MetadataPatch{Annotations: map[string]string{}, Labels: missing}
	if key := installedAlongsideKey(s.version); s.version.Name != "" && s.live.GetAnnotations()[key] != s.version.String() {
		keys.Annotations[key] = s.version.String()
	}
	_, keys.Remove = s.existingVersions()
	return keys, nil
}

// wanted returns the definition of the bundle, with the labels that it has in the cluster.
func (s *crdState) wanted() *unstructured.Unstructured {
	wanted := s.bundle.DeepCopy()
	if s.csv != nil {
		setComponent(wanted, plansteps.PackageOf(s.csv), s.version.Namespace)
	}
	if s.live == nil {
		return wanted
	}
	labels := plansteps.ComponentLabels(s.live.GetLabels())
	maps.Copy(labels, wanted.GetLabels())
	wanted.SetLabels(labels)
	setDefaults(wanted)
	return wanted
}

// recordVersion adds the version to the versions that a wanted definition names.
func (s *crdState) recordVersion(wanted *unstructured.Unstructured) {
	versions, _ := s.existingVersions()
	setInstalledAlongside(wanted, append(versions, s.version))
}

// without returns the labels whose keys others lack. Both are maps, and not objects: an object copies
// all of its labels each time that it is asked for them, and a definition has one for each namespace.
func without(labels, others map[string]string) map[string]string {
	left := maps.Clone(labels)
	maps.DeleteFunc(left, func(key, _ string) bool { _, has := others[key]; return has })
	return left
}
