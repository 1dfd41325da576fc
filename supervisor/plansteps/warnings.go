package plansteps

import (
	"encoding/json"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/chandlery/chandlery/supervisor/api"
)

// maxWarnings is the maximum size, in bytes, of the warnings in an InstallPlan. The annotations of an object
// have at most 256 KiB.
const maxWarnings = 64 << 10

// ManifestWarnings returns the warnings about the manifests of steps, as the value of
// AnnotationManifestWarnings; empty if there are none. The warnings are about duplicate keys of a mapping,
// duplicate entries of a list, and another version of the ClusterServiceVersion. The steps no longer contain these.
func ManifestWarnings(steps []*operatorsv1alpha1.Step, bundles []Bundle, kinds Kinds) (string, error) {
	found, size := map[int][]string{}, 0
	for _, b := range bundles {
		for i, text := range b.Objects {
			u, texts, err := warningsAbout(text, kinds)
			if err != nil {
				return "", fmt.Errorf("bundle %s of package %s: reading manifest %d of %d: %w", b.Name, b.Package, i+1, len(b.Objects), err)
			}
			for _, warning := range texts {
				size += len(warning)
			}
			step := slices.IndexFunc(steps, func(s *operatorsv1alpha1.Step) bool { return s.Resolving == b.Name && isCreatedFrom(s, u) })
			if len(texts) > 0 && step >= 0 && size <= maxWarnings {
				found[step] = append(found[step], texts...)
			}
		}
	}
	if len(found) == 0 {
		return "", nil
	}
	text, err := json.Marshal(found)
	if err != nil {
		return "", fmt.Errorf("encoding warnings about manifests: %w", err)
	}
	return string(text), nil
}

// ManifestWarningsOf reads AnnotationManifestWarnings. It returns the warnings by the index of their step. An
// invalid value counts as empty.
func ManifestWarningsOf(annotations map[string]string) map[int][]string {
	found := map[int][]string{}
	if json.Unmarshal([]byte(annotations[api.AnnotationManifestWarnings]), &found) != nil {
		return nil
	}
	return found
}

// isCreatedFrom reports whether a step was created from an object.
func isCreatedFrom(s *operatorsv1alpha1.Step, u *unstructured.Unstructured) bool {
	kind := schema.GroupKind{Group: s.Resource.Group, Kind: s.Resource.Kind}
	return s.Resource.Name == u.GetName() && ObjectKind(kind) == u.GroupVersionKind().GroupKind()
}

// warningsAbout returns the object of a manifest and the warnings about it.
func warningsAbout(text string, kinds Kinds) (*unstructured.Unstructured, []string, error) {
	u := &unstructured.Unstructured{}
	duplicates, err := kjson.UnmarshalStrict([]byte(text), &u.Object)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the caller says what was read
	}
	var texts []string
	for _, d := range duplicates {
		texts = append(texts, d.Error())
	}
	if u.GetKind() == kindCSV {
		texts = append(texts, versionWarning(u.GetAPIVersion())...)
		texts = append(texts, dropRepeated(u)...)
	}
	if err := completeType(u, kinds); err != nil {
		return nil, nil, err
	}
	return u, texts, nil
}

// versionWarning returns a warning about the apiVersion of a ClusterServiceVersion, if its version is another one.
func versionWarning(apiVersion string) []string {
	if _, version := splitVersion(apiVersion); version == operatorsv1alpha1.GroupVersion {
		return nil
	}
	return []string{fmt.Sprintf("apiVersion %q is read as %q", apiVersion, operatorsv1alpha1.ClusterServiceVersionAPIVersion)}
}

// dropRepeated removes environment variables and ports that a later entry of the same container repeats from
// the Deployments of a ClusterServiceVersion. It returns a warning about each. In a Deployment, duplicates are
// valid and the later entry takes precedence. In a ClusterServiceVersion they are refused.
func dropRepeated(csv *unstructured.Unstructured) []string {
	var texts []string
	deployments, _, _ := unstructured.NestedFieldNoCopy(csv.Object, "spec", "install", "spec", "deployments")
	for i, deployment := range listOf(deployments) {
		pod, _, _ := unstructured.NestedFieldNoCopy(mapOf(deployment), "spec", "template", "spec")
		for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
			for k, container := range listOf(mapOf(pod)[field]) {
				path := fmt.Sprintf("spec.install.spec.deployments[%d].spec.template.spec.%s[%d]", i, field, k)
				texts = append(texts, dropRepeatedIn(mapOf(container), path)...)
			}
		}
	}
	return texts
}

func dropRepeatedIn(container map[string]any, path string) []string {
	texts := dropEarlier(container, "env", envKey, func(_, again int, key string) string {
		return fmt.Sprintf("%s.env[%d]: hides previous definition of %q", path, again, key)
	})
	return append(texts, dropEarlier(container, "ports", portKey, func(first, again int, _ string) string {
		return fmt.Sprintf("%[1]s.ports[%[2]d]: duplicate port definition with %[1]s.ports[%[3]d]", path, again, first)
	})...)
}

// dropEarlier removes the entries of a list that have the key of a later one. It returns a warning about each
// entry that repeats the key of the first. An entry without a key remains.
func dropEarlier(in map[string]any, field string, keyOf func(map[string]any) string, warning func(first, again int, key string) string) []string {
	list := listOf(in[field])
	first, last := map[string]int{}, map[string]int{}
	var texts []string
	for i, entry := range list {
		key := keyOf(mapOf(entry))
		if at, repeats := first[key]; repeats && key != "" {
			texts = append(texts, warning(at, i, key))
		} else {
			first[key] = i
		}
		last[key] = i
	}
	if len(texts) == 0 {
		return nil
	}
	var kept []any
	for i, entry := range list {
		if key := keyOf(mapOf(entry)); key == "" || last[key] == i {
			kept = append(kept, entry)
		}
	}
	in[field] = kept
	return texts
}

func envKey(entry map[string]any) string {
	name, _ := entry["name"].(string)
	return name
}

func portKey(entry map[string]any) string {
	port, isNumber := entry["containerPort"].(int64)
	protocol, isSet := entry["protocol"].(string)
	switch {
	case !isNumber:
		return ""
	case !isSet:
		protocol = "TCP"
	}
	return fmt.Sprintf("%d/%s", port, protocol)
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func listOf(v any) []any {
	l, _ := v.([]any)
	return l
}
