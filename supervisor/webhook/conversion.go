package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

// Conversion is the conversion between the versions of a CustomResourceDefinition.
type Conversion struct {
	// CRD is the name of the definition.
	CRD string
	// Deployment is the Deployment of the webhook.
	Deployment string
	// CSV is the ClusterServiceVersion that declares it.
	CSV types.NamespacedName
	// Want is the conversion that the definition must have.
	Want *apiextensionsv1.CustomResourceConversion
}

// Conversions returns the conversions that csv declares, in the order of their descriptions. A server without a
// certificate in certs is omitted.
func Conversions(csv *operatorsv1alpha1.ClusterServiceVersion, servers []Server, certs map[string]*Certificate) []Conversion {
	var out []Conversion
	for _, s := range servers {
		c := certs[s.Deployment]
		if c == nil {
			continue
		}
		for i := range s.Webhooks {
			d := &s.Webhooks[i]
			if d.Type != operatorsv1alpha1.ConversionWebhook {
				continue
			}
			for _, crd := range d.ConversionCRDs {
				out = append(out, Conversion{
					CRD: crd, Deployment: s.Deployment, CSV: types.NamespacedName{Namespace: csv.Namespace, Name: csv.Name},
					Want: conversion(csv.Namespace, s, d, c.Bundle()),
				})
			}
		}
	}
	return out
}

func conversion(namespace string, s Server, d *operatorsv1alpha1.WebhookDescription, bundle []byte) *apiextensionsv1.CustomResourceConversion {
	path := "/"
	if d.WebhookPath != nil {
		path = *d.WebhookPath
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{
					Namespace: namespace, Name: s.ServiceName(), Path: &path, Port: new(portOr443(d.ContainerPort)),
				},
				CABundle: bundle,
			},
			ConversionReviewVersions: slices.Clone(d.AdmissionReviewVersions),
		},
	}
}

// Change is a change to a definition. Empty fields change nothing.
type Change struct {
	// Conversion is the conversion to set.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Storage is the version to store objects in.
	Storage string
	// Serve are versions to serve.
	Serve []string
	// RemovedAnnotations are the annotations that are no longer needed.
	RemovedAnnotations []string
}

// ConversionState is the state of the webhooks on which a change of conversion depends.
type ConversionState struct {
	// Answers is true if the new webhook has answered.
	Answers bool
	// ServiceMissing is true if the Service in the definition no longer exists.
	ServiceMissing bool
}

// Next returns the change to make to a definition now; nil if there is none. waits reports whether another
// change follows when the webhook has answered.
//
// A definition without conversion gets one at once, unless AnnotationConversion delays it. Requests for another
// version than the stored one then fail until the webhook answers. Without conversion, they would store objects
// in the wrong version. A working conversion remains until the new webhook answers. Only its CA bundle follows
// the certificate at once.
func (c Conversion) Next(live *apiextensionsv1.CustomResourceDefinition, in ConversionState) (change *Change, waits bool) {
	var next Change
	next.Conversion, waits = c.nextConversion(live, in)
	if next.Conversion == c.Want && isConversionDeferred(live, c.CSV) {
		next.RemovedAnnotations = append(next.RemovedAnnotations, api.AnnotationConversion)
	}
	// The webhook cannot be called for these versions before it is set up.
	if serve := deferredVersions(live, c.CSV); len(serve) > 0 && (next.Conversion != nil || webhookOf(live) != nil) {
		next.Serve, next.RemovedAnnotations = serve, append(next.RemovedAnnotations, api.AnnotationServedVersions)
	}
	storage := deferredStorage(live, c.CSV)
	switch {
	case storage == "":
	case in.Answers:
		next.Storage, next.RemovedAnnotations = storage, append(next.RemovedAnnotations, api.AnnotationStorageVersion)
	default:
		waits = true
	}
	if next.Conversion == nil && next.Storage == "" && len(next.Serve) == 0 {
		return nil, waits
	}
	return &next, waits
}

// nextConversion returns the conversion to set now; nil to keep the current one.
func (c Conversion) nextConversion(live *apiextensionsv1.CustomResourceDefinition, in ConversionState,
) (next *apiextensionsv1.CustomResourceConversion, waits bool) {
	have, current := webhookOf(live), live.Spec.Conversion
	switch {
	case equality.Semantic.DeepEqual(current, c.Want):
		return nil, false
	case have == nil && isConversionDeferred(live, c.CSV) && !in.Answers:
		return nil, true
	case have == nil || in.ServiceMissing || in.Answers:
		return c.Want, false
	case !sameService(have, c.Want.Webhook):
		return nil, true
	}
	// The pods behind the Service have the certificate of its Secret, and the bundle has its authority.
	next = withBundle(current, c.Want.Webhook.ClientConfig.CABundle)
	waits = !equality.Semantic.DeepEqual(next, c.Want)
	if equality.Semantic.DeepEqual(next, current) {
		next = nil
	}
	return next, waits
}

// webhookOf returns the conversion webhook of a definition that can be called; nil if there is none.
func webhookOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookConversion {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return nil
	}
	if c.Webhook.ClientConfig.Service == nil && c.Webhook.ClientConfig.URL == nil {
		return nil
	}
	return c.Webhook
}

func sameService(a, b *apiextensionsv1.WebhookConversion) bool {
	x, y := a.ClientConfig.Service, b.ClientConfig.Service
	return x != nil && y != nil && x.Namespace == y.Namespace && x.Name == y.Name
}

func withBundle(c *apiextensionsv1.CustomResourceConversion, bundle []byte) *apiextensionsv1.CustomResourceConversion {
	out := c.DeepCopy()
	out.Webhook.ClientConfig.CABundle = bundle
	return out
}

// operation is an operation of a JSON patch, see RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the JSON patch that makes a change in one write, and that conflicts if the definition has
// changed since it was read. It needs no schemas.
func (c Change) Patch(live *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	// The API server compares the version with its own, and answers with a conflict.
	ops := []operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: live.ResourceVersion}}
	if c.Conversion != nil {
		ops = append(ops, operation{Op: "add", Path: "/spec/conversion", Value: c.Conversion})
	}
	if c.Storage != "" {
		for i, v := range live.Spec.Versions {
			ops = append(ops, operation{Op: "replace", Path: fmt.Sprintf("/spec/versions/%d/storage", i), Value: v.Name == c.Storage})
		}
	}
	for i, v := range live.Spec.Versions {
		if slices.Contains(c.Serve, v.Name) {
			ops = append(ops, operation{Op: "replace", Path: fmt.Sprintf("/spec/versions/%d/served", i), Value: true})
		}
	}
	for _, key := range c.RemovedAnnotations {
		ops = append(ops, operation{Op: "remove", Path: "/metadata/annotations/" + escaped(key)})
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of CustomResourceDefinition %s: %w", live.Name, err)
	}
	return body, nil
}

// RemoveConversion returns the change to a conversion whose webhook in namespace is deleted. change is nil if the
// definition converts in another way. It is also nil, with the reason in left, if some objects would otherwise
// be read and then stored in the wrong version. empty reports whether the definition has no objects.
func RemoveConversion(live *apiextensionsv1.CustomResourceDefinition, namespace string, servers []Server, empty bool) (change *Change, left string) {
	have := webhookOf(live)
	if have == nil || have.ClientConfig.Service == nil || have.ClientConfig.Service.Namespace != namespace {
		return nil, ""
	}
	name := have.ClientConfig.Service.Name
	if !slices.ContainsFunc(servers, func(s Server) bool { return s.ServiceName() == name }) {
		return nil, ""
	}
	if empty || hasSingleStorageVersion(live) {
		return &Change{Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}}, ""
	}
	return nil, fmt.Sprintf("CustomResourceDefinition %s still uses conversion webhook %s/%s, which is being deleted: objects are stored in the versions %v, "+
		"and need conversion; install the operator again, or delete the objects, or, to continue without conversion, run: "+
		`kubectl patch crd %s --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`,
		live.Name, namespace, name, live.Status.StoredVersions, live.Name)
}

// hasSingleStorageVersion reports whether all objects of a definition are stored in one version, which is also the
// one for new writes.
func hasSingleStorageVersion(crd *apiextensionsv1.CustomResourceDefinition) bool {
	stored := crd.Status.StoredVersions
	return len(stored) == 1 && slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Storage && v.Name == stored[0]
	})
}
