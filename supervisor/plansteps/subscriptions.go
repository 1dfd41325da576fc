package plansteps

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandlery/chandlery/supervisor/api"
)

// SubscriptionStep returns the step that creates a Subscription for a version that is installed as a
// dependency, so that it is updated too. The Subscription names the InstallPlan that created it.
func SubscriptionStep(namespace, installPlan string, b Bundle) (*operatorsv1alpha1.Step, error) {
	sub := &operatorsv1alpha1.Subscription{
		TypeMeta: metav1.TypeMeta{APIVersion: operatorsv1alpha1.SubscriptionCRDAPIVersion, Kind: kindSubscription},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: subscriptionName(b),
			Labels:      map[string]string{api.LabelManaged: "true", ComponentLabel(b.Package, namespace): ""},
			Annotations: map[string]string{api.AnnotationGeneratedBy: installPlan},
		},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			CatalogSource: b.Catalog.Name, CatalogSourceNamespace: b.Catalog.Namespace,
			Package: b.Package, Channel: b.Channel, StartingCSV: b.Name,
			InstallPlanApproval: operatorsv1alpha1.ApprovalAutomatic,
		},
	}
	u, err := toUnstructured(sub)
	if err != nil {
		return nil, fmt.Errorf("bundle %s of package %s: %w", b.Name, b.Package, err)
	}
	unstructured.RemoveNestedField(u.Object, "status")
	step, err := newStep(u, b, nil)
	if err != nil {
		return nil, err
	}
	step.Status = operatorsv1alpha1.StepStatusUnknown
	return step, nil
}

// IsGenerated reports whether an object is a Subscription that an InstallPlan created, or will create, for a
// package that an operator needs.
func IsGenerated(u *unstructured.Unstructured, installPlan string) bool {
	gvk := u.GroupVersionKind()
	return gvk.Group == groupOperators && gvk.Kind == kindSubscription && u.GetAnnotations()[api.AnnotationGeneratedBy] == installPlan
}

// notInNames matches the characters that a name must not have.
var notInNames = regexp.MustCompile(`[^a-z0-9.-]+`)

// subscriptionName returns the name of such a Subscription, as OLM forms it. If package or channel contain
// characters that are not allowed in names, or are too long, a hash replaces the lost part.
func subscriptionName(b Bundle) string {
	name := strings.Join([]string{b.Package, b.Channel, b.Catalog.Name, b.Catalog.Namespace}, "-")
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	const most = 200
	short := notInNames.ReplaceAllString(strings.ToLower(name), "-")
	// A name consists of parts between dots, each of which begins and ends with a letter or digit.
	parts := strings.FieldsFunc(short[:min(most, len(short))], func(r rune) bool { return r == '.' })
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "-")
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Join(append(parts, "x"+strings.ToLower(hash(name))), "-")
}

// Merge sorts the steps of several bundles into the order of a plan: all ClusterServiceVersions, all
// CustomResourceDefinitions, and the rest, each in the order of the bundles.
func Merge(lists ...[]*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
	class := func(s *operatorsv1alpha1.Step) int { return min(rank(s.Resource.Kind), rank(kindCRD)+1) }
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b *operatorsv1alpha1.Step) int { return class(a) - class(b) })
	return all
}

// Versions returns the versions by package, as text for a plan that installs several.
func Versions(versions []Identity) string {
	byPackage := map[string]string{}
	for _, v := range versions {
		byPackage[v.Package] = v.Bundle
	}
	text, err := json.Marshal(byPackage)
	if err != nil {
		// The encoding of a map of strings never fails.
		return ""
	}
	return string(text)
}

// VersionOf returns the version of a package that an InstallPlan installs. It is empty if the plan installs
// none or does not record it. A plan for one version without a record is for the package of its component
// label, if it has one.
func VersionOf(p *operatorsv1alpha1.InstallPlan, pkg string) string {
	names := p.Spec.ClusterServiceVersionNames
	text, recorded := p.Annotations[api.AnnotationVersions]
	if len(names) == 1 && !recorded {
		if _, labelled := p.Labels[ComponentLabel(pkg, p.Namespace)]; !labelled && hasComponentLabel(p) {
			return ""
		}
		return names[0]
	}
	byPackage := map[string]string{}
	if json.Unmarshal([]byte(text), &byPackage) != nil || !slices.Contains(names, byPackage[pkg]) {
		return ""
	}
	return byPackage[pkg]
}

// hasComponentLabel reports whether a plan has the component label of any package.
func hasComponentLabel(p *operatorsv1alpha1.InstallPlan) bool {
	for label := range p.Labels {
		if strings.HasPrefix(label, api.PrefixComponent) {
			return true
		}
	}
	return false
}
