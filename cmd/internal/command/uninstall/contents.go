package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packagesGroup is the group of PackageManifests, which are not stored. A supervisor serves it, so it may be unavailable.
const packagesGroup = "packages.operators.coreos.com"

// Contents are the objects that the deletion of the supervisors' namespace would delete although they are not the product's.
type Contents struct {
	// Objects are the kinds and names of the objects: users' objects, and the record of a takeover.
	Objects []string
	// Unlisted are the API versions whose objects could not be listed.
	Unlisted []string
}

// resourceLister lists the namespaced resources of a cluster.
type resourceLister interface {
	ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error)
}

// contents lists the objects of the supervisors' namespace. A namespace without the product's label is never deleted, and
// not listed.
func (r *inventoryReader) contents(ctx context.Context, o *Inventory) error {
	if !o.NamespaceOwned {
		return nil
	}
	lists, err := r.resources.ServerPreferredNamespacedResources()
	failed, partial := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !partial {
		return fmt.Errorf("finding the kinds of the objects in namespace %s: %w", r.namespace, err)
	}
	if partial {
		for version := range failed.Groups {
			if version.Group != packagesGroup {
				o.Contents.Unlisted = append(o.Contents.Unlisted, version.String())
			}
		}
	}
	var all []metav1.PartialObjectMetadata
	for _, gvk := range storedKinds(lists) {
		list, err := listOf(ctx, r.client, gvk, client.InNamespace(r.namespace))
		switch {
		case apierrors.IsMethodNotSupported(err):
			continue
		case apierrors.IsServiceUnavailable(err):
			o.Contents.Unlisted = append(o.Contents.Unlisted, gvk.GroupVersion().String())
			continue
		case err != nil:
			return fmt.Errorf("finding the objects in namespace %s: %w", r.namespace, err)
		}
		for i := range list {
			list[i].SetGroupVersionKind(gvk)
		}
		all = append(all, list...)
	}
	slices.Sort(o.Contents.Unlisted)
	o.Contents.Unlisted = slices.Compact(o.Contents.Unlisted)
	o.Contents.Objects = foreignObjects(all)
	return nil
}

// storedKinds returns the kinds whose objects the deletion of their namespace deletes, without Events.
func storedKinds(lists []*metav1.APIResourceList) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			resource := &list.APIResources[i]
			if slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "delete") && resource.Kind != "Event" {
				kinds = append(kinds, version.WithKind(resource.Kind))
			}
		}
	}
	return kinds
}

// foreignObjects returns the kinds and names of the objects of a namespace that are neither the product's nor created by
// Kubernetes in each namespace. An object with an owner in the namespace is left out, because it depends on its owner.
func foreignObjects(all []metav1.PartialObjectMetadata) []string {
	present, named := map[types.UID]bool{}, map[Object]bool{}
	for i := range all {
		present[all[i].UID] = true
		named[Object{Group: all[i].GroupVersionKind().Group, Kind: all[i].Kind, Name: all[i].Name}] = true
	}
	var names []string
	seen := map[types.UID]bool{}
	for i := range all {
		o := &all[i]
		owned := slices.ContainsFunc(o.OwnerReferences, func(ref metav1.OwnerReference) bool { return present[ref.UID] })
		// An object that two groups serve is listed twice.
		if owned || o.UID != "" && seen[o.UID] || isProduct(o) || isDefault(o) || named[creatorOf(o)] {
			continue
		}
		seen[o.UID] = true
		names = append(names, o.Kind+" "+o.Name)
	}
	slices.Sort(names)
	return names
}

// isProduct reports whether an object belongs to the product: by its label, as a Lease of a supervisor, or as a copied
// ClusterServiceVersion.
func isProduct(o *metav1.PartialObjectMetadata) bool {
	_, copied := o.Labels[operatorsv1alpha1.CopiedLabelKey]
	return o.Labels[labelPartOf] == product ||
		o.Kind == "Lease" && slices.Contains([]string{supervisorName, packageServer}, o.Name) ||
		o.Kind == operatorsv1alpha1.ClusterServiceVersionKind && copied
}

// isDefault reports whether Kubernetes or OpenShift creates the object in each namespace.
func isDefault(o *metav1.PartialObjectMetadata) bool {
	return slices.Contains(map[string][]string{
		"ConfigMap":      {"kube-root-ca.crt", "openshift-service-ca.crt"},
		"ServiceAccount": {"default", "builder", "deployer"},
		"RoleBinding":    {"system:deployers", "system:image-builders", "system:image-pullers"},
	}[o.Kind], o.Name)
}

// creatorOf returns the object for which Kubernetes creates an object without an owner reference: the Service of
// Endpoints, and the ServiceAccount of a Secret with a token.
func creatorOf(o *metav1.PartialObjectMetadata) Object {
	switch account := o.Annotations[corev1.ServiceAccountNameKey]; {
	case o.Kind == "Endpoints":
		return Object{Kind: "Service", Name: o.Name}
	case o.Kind == "Secret" && account != "":
		return Object{Kind: "ServiceAccount", Name: account}
	default:
		return Object{}
	}
}
