package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/operator-registry/alpha/property"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
	"github.com/chandlery/chandlery/supervisor/resolution"
)

// planContent is what the bundles of a plan determine.
type planContent struct {
	// status is the first status: the steps, and the phase before they are applied. While content is missing, the phase
	// is Planning.
	status operatorsv1alpha1.InstallPlanStatus
	// warnings are the warnings about the manifests of the steps.
	warnings string
	// err is why there are no steps.
	err error
}

// planContent reads the bundles of a plan, and returns what they determine.
func (r *contentReader) planContent(
	ctx context.Context, o *namespaceState, p *operatorsv1alpha1.InstallPlan, desired *desiredPlan, now time.Time,
) planContent {
	content := planContent{status: operatorsv1alpha1.InstallPlanStatus{CatalogSources: []string{}, Phase: operatorsv1alpha1.InstallPlanPhasePlanning}}
	status := &content.status
	for i, c := range desired.choices {
		if !slices.Contains(status.CatalogSources, c.Catalog.Name) {
			status.CatalogSources = append(status.CatalogSources, c.Catalog.Name)
		}
		if isImage(desired.versions[i].Content) {
			status.BundleLookups = append(status.BundleLookups, bundleLookup(o.catalogs, c))
		}
	}
	bundles, pulls, err := r.bundles(ctx, o, desired)
	if err == nil {
		status.BundleLookups = withNodePulls(status.BundleLookups, pulls, metav1.NewTime(now).Rfc3339Copy())
		status.Plan, content.warnings, err = r.stepsOf(p.Namespace, p.Name, desired, bundles)
	}
	if missing, waits := errors.AsType[imagesError](err); waits {
		status.BundleLookups = missing.withConditions(status.BundleLookups, p.Status.BundleLookups, metav1.NewTime(now).Rfc3339Copy())
	}
	if err != nil {
		status.Message = clipped(err.Error())
		content.warnings, content.err = "", err
		return content
	}
	status.Phase = operatorsv1alpha1.InstallPlanPhaseRequiresApproval
	if p.Spec.Approved {
		status.Phase = operatorsv1alpha1.InstallPlanPhaseInstalling
	}
	return content
}

// unusable reports whether an error says that a bundle cannot be used until its content changes.
func unusable(err error) bool {
	if _, invalid := errors.AsType[*invalidBundleError](err); invalid {
		return true
	}
	missing, _ := errors.AsType[imagesError](err)
	return slices.ContainsFunc(missing, func(m missingImage) bool { return m.invalid() })
}

// stepsOf returns the steps of a plan for some bundles. It also returns the warnings about their
// manifests, as the value of the plan's annotation.
func (r *contentReader) stepsOf(
	namespace, name string, desired *desiredPlan, bundles []plansteps.Bundle,
) (steps []*operatorsv1alpha1.Step, warnings string, err error) {
	lists := make([][]*operatorsv1alpha1.Step, 0, len(bundles))
	for _, bundle := range bundles {
		steps, err := plansteps.Steps(namespace, bundle, r.kinds)
		if err != nil {
			return nil, "", &invalidBundleError{err: err}
		}
		lists = append(lists, steps)
	}
	steps = plansteps.Merge(lists...)
	if warnings, err = plansteps.ManifestWarnings(steps, bundles, r.kinds); err != nil {
		return nil, "", err
	}
	if err := plansteps.ReferenceManifests(steps, bundles, plansteps.MaxInline); err != nil {
		return nil, "", err
	}
	for i, bundle := range bundles {
		if !desired.versions[i].Generated {
			continue
		}
		step, err := plansteps.SubscriptionStep(namespace, name, bundle)
		if err != nil {
			return nil, "", err
		}
		steps = append(steps, step)
	}
	return steps, warnings, nil
}

// bundleLookup returns the entry of a plan for a bundle image.
func bundleLookup(catalogs catalogSet, c *resolution.Choice) operatorsv1alpha1.BundleLookup {
	key := catalogFor(c)
	ref := &corev1.ObjectReference{
		APIVersion: operatorsv1alpha1.CatalogSourceCRDAPIVersion, Kind: operatorsv1alpha1.CatalogSourceKind, Namespace: key.Namespace, Name: key.Name,
	}
	if source := catalogs[key].Source; source != nil {
		ref.UID = source.UID
	}
	return operatorsv1alpha1.BundleLookup{
		Path: c.Entry.Bundle.Image, Identifier: c.Bundle, Replaces: c.Replaces, CatalogSourceRef: ref, Properties: propertiesText(c),
	}
}

// propertiesText returns the package and the version of a bundle as a property. The
// ClusterServiceVersion has its other properties.
func propertiesText(c *resolution.Choice) string {
	pkg, err := property.Build(&property.Package{PackageName: c.Package, Version: c.Entry.Bundle.Subject.Version.String()})
	if err != nil {
		return "" // strings can always be encoded
	}
	text, err := json.Marshal(map[string][]property.Property{"properties": {*pkg}})
	if err != nil {
		return "" // as above
	}
	return string(text)
}
