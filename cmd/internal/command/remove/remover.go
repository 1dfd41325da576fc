package remove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/cmd/internal/console"
	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	// pollInterval is the time between two checks of whether objects are deleted.
	pollInterval = time.Second
	// pageSize is the number of custom resources per request.
	pageSize = 500
	// maxListed is the largest number of objects in an error.
	maxListed = 5
)

// remover reads and deletes the objects of an operator.
type remover struct {
	client    client.Client
	namespace string
	timeout   time.Duration
	log       io.Writer
}

// read returns what the cluster contains of the operator of a Subscription. Without crds, the user may lack permission to
// read beyond the namespace.
func (r *remover) read(ctx context.Context, name string, crds bool) (*inventory, error) {
	o := &inventory{subscription: &operatorsv1alpha1.Subscription{}}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, o.subscription)
	if apierrors.IsNotFound(err) {
		return nil, &console.Coded{Code: console.Negative, Err: fmt.Errorf("%s %s/%s does not exist; check the name and --namespace",
			operatorsv1alpha1.SubscriptionKind, r.namespace, name)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading Subscription %s/%s: %w", r.namespace, name, err)
	}
	var all operatorsv1alpha1.ClusterServiceVersionList
	err = r.client.List(ctx, &all)
	if apierrors.IsForbidden(err) && !crds {
		err = r.client.List(ctx, &all, client.InNamespace(r.namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("listing ClusterServiceVersions: %w", err)
	}
	names := []string{o.subscription.Status.InstalledCSV, o.subscription.Status.CurrentCSV}
	for i := range all.Items {
		if csv := &all.Items[i]; csv.Namespace == r.namespace && !csv.IsCopied() && slices.Contains(names, csv.Name) {
			o.versions = append(o.versions, *csv)
		}
	}
	if o.definitions, err = r.definitions(ctx, o.versions, all.Items, crds); err != nil {
		return nil, err
	}
	o.generated, err = r.generated(ctx, name)
	return o, err
}

// generated returns the other Subscriptions of the namespace that resolution created.
func (r *remover) generated(ctx context.Context, name string) ([]string, error) {
	var subscriptions operatorsv1alpha1.SubscriptionList
	if err := r.client.List(ctx, &subscriptions, client.InNamespace(r.namespace)); err != nil {
		return nil, fmt.Errorf("listing the Subscriptions of namespace %s: %w", r.namespace, err)
	}
	var names []string
	for i := range subscriptions.Items {
		if sub := &subscriptions.Items[i]; sub.Name != name && sub.Annotations[api.AnnotationGeneratedBy] != "" {
			names = append(names, sub.Name)
		}
	}
	return names, nil
}

// definitions returns the existing CustomResourceDefinitions of versions, with the numbers of their objects.
func (r *remover) definitions(ctx context.Context, own, all []operatorsv1alpha1.ClusterServiceVersion, crds bool) ([]definition, error) {
	var found []definition
	for _, name := range ownedBy(own) {
		d := definition{Name: name}
		d.Users, d.Dependents = usersOf(name, all, own)
		exists, objects, err := r.customResources(ctx, name)
		switch {
		case apierrors.IsForbidden(err) && !crds:
		case err != nil:
			return nil, err
		case !exists:
			continue
		default:
			d.Objects = new(len(objects))
		}
		d.Cleaned, d.Cleanup = cleanedObjects(name, objects, all, own)
		found = append(found, d)
	}
	return found, nil
}

// customResources returns whether a CustomResourceDefinition exists, and its objects.
func (r *remover) customResources(ctx context.Context, name string) (exists bool, objects []metav1.PartialObjectMetadata, err error) {
	crd, err := r.crd(ctx, name)
	if err != nil || crd == nil {
		return false, nil, err
	}
	objects, err = r.objects(ctx, crd)
	return true, objects, err
}

// ownedBy returns the names of the CustomResourceDefinitions of versions, sorted.
func ownedBy(versions []operatorsv1alpha1.ClusterServiceVersion) []string {
	var names []string
	for i := range versions {
		for _, owned := range versions[i].Spec.CustomResourceDefinitions.Owned {
			names = append(names, owned.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// crd returns a CustomResourceDefinition; nil if it does not exist.
func (r *remover) crd(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a definition that does not exist is no error
	}
	if err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	return crd, nil
}

// objects returns the custom resources of a definition, in all namespaces.
func (r *remover) objects(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) ([]metav1.PartialObjectMetadata, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if i < 0 {
		return nil, nil
	}
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[i].Name, Kind: crd.Spec.Names.Kind}
	var all []metav1.PartialObjectMetadata
	options := &client.ListOptions{Limit: pageSize}
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := r.client.List(ctx, list, options); err != nil {
			return nil, fmt.Errorf("listing the objects of CustomResourceDefinition %s: %w", crd.Name, err)
		}
		for j := range list.Items {
			list.Items[j].SetGroupVersionKind(gvk)
		}
		all = append(all, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
	}
}

const repeat = "repeat the command to continue"

// remove deletes the custom resources of definitions, then the operator, then the definitions. The error says how to continue.
func (r *remover) remove(ctx context.Context, o *inventory, definitions []definition) error {
	for _, d := range definitions {
		if err := r.removeObjects(ctx, d.Name); err != nil {
			return fmt.Errorf("%w; %s", err, repeat)
		}
	}
	toDelete := []client.Object{o.subscription}
	for i := range o.versions {
		toDelete = append(toDelete, &o.versions[i])
	}
	for _, d := range definitions {
		toDelete = append(toDelete, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: d.Name}})
	}
	for i, object := range toDelete {
		if err := r.removeOne(ctx, object); err != nil {
			return fmt.Errorf("%w; %s", err, remedy(toDelete[i:]))
		}
	}
	return nil
}

// remedy says how to delete the rest. Without the Subscription, the command does not know what belongs to the operator.
func remedy(rest []client.Object) string {
	if kindOf(rest[0]) == operatorsv1alpha1.SubscriptionKind {
		return repeat
	}
	commands := make([]string, 0, len(rest))
	for _, object := range rest {
		if object.GetNamespace() == "" {
			commands = append(commands, "kubectl delete customresourcedefinition "+object.GetName())
		} else {
			commands = append(commands, "kubectl -n "+object.GetNamespace()+" delete clusterserviceversion "+object.GetName())
		}
	}
	return "the Subscription is deleted; to continue, run: " + strings.Join(commands, " && ")
}

// removeOne deletes an object and, unless it is a Subscription, waits until it does not exist any more. With
// chandlery.dev/on-delete, a Subscription is deleted after its ClusterServiceVersion.
func (r *remover) removeOne(ctx context.Context, object client.Object) error {
	kind := kindOf(object)
	what := kind + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
	fmt.Fprintf(r.log, "Deleting %s ...\n", what)
	var options []client.DeleteOption
	if uid := object.GetUID(); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	if err := r.client.Delete(ctx, object, options...); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s: %w", what, err)
	}
	if kind == operatorsv1alpha1.SubscriptionKind {
		return nil
	}
	live, _ := object.DeepCopyObject().(client.Object)
	return r.await(ctx, what, func(ctx context.Context) ([]string, error) {
		err := r.client.Get(ctx, client.ObjectKeyFromObject(object), live)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []string{what}, err
	})
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *operatorsv1alpha1.Subscription:
		return operatorsv1alpha1.SubscriptionKind
	case *operatorsv1alpha1.ClusterServiceVersion:
		return operatorsv1alpha1.ClusterServiceVersionKind
	default:
		return "CustomResourceDefinition"
	}
}

// removeObjects deletes all custom resources of a definition, and waits until none exists.
func (r *remover) removeObjects(ctx context.Context, name string) error {
	fmt.Fprintf(r.log, "Deleting the objects of CustomResourceDefinition %s ...\n", name)
	return r.await(ctx, "the objects of CustomResourceDefinition "+name, func(ctx context.Context) ([]string, error) {
		crd, err := r.crd(ctx, name)
		if err != nil || crd == nil {
			return nil, err
		}
		objects, err := r.objects(ctx, crd)
		if err != nil {
			return nil, err
		}
		var left []string
		for i := range objects {
			left = append(left, strings.TrimPrefix(objects[i].Namespace+"/"+objects[i].Name, "/"))
			if !objects[i].DeletionTimestamp.IsZero() {
				continue
			}
			if err := r.client.Delete(ctx, &objects[i]); err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("deleting %s %s: %w", objects[i].Kind, left[i], err)
			}
		}
		return left, nil
	})
}

// await waits until nothing is left.
func (r *remover) await(ctx context.Context, what string, read func(context.Context) (left []string, err error)) error {
	var left []string
	// A request may begin shortly before the end: the client refuses one that cannot end in time with an error of its own.
	err := wait.PollUntilContextTimeout(ctx, pollInterval, r.timeout, true, func(context.Context) (bool, error) {
		var err error
		left, err = read(ctx)
		return len(left) == 0, err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		names := left[:min(len(left), maxListed)]
		return &console.Coded{Code: console.Negative, Err: fmt.Errorf(
			"not deleted within %s (--timeout), of %s: %s; the finalizers of each object show what blocks the deletion",
			r.timeout, what, strings.Join(names, ", "))}
	}
	if err != nil {
		return fmt.Errorf("waiting for the deletion of %s: %w", what, err)
	}
	return nil
}
