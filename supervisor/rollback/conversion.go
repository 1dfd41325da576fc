package rollback

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Owned names the definitions that a version owns.
func Owned(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		names = append(names, d.Name)
	}
	return names
}

// Converted names the definitions whose objects a version converts.
func Converted(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, d := range csv.Spec.WebhookDefinitions {
		if d.Type == operatorsv1alpha1.ConversionWebhook {
			names = append(names, d.ConversionCRDs...)
		}
	}
	return names
}

// Unconverted says of which of the definitions that are there, by name, objects are
// converted by the webhook of a version that is to be withdrawn, where the one that comes
// back has none: without it nobody could read them, or they would be mixed up.
func Unconverted(withdrawn, back *operatorsv1alpha1.ClusterServiceVersion, live map[string]*apiextensionsv1.CustomResourceDefinition) []string {
	var list []string
	for _, name := range Converted(withdrawn) {
		crd := live[name]
		if crd == nil || !webhook(crd) || oneForm(crd) || slices.Contains(Converted(back), name) {
			continue
		}
		list = append(list, fmt.Sprintf("objects of CustomResourceDefinition %s are stored in the versions %v and are converted between them by the webhook of %s, which %s does not have",
			name, crd.Status.StoredVersions, withdrawn.Name, back.Name))
	}
	return list
}

// oneForm says whether all objects are stored in one version, in which those written next
// will be too.
func oneForm(crd *apiextensionsv1.CustomResourceDefinition) bool {
	storage := storageOf(crd)
	return storage != nil && slices.Equal(crd.Status.StoredVersions, []string{storage.Name})
}
