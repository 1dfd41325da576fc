package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	csvwebhook "github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// conversionCleaner ends the conversion of custom resources by webhooks of deleted versions.
type conversionCleaner struct {
	client client.Client
	live   client.Reader // reads past the cache
	grants *grant.Granter
}

// clean ends the conversion of custom resources by webhooks of the version. Where that would damage
// objects, it waits for a decision of a user.
func (r conversionCleaner) clean(ctx context.Context, c *cleanup) (stageResult, error) {
	note, err := r.remove(ctx, c)
	if err != nil || note == "" || c.skips() || c.csv.Annotations[api.AnnotationWithdrawn] == api.WithdrawnToInstall {
		return stageResult{}, err
	}
	return stageResult{note: note + "; " + c.skipCommand()}, nil
}

// remove removes the conversions by csv from CustomResourceDefinitions. It returns which ones
// cannot be removed and why; empty when none is left.
func (r conversionCleaner) remove(ctx context.Context, c *cleanup) (string, error) {
	servers := webhook.ConversionServers(c.csv)
	var left []string
	for _, server := range servers {
		for i := range server.Webhooks {
			for _, name := range server.Webhooks[i].ConversionCRDs {
				if err := r.removePending(ctx, c, name); err != nil {
					return "", err
				}
				if convertedByOther(c, name) {
					continue
				}
				why, err := r.removeConversion(ctx, c, servers, name)
				if err != nil {
					return "", err
				}
				if why != "" {
					left = append(left, why)
				}
			}
		}
	}
	return strings.Join(left, "; "), nil
}

// convertedByOther reports whether a remaining version converts the objects of a definition.
func convertedByOther(c *cleanup, crd string) bool {
	return slices.ContainsFunc(c.others, func(other *operatorsv1alpha1.ClusterServiceVersion) bool {
		return other.UID != c.csv.UID && other.Namespace == c.csv.Namespace && other.DeletionTimestamp.IsZero() &&
			slices.ContainsFunc(other.Spec.WebhookDefinitions, func(d operatorsv1alpha1.WebhookDescription) bool {
				return d.Type == operatorsv1alpha1.ConversionWebhook && slices.Contains(d.ConversionCRDs, crd)
			})
	})
}

// removePending removes the annotations of a definition about changes that wait for the version's
// webhook, which will never answer.
func (r conversionCleaner) removePending(ctx context.Context, c *cleanup, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	}
	change := webhook.RemoveAnnotations(crd, client.ObjectKeyFromObject(c.csv))
	if change == nil {
		return nil
	}
	return csvwebhook.PatchConversion(ctx, r.client, crd, change)
}

func (r conversionCleaner) removeConversion(ctx context.Context, c *cleanup, servers []webhook.Server, name string) (string, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("getting CustomResourceDefinition %s: %w", name, err)
	}
	change, left := webhook.RemoveConversion(crd, c.csv.Namespace, servers, false)
	if left != "" {
		empty, err := r.isEmpty(ctx, crd)
		if err != nil {
			// Objects that cannot be read count as existing.
			left += fmt.Sprintf(" (reading its objects: %v)", err)
		}
		if empty {
			change, left = webhook.RemoveConversion(crd, c.csv.Namespace, servers, true)
		}
	}
	if change == nil {
		return left, nil
	}
	return "", csvwebhook.PatchConversion(ctx, r.client, crd, change)
}

// isEmpty reports whether a definition has no objects, read in its storage version.
func (r conversionCleaner) isEmpty(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage && v.Served })
	if i < 0 {
		return false, errors.New("the version of storage is not served")
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[i].Name, Kind: crd.Spec.Names.Kind})
	err := r.grants.With(ctx, crd, grant.Check, func() error { return r.live.List(ctx, list, client.Limit(1)) })
	if err != nil {
		return false, fmt.Errorf("listing %s: %w", crd.Name, err)
	}
	return len(list.Items) == 0, nil
}
