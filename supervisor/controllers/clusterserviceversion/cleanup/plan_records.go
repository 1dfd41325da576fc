package cleanup

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// removeRecords removes the records of install plans of the version from CustomResourceDefinitions. A record
// names a version by namespace and name. It would count for a later version of that name, of any package.
//
// The finalizer keeps the name of the version taken, so that no record of a later version is removed. A plan
// that has read the record for a later version reads the definition again after it has created the version.
func (c *Cleaner) removeRecords(ctx context.Context, up *cleanup) (stageResult, error) {
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := c.crds.List(ctx, &list, readOnly); err != nil {
		return stageResult{}, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	for i := range list.Items {
		crd := &list.Items[i]
		keys := plansteps.InstalledAlongsideKeys(crd, client.ObjectKeyFromObject(up.csv))
		if len(keys) == 0 {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		u.SetName(crd.Name)
		u.SetUID(crd.UID)
		err := apply.RemoveAnnotations(ctx, c.client, u, keys)
		if client.IgnoreNotFound(err) != nil {
			return stageResult{}, err //nolint:wrapcheck // names the definition
		}
	}
	return stageResult{}, nil
}
