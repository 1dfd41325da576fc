package deployment

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

// ImageOf returns the image that a Deployment runs; nil if it does not run a catalog image.
func ImageOf(d *appsv1.Deployment) *digest.Image {
	if d == nil || d.Annotations[api.AnnotationImage] == "" {
		return nil
	}
	return &digest.Image{
		Spec:       d.Annotations[api.AnnotationImage],
		Digest:     d.Annotations[api.AnnotationImageDigest],
		CatalogDir: d.Annotations[api.AnnotationCatalogDir],
	}
}

// ConfigMapOf returns the name of the ConfigMap that a Deployment mounts; empty if there is none.
func ConfigMapOf(d *appsv1.Deployment) string {
	for i := range d.Spec.Template.Spec.Volumes {
		if v := &d.Spec.Template.Spec.Volumes[i]; v.Name == volumeContent && v.ConfigMap != nil {
			return v.ConfigMap.Name
		}
	}
	return ""
}

// HasSelection reports whether the replicas of a Deployment serve a selection.
func HasSelection(d *appsv1.Deployment) bool {
	if d == nil || len(d.Spec.Template.Spec.Containers) == 0 {
		return false
	}
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Args, func(argument string) bool {
		return strings.HasPrefix(argument, flagSelection)
	})
}
