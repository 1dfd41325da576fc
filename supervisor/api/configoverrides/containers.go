package configoverrides

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chandlery/chandlery/internal/similarnames"
)

// CheckContainers returns an error that names the containers of the overrides that no Deployment of the versions has.
// Versions may repeat or be nil, and without one there is no error. During an upgrade there are two versions, whose
// containers may have different names.
func (o *Overrides) CheckContainers(subscription metav1.Object, versions ...*operatorsv1alpha1.ClusterServiceVersion) error {
	var names []string
	known := map[string]bool{}
	for _, csv := range versions {
		if csv == nil || slices.Contains(names, csv.Name) {
			continue
		}
		names = append(names, csv.Name)
		addContainers(known, csv)
	}
	paths, unknown := o.unknownContainers(known)
	if len(unknown) == 0 || len(names) == 0 {
		return nil
	}
	containers, these := slices.Sorted(maps.Keys(known)), "this container"
	if len(unknown) > 1 {
		these = "these containers"
	} else if similar := similarnames.Of(unknown[0], containers); len(similar) > 0 {
		these += fmt.Sprintf(" (did you mean %q?)", similar[0])
	}
	if len(containers) == 0 {
		containers = []string{"none"}
	}
	return inAnnotation(subscription, fmt.Errorf("%s: no Deployment of %s has %s; their containers are %s; correct the names",
		strings.Join(paths, ", "), strings.Join(names, " or "), these, strings.Join(containers, ", ")))
}

// addContainers adds the names of the containers and init containers of a version. They differ within a pod.
func addContainers(names map[string]bool, csv *operatorsv1alpha1.ClusterServiceVersion) {
	deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range deployments {
		pod := &deployments[i].Spec.Template.Spec
		for _, list := range [][]corev1.Container{pod.Containers, pod.InitContainers} {
			for j := range list {
				names[list[j].Name] = true
			}
		}
	}
}

// unknownContainers returns the names of containers in the overrides that are not known, and their paths.
func (o *Overrides) unknownContainers(known map[string]bool) (paths, names []string) {
	check := func(root *field.Path, name string) {
		if !known[name] {
			paths, names = append(paths, root.Key(name).String()), append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Args)) {
		check(field.NewPath("args"), name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Containers)) {
		check(field.NewPath("containers"), name)
	}
	return paths, names
}
