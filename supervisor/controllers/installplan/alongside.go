package installplan

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
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

// kindOfCRDs returns the GroupVersionKind of CustomResourceDefinition.
func kindOfCRDs() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupAPIExtensions, Version: "v1", Kind: kindCRD}
}

// setAlongside records on a definition the versions that it was installed with. It replaces all
// earlier records.
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

// alongsideKey returns the key of the annotation with which a definition names a version that it
// was installed with. The key contains the FNV-1a hash of NAMESPACE/NAME, as in OLM.
func alongsideKey(version types.NamespacedName) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(version.String()))
	return fmt.Sprintf("%s%x", api.PrefixAlongside, sum.Sum64())
}

// alongside returns the versions that a definition was installed with. They exist, or a plan is
// about to create them. stale are the annotation keys that name other versions.
func (e *execution) alongside(ctx context.Context, live *unstructured.Unstructured) (versions []types.NamespacedName, stale []string, err error) {
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
		stale = append(stale, plan.AlongsideKeys(live, name)...)
	}
	slices.Sort(stale)
	return versions, slices.Compact(stale), nil
}

// rereadRecorded makes the pass read the definitions again that recorded a version before the pass created it.
// Such a record is of a deleted version of that name, whose clean-up may have removed it since.
func rereadRecorded(definitions map[*operatorsv1alpha1.Step]*definition, created types.NamespacedName) {
	maps.DeleteFunc(definitions, func(_ *operatorsv1alpha1.Step, d *definition) bool {
		return d.live != nil && len(plan.AlongsideKeys(d.live, created)) > 0
	})
}

// isPlanned reports whether an InstallPlan is installing a version. The plan recreates a version
// that is deleted before the plan is complete.
func (e *execution) isPlanned(ctx context.Context, version types.NamespacedName) (bool, error) {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := e.cached.List(ctx, plans, client.InNamespace(version.Namespace), readOnly); err != nil {
		return false, fmt.Errorf("listing InstallPlans of namespace %s: %w", version.Namespace, err)
	}
	return slices.ContainsFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling && slices.Contains(p.Spec.ClusterServiceVersionNames, version.Name)
	}), nil
}

// declaresConversion reports whether a version declares a webhook that converts objects of a
// CustomResourceDefinition.
func declaresConversion(csv *unstructured.Unstructured, crd string) bool {
	return slices.Contains(conversionCRDs(csv), crd)
}

// keepConversion copies the conversion of the live definition to the wanted one. It does so if the
// conversion has a webhook with a CA bundle, or if another controller sets it (declared). Without
// conversion, the API server would store objects in the form of one version under the name of
// another.
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
