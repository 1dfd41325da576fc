package plansteps

import (
	"cmp"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// typedKinds are the kinds that OLM decodes into a Go type. The kind alone determines their group and version.
var typedKinds = map[string]schema.GroupVersion{
	kindCSV:              operatorsv1alpha1.SchemeGroupVersion,
	kindSubscription:     operatorsv1alpha1.SchemeGroupVersion,
	kindCRD:              {Group: groupAPIExtensions, Version: "v1"},
	kindSecret:           {Version: "v1"},
	"ConfigMap":          {Version: "v1"},
	"Service":            {Version: "v1"},
	"ServiceAccount":     {Version: "v1"},
	"Role":               {Group: groupRBAC, Version: "v1"},
	"RoleBinding":        {Group: groupRBAC, Version: "v1"},
	"ClusterRole":        {Group: groupRBAC, Version: "v1"},
	"ClusterRoleBinding": {Group: groupRBAC, Version: "v1"},
}

// CompleteObject completes an object with what its manifest lacks and the step or the kind determines: type,
// namespace and the labels of its owner. It does not check that plans may contain the kind.
//
// The fields of a step decide whether it may be in a plan and with whose permissions it is applied. The error is
// ErrManifest if the manifest contradicts the step or the type stays unknown.
func CompleteObject(u *unstructured.Unstructured, step *operatorsv1alpha1.Step, namespace string, kinds Kinds) error {
	if isUnpacked(u) {
		return manifestError(step, "refers to ConfigMap %s, into which OLM unpacked a bundle; the supervisor does not read it, and creates another plan for the Subscription", u.Object["name"])
	}
	kind := ObjectKind(schema.GroupKind{Kind: step.Resource.Kind}).Kind
	switch {
	case u.GetKind() != "" && u.GetKind() != kind:
		return contradiction(step, "kind", kind, u.GetKind())
	case u.GetName() != step.Resource.Name || u.GetName() == "":
		return contradiction(step, "name", step.Resource.Name, u.GetName())
	}
	gvk, err := typeOf(u, step, kind, kinds)
	if err != nil {
		return err
	}
	u.SetGroupVersionKind(gvk)
	if _, known := kinds.ScopeOf(gvk.GroupKind()); !known {
		u.SetNamespace(namespace)
	}
	setOwner(u, namespace, step.Resolving, kinds)
	return nil
}

// IsApplied reports whether the object of a step with a status was applied, or was there already.
func IsApplied(status operatorsv1alpha1.StepStatus) bool {
	return status == operatorsv1alpha1.StepStatusCreated || status == operatorsv1alpha1.StepStatusPresent
}

// IsUnpacked reports whether a step has one of OLM's references to unpacked bundles instead of a manifest.
func IsUnpacked(step *operatorsv1alpha1.Step) bool {
	u, _, err := Manifest(step)
	return err == nil && u != nil && isUnpacked(u)
}

// isUnpacked reports whether a manifest is one of OLM's references to unpacked bundles.
func isUnpacked(u *unstructured.Unstructured) bool {
	_, named := u.Object["name"]
	return u.GetAPIVersion() == "" && u.GetKind() == "ConfigMap" && named
}

// typeOf returns the type of the object of a step, from the step, the manifest and the known kinds.
func typeOf(u *unstructured.Unstructured, step *operatorsv1alpha1.Step, kind string, kinds Kinds) (schema.GroupVersionKind, error) {
	group, version := splitVersion(step.Resource.Version)
	group = cmp.Or(step.Resource.Group, group)
	inGroup, inVersion := splitVersion(u.GetAPIVersion())
	if group != "" && inGroup != "" && group != inGroup {
		return schema.GroupVersionKind{}, contradiction(step, "group", group, inGroup)
	}
	group, version = cmp.Or(inGroup, group), cmp.Or(inVersion, version)
	if typed, is := typedKinds[kind]; is && (group == "" || group == typed.Group) {
		if kind == kindCRD {
			typed.Version = cmp.Or(version, typed.Version)
		}
		return typed.WithKind(kind), nil
	}
	if group == "" {
		return typeByKind(step, kind, version, kinds)
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, nil
}

// typeByKind returns the type of a step that names no group.
func typeByKind(step *operatorsv1alpha1.Step, kind, version string, kinds Kinds) (schema.GroupVersionKind, error) {
	groups := kinds.groups(kind)
	if len(groups) > 1 || len(groups) == 1 && version == "" {
		return schema.GroupVersionKind{}, manifestError(step, "does not determine its type; add apiVersion and kind to its manifest")
	}
	return schema.GroupVersionKind{Group: strings.Join(groups, ""), Version: version, Kind: kind}, nil
}

// splitVersion splits an apiVersion, which may be a version alone.
func splitVersion(apiVersion string) (group, version string) {
	i := strings.LastIndex(apiVersion, "/")
	return apiVersion[:max(i, 0)], apiVersion[i+1:]
}

func contradiction(step *operatorsv1alpha1.Step, field, named, held string) error {
	return manifestError(step, "says %s %q, its manifest %q", field, named, held)
}

// manifestError returns an ErrManifest about a step.
func manifestError(step *operatorsv1alpha1.Step, format string, values ...any) error {
	return fmt.Errorf("%w: step %s %s %s", ErrManifest, step.Resource.Kind, step.Resource.Name, fmt.Sprintf(format, values...))
}
