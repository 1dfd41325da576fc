package plan

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

// SubscriptionStep is the step that makes a Subscription for a version which is
// installed because another one needs it, so that it is kept up to date too. The
// Subscription names the InstallPlan that made it.
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
	step, err := newStep(u, b)
	if err != nil {
		return nil, err
	}
	step.Status = operatorsv1alpha1.StepStatusUnknown
	return step, nil
}

// IsGenerated says whether an object is a Subscription that an InstallPlan made,
// or is to make, for a package that an operator needs.
func IsGenerated(u *unstructured.Unstructured, installPlan string) bool {
	gvk := u.GroupVersionKind()
	return gvk.Group == groupOperators && gvk.Kind == kindSubscription && u.GetAnnotations()[api.AnnotationGeneratedBy] == installPlan
}

// notInNames are the characters that a name must not have.
var notInNames = regexp.MustCompile(`[^a-z0-9.-]+`)

// subscriptionName is the name that the API gives to such a Subscription. Where
// package or channel have characters that names cannot have, or are too long, a
// hash takes the place of what is lost.
func subscriptionName(b Bundle) string {
	name := strings.Join([]string{b.Package, b.Channel, b.Catalog.Name, b.Catalog.Namespace}, "-")
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	const most = 200
	short := notInNames.ReplaceAllString(strings.ToLower(name), "-")
	// A name is made of parts between dots, each of which begins and ends with a
	// letter or digit.
	parts := strings.FieldsFunc(short[:min(most, len(short))], func(r rune) bool { return r == '.' })
	for i := range parts {
		parts[i] = strings.Trim(parts[i], "-")
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Join(append(parts, "x"+strings.ToLower(hash(name))), "-")
}

// Merge puts the steps of several bundles into the order of a plan: all
// ClusterServiceVersions, all CustomResourceDefinitions, and the rest, each in
// the order in which the bundles come.
func Merge(lists ...[]*operatorsv1alpha1.Step) []*operatorsv1alpha1.Step {
	class := func(s *operatorsv1alpha1.Step) int { return min(rank(s.Resource.Kind), rank(kindCRD)+1) }
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b *operatorsv1alpha1.Step) int { return class(a) - class(b) })
	return all
}

// Versions writes which version is of which package, for a plan that installs
// several.
func Versions(versions []Identity) string {
	byPackage := map[string]string{}
	for _, v := range versions {
		byPackage[v.Package] = v.Bundle
	}
	text, err := json.Marshal(byPackage)
	if err != nil {
		// A map of strings always marshals.
		return ""
	}
	return string(text)
}

// VersionOf gives the version of a package that an InstallPlan installs; empty
// when it installs none or does not say which. A plan for one version that does not say so
// otherwise is for the package of its component label, if it has one.
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
