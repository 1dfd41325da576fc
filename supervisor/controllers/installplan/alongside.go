package installplan

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/plan"
)

// kindOfCRDs is CustomResourceDefinition, with its group and version.
func kindOfCRDs() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupAPIExtensions, Version: "v1", Kind: kindCRD}
}

// setAlongside writes the versions that a definition was installed with, in place of those
// that it names.
func setAlongside(crd metav1.Object, versions []types.NamespacedName) {
	annotations := map[string]string{}
	for key, value := range crd.GetAnnotations() {
		if !strings.HasPrefix(key, api.PrefixAlongside) {
			annotations[key] = value
		}
	}
	for _, v := range versions {
		annotations[alongsideKey(v)] = v.String()
	}
	crd.SetAnnotations(annotations)
}

// alongsideKey returns the annotation of a definition that names a version which it was installed
// with. The key has the FNV-1a hash of NAMESPACE/NAME, as in OLM.
func alongsideKey(version types.NamespacedName) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(version.String()))
	return fmt.Sprintf("%s%x", api.PrefixAlongside, sum.Sum64())
}

// alongside returns the versions that a definition was installed with and that exist, or that a plan is
// about to create, and the annotations that name others.
func (e *execution) alongside(ctx context.Context, live *unstructured.Unstructured) (versions []types.NamespacedName, stale []string, err error) {
	annotations := live.GetAnnotations()
	for _, name := range plan.Alongside(live) {
		version, err := e.sharer(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		planned := false
		if version == nil {
			if planned, err = e.isPlanned(ctx, name); err != nil {
				return nil, nil, err
			}
		}
		if version != nil || planned {
			versions = append(versions, name)
			continue
		}
		for key, value := range annotations {
			if strings.HasPrefix(key, api.PrefixAlongside) && value == name.String() {
				stale = append(stale, key)
			}
		}
	}
	slices.Sort(stale)
	return versions, slices.Compact(stale), nil
}

// isPlanned reports whether an InstallPlan is installing a version. It writes the definitions of the
// version before the version itself.
func (e *execution) isPlanned(ctx context.Context, version types.NamespacedName) (bool, error) {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := e.cached.List(ctx, plans, client.InNamespace(version.Namespace), readOnly); err != nil {
		return false, fmt.Errorf("listing InstallPlans of namespace %s: %w", version.Namespace, err)
	}
	return slices.ContainsFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling && slices.Contains(p.Spec.ClusterServiceVersionNames, version.Name)
	}), nil
}

// declaresConversion says whether a version brings the webhook that converts objects
// of a CustomResourceDefinition.
func declaresConversion(csv *unstructured.Unstructured, crd string) bool {
	return slices.Contains(conversionCRDs(csv), crd)
}

// keepConversion leaves a conversion as it is that works, or that another controller
// looks after (declared): without it, objects are stored in the form of one version
// under the name of another.
func keepConversion(wanted, live *unstructured.Unstructured, declared bool) {
	conversion, found, _ := unstructured.NestedMap(live.Object, "spec", "conversion")
	bundle, _, _ := unstructured.NestedString(conversion, "webhook", "clientConfig", "caBundle")
	if !declared && (conversion["strategy"] != "Webhook" || bundle == "") {
		return
	}
	unstructured.RemoveNestedField(wanted.Object, "spec", "conversion")
	if found {
		wanted.Object["spec"].(map[string]any)["conversion"] = conversion //nolint:errcheck,forcetypeassert // it was found to be a CustomResourceDefinition
	}
}
