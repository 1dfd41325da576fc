package rollback

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Owned returns the names of the definitions that a version owns.
func Owned(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		names = append(names, d.Name)
	}
	return names
}

// Converted returns the names of the definitions whose objects a version converts.
func Converted(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for _, d := range csv.Spec.WebhookDefinitions {
		if d.Type == operatorsv1alpha1.ConversionWebhook {
			names = append(names, d.ConversionCRDs...)
		}
	}
	return names
}

// Unconverted returns the definitions that would lose their conversion webhook, of the live ones by name. The
// webhook belongs to the version to withdraw, and the version to restore has none. Without it, objects could
// not be read, or versions would be mixed up.
func Unconverted(withdrawn, restored *operatorsv1alpha1.ClusterServiceVersion, live map[string]*apiextensionsv1.CustomResourceDefinition) []string {
	var list []string
	for _, name := range Converted(withdrawn) {
		crd := live[name]
		if crd == nil || !webhook(crd) || singleStorage(crd) || slices.Contains(Converted(restored), name) {
			continue
		}
		list = append(list, fmt.Sprintf("objects of CustomResourceDefinition %s are stored in the versions %v and are converted between them by the webhook of %s, which %s does not have",
			name, crd.Status.StoredVersions, withdrawn.Name, restored.Name))
	}
	return list
}

// singleStorage reports whether all objects are stored in one version, which is also the one for new writes.
func singleStorage(crd *apiextensionsv1.CustomResourceDefinition) bool {
	storage := storageOf(crd)
	return storage != nil && slices.Equal(crd.Status.StoredVersions, []string{storage.Name})
}
