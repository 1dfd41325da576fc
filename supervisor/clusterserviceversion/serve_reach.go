package clusterserviceversion

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/serving"
)

// observeReach reads what bounds the webhooks of a version with one OperatorGroup.
func (r *reconciler) observeReach(ctx context.Context, s *scope) (serving.Reach, error) {
	reach := serving.Reach{Group: s.Groups[0].Name, AllNamespaces: isGlobal(s.Groups), Excluded: r.namespace}
	if reach.AllNamespaces || len(s.CSV.Spec.WebhookDefinitions) == 0 {
		return reach, nil
	}
	for _, d := range s.CSV.Spec.CustomResourceDefinitions.Owned {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.crds.Get(ctx, client.ObjectKey{Name: d.Name}, crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return reach, fmt.Errorf("getting CustomResourceDefinition %s: %w", d.Name, err)
		}
		if crd.Spec.Scope == apiextensionsv1.ClusterScoped && installedWith(crd, client.ObjectKeyFromObject(s.CSV)) {
			reach.ClusterScoped = append(reach.ClusterScoped, schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural})
		}
	}
	return reach, nil
}

// desired returns the objects that a version needs to serve, as far as it may reach.
func (s *scope) desired() (serving.Objects, error) {
	objects, err := serving.Desired(s.CSV, &s.Groups[0], s.served.servers, s.served.certs)
	if err != nil {
		return serving.Objects{}, fmt.Errorf("deriving what ClusterServiceVersion %s/%s serves: %w", s.CSV.Namespace, s.CSV.Name, err)
	}
	return s.served.reach.Narrow(objects), nil
}
