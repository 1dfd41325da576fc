package plansteps

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/property"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Steps returns the objects to apply for the installation of a bundle in a namespace, in the order of
// application. The ClusterServiceVersion comes first, so that other objects can name it as owner. The
// CustomResourceDefinitions follow, then the accounts and roles of its install strategy, and then the bundle's
// other objects.
//
// An object of an unsupported kind becomes a step with the status UnsupportedResource, so that the user sees
// it. Errors describe invalid bundles; a retry does not help.
func Steps(namespace string, b Bundle, kinds Kinds) ([]*operatorsv1alpha1.Step, error) {
	objects, err := decode(b, kinds)
	if err != nil {
		return nil, err
	}
	csv, err := csvOf(b, objects)
	if err != nil {
		return nil, err
	}
	if err := completeCSV(csv, namespace, b); err != nil {
		return nil, err
	}
	dropRepeated(csv)
	typed, err := normalizeCSV(csv, b)
	if err != nil {
		return nil, err
	}
	generated, err := generatedRBAC(typed, b)
	if err != nil {
		return nil, err
	}

	var steps []*operatorsv1alpha1.Step
	seen := map[string]bool{}
	for _, u := range sortObjects(objects, generated) {
		setOwner(u, namespace, b.Name, kinds)
		step, err := newStep(u, b, kinds)
		if err != nil {
			return nil, err
		}
		// A bundle may contain an account or role that its strategy also requests. The bundle's own object, which
		// comes first, is more complete.
		key := step.Resource.Group + "/" + step.Resource.Kind + "/" + step.Resource.Name
		if seen[key] {
			continue
		}
		seen[key] = true
		steps = append(steps, step)
	}
	return steps, nil
}

// csvOf returns the only ClusterServiceVersion among a bundle's objects.
func csvOf(b Bundle, objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var found *unstructured.Unstructured
	for _, u := range objects {
		if u.GetKind() != kindCSV {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("bundle %s of package %s holds two ClusterServiceVersions, %s and %s; a bundle has one", b.Name, b.Package, found.GetName(), u.GetName())
		}
		found = u
	}
	if found == nil {
		return nil, fmt.Errorf("bundle %s of package %s holds no ClusterServiceVersion", b.Name, b.Package)
	}
	if found.GetName() != b.Name {
		return nil, fmt.Errorf("bundle %s of package %s holds a ClusterServiceVersion named %s; the two names have to be the same", b.Name, b.Package, found.GetName())
	}
	if len(found.GetName()) > validation.LabelValueMaxLength {
		return nil, fmt.Errorf("bundle %s of package %s: the name has %d characters; it labels what the operator owns, so it can have at most %d",
			b.Name, b.Package, len(found.GetName()), validation.LabelValueMaxLength)
	}
	return found, nil
}

// isReserved reports whether only the supervisor may write a label or annotation of a ClusterServiceVersion. The
// recorded OperatorGroup of a version bounds its clean-up, so bundles must not set it.
func isReserved(key string) bool {
	switch key {
	case operatorsv1.OperatorGroupAnnotationKey, operatorsv1.OperatorGroupNamespaceAnnotationKey, operatorsv1.OperatorGroupTargetsAnnotationKey:
		return true
	}
	return strings.HasPrefix(key, api.Prefix)
}

// completeCSV adds data from the catalog that the manifest lacks: the origin of the version, the version that
// it replaces, and its properties.
func completeCSV(csv *unstructured.Unstructured, namespace string, b Bundle) error {
	csv.SetNamespace(namespace)
	unstructured.RemoveNestedField(csv.Object, "status")
	unstructured.RemoveNestedField(csv.Object, "spec", "replaces")
	if b.Replaces != "" {
		if err := unstructured.SetNestedField(csv.Object, b.Replaces, "spec", "replaces"); err != nil {
			return fmt.Errorf("bundle %s of package %s: setting spec.replaces of the ClusterServiceVersion: %w", b.Name, b.Package, err)
		}
	}
	properties, err := propertiesAnnotation(b.Properties)
	if err != nil {
		return fmt.Errorf("bundle %s of package %s: %w", b.Name, b.Package, err)
	}
	annotations := csv.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return isReserved(key) })
	csv.SetAnnotations(merged(annotations, map[string]string{
		api.AnnotationProperties: properties,
	}))
	labels := csv.GetLabels()
	maps.DeleteFunc(labels, func(key, _ string) bool { return isReserved(key) })
	csv.SetLabels(merged(merged(labels, api.CatalogLabels(b.Catalog)), map[string]string{ComponentLabel(b.Package, namespace): ""}))
	// With the finalizer from the start, objects that later steps create outside the namespace are never left behind.
	csv.SetFinalizers([]string{api.FinalizerCleanup})
	return nil
}

// propertiesAnnotation returns properties in the form that resolvers read from an installed
// ClusterServiceVersion.
func propertiesAnnotation(properties []Property) (string, error) {
	list := make([]property.Property, 0, len(properties))
	for _, p := range properties {
		if !json.Valid([]byte(p.Value)) {
			return "", fmt.Errorf("property %s: its value is not JSON", p.Type)
		}
		list = append(list, property.Property{Type: p.Type, Value: json.RawMessage(p.Value)})
	}
	text, err := json.Marshal(map[string][]property.Property{"properties": list})
	if err != nil {
		return "", fmt.Errorf("encoding properties: %w", err)
	}
	return string(text), nil
}

// normalizeCSV encodes a ClusterServiceVersion with the API's Go type. The CustomResourceDefinition requires
// fields, such as resources[].name, that bundles in use omit and that the Go type writes as empty. Otherwise
// many published operators could not be installed.
func normalizeCSV(u *unstructured.Unstructured, b Bundle) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	text, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, csv)
	}
	if err != nil {
		return nil, fmt.Errorf("bundle %s of package %s: the ClusterServiceVersion does not have the shape of %s: %w", b.Name, b.Package, operatorsv1alpha1.ClusterServiceVersionAPIVersion, err)
	}
	if strategy := &csv.Spec.InstallStrategy.StrategySpec; strategy.DeploymentSpecs == nil {
		// A list that is null is invalid, and an empty one is valid.
		strategy.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{}
	}
	normal, err := toUnstructured(csv)
	if err != nil {
		return nil, fmt.Errorf("bundle %s of package %s: %w", b.Name, b.Package, err)
	}
	unstructured.RemoveNestedField(normal.Object, "status")
	if strict, err := kjson.UnmarshalStrict(text, &operatorsv1alpha1.ClusterServiceVersion{}); err == nil && len(strict) > 0 {
		// The API server drops fields that the type does not have, and warns about them.
		keepUnknown(normal.Object, u.Object)
	}
	u.Object = normal.Object
	return csv, nil
}

// keepUnknown adds to an object the fields of its manifest that its Go type does not have. It omits empty
// values, as the type does, and fields whose names differ only in case from one of the type: the type has read them.
func keepUnknown(normal, raw map[string]any) {
	names := make(map[string]bool, len(normal))
	for name := range normal {
		names[folded(name)] = true
	}
	for key, value := range raw {
		has, found := normal[key]
		switch {
		case !found && isNonZero(value) && !names[folded(key)]:
			normal[key] = runtime.DeepCopyJSONValue(value)
		case found:
			keepUnknownIn(has, value)
		}
	}
}

// folded returns a name that is equal for all names that differ only in case, as strings.EqualFold compares them.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		smallest := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			smallest = min(smallest, next)
		}
		return smallest
	}, name)
}

func keepUnknownIn(normal, raw any) {
	switch normal := normal.(type) {
	case map[string]any:
		if raw, ok := raw.(map[string]any); ok {
			keepUnknown(normal, raw)
		}
	case []any:
		if raw, ok := raw.([]any); ok && len(raw) == len(normal) {
			for i := range normal {
				keepUnknownIn(normal[i], raw[i])
			}
		}
	}
}

func isNonZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case map[string]any:
		return len(v) > 0
	case []any:
		return len(v) > 0
	default:
		return v != "" && v != false && v != int64(0)
	}
}

// generatedRBAC returns the objects that the install strategy implies.
func generatedRBAC(csv *operatorsv1alpha1.ClusterServiceVersion, b Bundle) ([]*unstructured.Unstructured, error) {
	objects := permissions(csv)
	list := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		converted, err := toUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("bundle %s of package %s: %w", b.Name, b.Package, err)
		}
		list = append(list, converted)
	}
	return list, nil
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// sortObjects sorts a bundle's objects and the generated ones into the order of application. Objects that others
// need come first. Ties are sorted by name, so that the order does not depend on the order in the bundle.
func sortObjects(objects, generated []*unstructured.Unstructured) []*unstructured.Unstructured {
	byName := slices.Clone(objects)
	slices.SortStableFunc(byName, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(rank(a.GetKind()), rank(b.GetKind())), cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
	all := slices.Concat(byName, generated)
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(rank(a.GetKind()), rank(b.GetKind()))
	})
	return all
}

// rank returns the position of a kind by its dependencies: a binding needs its role and account, and a workload
// needs all of these.
func rank(kind string) int {
	order := []string{kindCSV, kindCRD, "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// setOwner sets the namespace of the plan in a namespaced object, and the owner labels of the
// ClusterServiceVersion in others. An empty csv is no owner. An object of a kind that plans must not contain
// stays unchanged.
func setOwner(u *unstructured.Unstructured, namespace, csv string, kinds Kinds) {
	labels := map[string]string{api.LabelManaged: "true"}
	gk := u.GroupVersionKind().GroupKind()
	scope, ok := kinds.ScopeOf(gk)
	switch {
	case gk == schema.GroupKind{Group: groupOperators, Kind: kindSubscription}:
		scope = Namespaced
	case !ok:
		return
	}
	if scope == ClusterScoped {
		// The API server ignores a namespace in the manifest.
		u.SetNamespace("")
	}
	switch {
	case scope == Namespaced:
		u.SetNamespace(namespace)
	case csv != "" && u.GetKind() != kindCRD:
		// A CustomResourceDefinition outlives its version, since its deletion would delete the users' objects. The
		// other kinds are Kinds.Labelled.
		labels = OwnerLabels(csv, namespace)
	}
	u.SetLabels(merged(u.GetLabels(), labels))
}

func newStep(u *unstructured.Unstructured, b Bundle, kinds Kinds) (*operatorsv1alpha1.Step, error) {
	manifest, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("bundle %s of package %s: encoding %s %s: %w", b.Name, b.Package, u.GetKind(), u.GetName(), err)
	}
	gvk := u.GroupVersionKind()
	status := operatorsv1alpha1.StepStatusUnknown
	if _, ok := kinds.ScopeOf(gvk.GroupKind()); !ok {
		status = operatorsv1alpha1.StepStatusUnsupportedResource
	}
	kind := gvk.Kind
	if gvk.Group == "" && kind == kindSecret {
		kind = kindBundleSecret
	}
	return &operatorsv1alpha1.Step{
		Resolving: b.Name,
		Status:    status,
		Resource: operatorsv1alpha1.StepResource{
			CatalogSource:          b.Catalog.Name,
			CatalogSourceNamespace: b.Catalog.Namespace,
			Group:                  gvk.Group,
			Version:                gvk.Version,
			Kind:                   kind,
			Name:                   u.GetName(),
			// The encoder ends with a newline that is not needed.
			Manifest: string(manifest[:len(manifest)-1]),
		},
	}, nil
}

func merged(into, from map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	maps.Copy(into, from)
	return into
}
