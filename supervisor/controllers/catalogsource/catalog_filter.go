package catalogsource

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/bundles/selection"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
)

const (
	// keySelection is the key of a selection in a ConfigMap with several keys.
	keySelection = "selection"
	// maxSelection limits a selection, in bytes, because it is an argument of a container.
	maxSelection = 64 << 10
)

// parsedSelection is the result of evaluating the filter annotation of a CatalogSource.
type parsedSelection struct {
	value, image string
	configMap    types.UID
	version      string
	selection    string
	err          error
}

// filterError is an invalid filter annotation. The problem includes the remedy.
type filterError struct{ problem string }

// Error returns the problem with the name of the annotation.
func (e *filterError) Error() string {
	return "annotation " + api.AnnotationCatalogFilter + " " + e.problem
}

// filter returns the part of the catalog to serve. With a problem, it is unknown. Running replicas then
// stay, and no replica starts with more content.
func (r *hostedReconciler) filter(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (text string, problem reconcileResult) {
	if _, given := source.Annotations[api.AnnotationCatalogFilter]; !given {
		return "", reconcileResult{}
	}
	err := error(&filterError{"cannot be applied, because the replicas run the image unchanged; set spec.grpcPodConfig.extractContent, or remove the annotation"})
	if deployment.RunsRegistry(source, &r.config.Settings) {
		text, err = r.configMaps.selection(ctx, source)
	}
	switch {
	case err == nil:
		return text, reconcileResult{}
	case isFilterError(err):
		return "", reconcileResult{reason: operatorsv1alpha1.CatalogSourceSpecInvalidError, problem: err.Error(), blocked: api.ReasonBlocked}
	default:
		return "", reconcileResult{reason: operatorsv1alpha1.CatalogSourceConfigMapError, problem: err.Error(), blocked: api.ReasonBlocked, failed: true}
	}
}

func isFilterError(err error) bool {
	_, is := errors.AsType[*filterError](err)
	return is
}

// selection returns the selection of a CatalogSource's annotation as an argument of the registry;
// empty for the whole catalog. The error is a [*filterError] if the user must correct something.
func (c *configMaps) selection(ctx context.Context, source *operatorsv1alpha1.CatalogSource) (string, error) {
	value := strings.TrimSpace(source.Annotations[api.AnnotationCatalogFilter])
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		text, err := readSelection(value, source.Spec.Image)
		if err != nil {
			return "", &filterError{fmt.Sprintf("is neither the name of a ConfigMap nor a selection: %v; correct it, or name a ConfigMap that contains a selection", err)}
		}
		return text, nil
	}
	key := client.ObjectKey{Namespace: source.Namespace, Name: value}
	found, err := c.find(ctx, key, "annotation "+api.AnnotationCatalogFilter)
	if err != nil {
		return "", err
	}
	last, _ := c.selections.get(client.ObjectKeyFromObject(source))
	if last.value == found.Name && last.image == source.Spec.Image && last.configMap == found.UID && last.version == found.ResourceVersion {
		return last.selection, last.err
	}
	content := &corev1.ConfigMap{}
	if err := c.live.Get(ctx, key, content); err != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	next := parsedSelection{value: value, image: source.Spec.Image, configMap: content.UID, version: content.ResourceVersion}
	text, err := selectionIn(content)
	if err == nil {
		next.selection, err = readSelection(text, source.Spec.Image)
	}
	if err != nil {
		next.err = &filterError{fmt.Sprintf("names ConfigMap %s, which contains no selection: %v; correct it", key, err)}
	}
	c.selections.set(client.ObjectKeyFromObject(source), next)
	return next.selection, next.err
}

var (
	errNoSelection    = errors.New("it has no data")
	errManySelections = errors.New("it has several keys, and none of them is " + keySelection)
	errSelectionLarge = fmt.Errorf("it takes more than %d bytes", maxSelection)
)

// selectionIn returns the selection in a ConfigMap: the value of keySelection, or the only value.
func selectionIn(content *corev1.ConfigMap) (string, error) {
	if text, ok := content.Data[keySelection]; ok {
		return text, nil
	}
	switch len(content.Data) {
	case 0:
		return "", errNoSelection
	case 1:
		for _, text := range content.Data {
			return text, nil
		}
	}
	return "", errManySelections
}

// readSelection validates a selection and returns it as an argument of the registry.
func readSelection(text, image string) (string, error) {
	s, err := selection.Parse([]byte(text), image)
	if err != nil {
		return "", errors.New(bundles.OneLine(err.Error())) //nolint:err113 // the text is for a status, on one line
	}
	if s.IsZero() {
		return "", nil
	}
	// Kubernetes expands variable references in container arguments.
	out := strings.ReplaceAll(s.String(), "$", `\u0024`)
	if len(out) > maxSelection {
		return "", errSelectionLarge
	}
	return out, nil
}

// ineffectiveFilter returns a message if the annotation has no effect because the catalog is not
// hosted.
func ineffectiveFilter(source *operatorsv1alpha1.CatalogSource) string {
	value, given := source.Annotations[api.AnnotationCatalogFilter]
	if !given {
		return ""
	}
	return (&filterError{"is " + strconv.Quote(bundles.Clip(value, maxQuoted)) + " and has no effect on a catalog at spec.address; remove it, or name the image of the catalog in spec.image"}).Error()
}

// maxQuoted limits a quoted value in messages, in bytes.
const maxQuoted = 100
