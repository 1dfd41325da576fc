package catalogsource

import (
	"cmp"
	"context"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/imagepolicy"
	"github.com/chandlery/chandlery/supervisor/imagesources"
)

// ownSettingsTime is the time between two checks of ConfigMaps with settings of a catalog. They are not watched.
const ownSettingsTime = 10 * time.Second

// imageSettings checks the settings for image registries and the rules for signatures of catalogs. The bundles of catalogs
// with an image and of those at an address are pulled with them. Catalogs from a ConfigMap have no images.
type imageSettings struct {
	// reader reads ConfigMaps.
	reader   client.Reader
	settings *imagesources.Settings
	policies *imagepolicy.Policies
}

// check returns the condition about invalid settings; nil if they are valid. next is when to check again; 0 for at the next
// change.
func (s *imageSettings) check(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (invalid *metav1.Condition, next time.Duration) {
	if catalogs.IsConfigMap(source) {
		return nil, 0
	}
	config, verify := source.Annotations[api.AnnotationImageConfig], source.Annotations[api.AnnotationImageVerify]
	if config != "" || verify != "" {
		next = ownSettingsTime
	}
	problem := cmp.Or(
		s.settings.CatalogProblem(ctx, s.reader, &imagesources.Catalog{NamespacedName: client.ObjectKeyFromObject(source), Config: config}),
		s.policies.CatalogProblem(ctx, s.reader, types.NamespacedName{Namespace: source.Namespace, Name: verify}),
	)
	if problem == "" {
		return nil, next
	}
	return &metav1.Condition{
		Type: api.ConditionImageSettingsInvalid, Status: metav1.ConditionTrue, Reason: api.ReasonInvalidFiles, Message: problem,
	}, next
}
