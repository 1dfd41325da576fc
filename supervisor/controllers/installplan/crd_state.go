package installplan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
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

// recordedVersion is a version that a definition was installed with. A definition may have thousands.
type recordedVersion struct {
	types.NamespacedName

	exists bool
	// pkg is the package that the version states; empty for none.
	pkg    string
	labels map[string]string
	// version is zero unless the cache has the version, and it is not being deleted.
	version semver.Version
	// stale are the annotation keys that name the version. They are set if it does not exist, and no plan is about to
	// create it.
	stale []string
}

// isOf reports whether the version is of an owner's operator.
func (r *recordedVersion) isOf(o *owner) bool {
	if r.pkg != "" {
		// The author of a bundle chooses what it replaces. That choice does not permit changes to a definition of
		// another package.
		return r.pkg == o.pkg
	}
	return sameOperator(o, &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, Labels: r.labels})
}

// packages holds the packages of versions by their properties. Versions of one bundle have equal properties.
type packages map[string]string

// of returns the package that a version states; empty for none.
func (p packages) of(csv metav1.Object) string {
	properties := csv.GetAnnotations()[api.AnnotationProperties]
	pkg, known := p[properties]
	if !known {
		pkg = plansteps.PackageOf(csv)
		p[properties] = pkg
	}
	return pkg
}

// crdChange is what a pass writes of a CustomResourceDefinition.
type crdChange struct {
	// wanted is applied over live, or created if live is nil. Live does not change if wanted is nil.
	wanted, live *unstructured.Unstructured
	// missing are the annotations and labels of the version that live lacks. It is set where live
	// equals the definition of the bundle in all other respects.
	missing *apply.MetadataPatch
	// recorded are the versions that live was installed with.
	recorded []recordedVersion
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
	for i := range s.recorded {
		switch r := &s.recorded[i]; {
		case !r.exists:
		case r.isOf(operator):
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
	for i := range s.recorded {
		if r := &s.recorded[i]; len(r.stale) == 0 {
			versions = append(versions, r.NamespacedName)
		} else {
			stale = append(stale, r.stale...)
		}
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
func (s *crdState) newer() (*recordedVersion, error) {
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
	for i := range s.recorded {
		if r := &s.recorded[i]; r.Namespace != s.version.Namespace && r.pkg == pkg && r.version.GT(ours.Spec.Version.Version) {
			return r, nil
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
func (s *crdState) keepNewer(newer *recordedVersion) (*crdChange, error) {
	wanted := s.wanted()
	offers := servedIn(s.live)
	if lacks := slices.DeleteFunc(servedIn(wanted), func(v string) bool { return slices.Contains(offers, v) }); len(lacks) > 0 {
		return nil, fmt.Errorf("%w: CustomResourceDefinition %s serves %s for ClusterServiceVersion %s/%s, and not %s, which %s needs; install a newer version of this operator, or remove the other one",
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
	missing := s.missingFrom(s.live, wanted)
	same := wanted.DeepCopy()
	setInstalledAlongside(same, plansteps.InstalledAlongside(s.live))
	same.SetLabels(without(same.GetLabels(), missing.Labels))
	differs, err := apply.Differs(same, s.live)
	if err != nil || differs {
		return nil, err //nolint:wrapcheck // names the object
	}
	return missing, nil
}

// missingFrom returns the keys of the version that the metadata of a live definition lacks, and those of deleted
// versions.
func (s *crdState) missingFrom(live metav1.Object, wanted *unstructured.Unstructured) *apply.MetadataPatch {
	labels := plansteps.ComponentLabels(wanted.GetLabels())
	keys := &apply.MetadataPatch{Annotations: map[string]string{}, Labels: without(labels, live.GetLabels())}
	if key := installedAlongsideKey(s.version); s.version.Name != "" && live.GetAnnotations()[key] != s.version.String() {
		keys.Annotations[key] = s.version.String()
	}
	_, keys.Remove = s.existingVersions()
	return keys
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
