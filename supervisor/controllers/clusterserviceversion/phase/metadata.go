package phase

import (
	"maps"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// Metadata are changes of the labels and annotations of a version; nil removes one.
type Metadata struct {
	Labels, Annotations map[string]*string
}

// MetadataChanges returns what a version in a group lacks: the annotations that OLM sets too, and labels for the rest,
// because OLM copies annotations of versions to their pods.
func MetadataChanges(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup) Metadata {
	return Metadata{
		Labels:      changes(csv.Labels, Labels(csv, group), staleLabels(csv, group)),
		Annotations: changes(csv.Annotations, GroupAnnotations(group), FormerAnnotations(csv)),
	}
}

// changes returns the wanted values that differ, and nil for the stale keys.
func changes(have, want map[string]string, stale []string) map[string]*string {
	differ := map[string]*string{}
	for _, key := range stale {
		differ[key] = nil
	}
	for key, value := range want {
		if is, found := have[key]; !found || is != value {
			differ[key] = &value
		}
	}
	return differ
}

// Labels returns the labels of a version in a group: those of its APIs, its catalog, and whether the group names an account.
func Labels(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup) map[string]string {
	labels := APILabels(csv)
	if hasTargets(group) {
		labels[api.LabelGroupAccount] = api.GroupAccountNone
		if group.Spec.ServiceAccountName != "" {
			labels[api.LabelGroupAccount] = api.GroupAccountNamed
		}
	}
	// Earlier builds recorded the catalog in an annotation. The InstallPlan sets the label.
	catalog, recorded := api.RecordedCatalog(csv)
	if _, labelled := csv.Labels[api.LabelCatalogNamespace]; recorded && !labelled {
		maps.Copy(labels, api.CatalogLabels(catalog))
	}
	return labels
}

// GroupAnnotations returns the annotations with the namespaces to watch, which the operator reads from its pod template.
func GroupAnnotations(group *operatorsv1.OperatorGroup) map[string]string {
	return map[string]string{
		operatorsv1.OperatorGroupAnnotationKey:          group.Name,
		operatorsv1.OperatorGroupNamespaceAnnotationKey: group.Namespace,
		operatorsv1.OperatorGroupTargetsAnnotationKey:   group.BuildTargetNamespaces(),
	}
}

// FormerAnnotations returns the annotations that a version has from earlier builds. Labels replace two of them.
func FormerAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var keys []string
	for _, key := range []string{api.LabelCatalog, api.LabelGroupAccount, api.AnnotationFormerChannel, api.AnnotationFormerDigest} {
		if _, found := csv.Annotations[key]; found {
			keys = append(keys, key)
		}
	}
	return keys
}

// metadataDiffers reports whether labels or annotations must be written.
func metadataDiffers(o Input) bool {
	m := MetadataChanges(o.CSV, &o.Groups[0])
	if account, differs := m.Labels[api.LabelGroupAccount]; differs && mayLag(o.CSV, account) {
		delete(m.Labels, api.LabelGroupAccount)
	}
	return len(m.Labels)+len(m.Annotations) > 0
}

// mayLag reports whether the record of a former account may stay while the group names none. The
// record only limits the clean-up more than necessary. A version that is Pending or Failed is not
// written for it; a running one is.
func mayLag(csv *operatorsv1alpha1.ClusterServiceVersion, account *string) bool {
	return account != nil && *account == api.GroupAccountNone && csv.Labels[api.LabelGroupAccount] != "" &&
		(csv.Status.Phase == operatorsv1alpha1.CSVPhasePending || csv.Status.Phase == operatorsv1alpha1.CSVPhaseFailed)
}

// annotated returns an input as it is after Annotate.
func annotated(o Input) Input {
	m, csv := MetadataChanges(o.CSV, &o.Groups[0]), *o.CSV
	csv.Labels, csv.Annotations = applied(csv.Labels, m.Labels), applied(csv.Annotations, m.Annotations)
	o.CSV = &csv
	return o
}

// applied returns a copy of labels or annotations after changes.
func applied(have map[string]string, differ map[string]*string) map[string]string {
	out := make(map[string]string, len(have)+len(differ))
	maps.Copy(out, have)
	for key, value := range differ {
		if value == nil {
			delete(out, key)
			continue
		}
		out[key] = *value
	}
	return out
}

// hasTargets reports whether a group targets any namespace. The annotation of the targets is equal
// for a group that targets none and one that targets all.
func hasTargets(group *operatorsv1.OperatorGroup) bool { return len(group.Status.Namespaces) > 0 }

// APILabels returns the labels by which the providers of an API, and the versions that need it, are
// found.
func APILabels(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	labels := map[string]string{}
	for gvk := range requiredAPIs(csv) {
		labels[api.PrefixAPI+providedapis.Hash(gvk)] = "required"
	}
	for gvk := range providedapis.Of(csv) {
		labels[api.PrefixAPI+providedapis.Hash(gvk)] = "provided"
	}
	return labels
}

func requiredAPIs(csv *operatorsv1alpha1.ClusterServiceVersion) providedapis.Set {
	required := &operatorsv1alpha1.ClusterServiceVersion{}
	required.Spec.CustomResourceDefinitions.Owned = csv.Spec.CustomResourceDefinitions.Required
	required.Spec.APIServiceDefinitions.Owned = csv.Spec.APIServiceDefinitions.Required
	return providedapis.Of(required)
}

// staleLabels returns the labels that a version has and should not have: those of other APIs, and the record of an account
// although its group targets no namespace. After the deletion of the group, a clean-up would read the targets as all namespaces.
func staleLabels(csv *operatorsv1alpha1.ClusterServiceVersion, group *operatorsv1.OperatorGroup) []string {
	want := APILabels(csv)
	var stale []string
	for key := range csv.Labels {
		_, wanted := want[key]
		if strings.HasPrefix(key, api.PrefixAPI) && !wanted || key == api.LabelGroupAccount && !hasTargets(group) {
			stale = append(stale, key)
		}
	}
	return stale
}
