package crdcache

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWithoutSchemas compares what the cache keeps of a definition with what controllers read.
func TestWithoutSchemas(t *testing.T) {
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	conversion := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "cups", Kind: "Cup"}
	status := apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}}
	records := map[string]string{
		"operatorframework.io/installed-alongside-1": "kitchen/kettle.v1",
		"chandlery.dev/storage-version":              "v2",
		"chandlery.dev/served-versions":              "v2",
		"chandlery.dev/conversion":                   "kitchen/kettle.v1",
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cups.example.com", UID: "1", ResourceVersion: "7", Generation: 3, Annotations: map[string]string{"example.com/long": "text"},
			Labels: map[string]string{"operators.coreos.com/kettle.kitchen": ""}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "catalog"}},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped, Names: names, Conversion: conversion,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: schema, AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Age"}}},
				{Name: "v2", Schema: schema},
			},
		},
		Status: status,
	}
	maps.Copy(crd.Annotations, records)
	want := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "cups.example.com", UID: "1", ResourceVersion: "7", Generation: 3, Annotations: records, Labels: crd.Labels,
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.ClusterScoped, Names: names, Conversion: conversion,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}, {Name: "v2"}},
		},
		Status: status,
	}
	got, err := withoutSchemas(crd)
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("error %v; -want, +got:\n%s", err, diff)
	}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}
	if got, err := withoutSchemas(other); got != any(other) || err != nil || other.Annotations["a"] != "b" {
		t.Errorf("another kind: %v, error %v", got, err)
	}
}
