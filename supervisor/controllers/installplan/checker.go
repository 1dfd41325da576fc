package installplan

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/grant"
)

// pageSize bounds how many custom resources are in memory at once.
const pageSize = 200

// maxComplaint bounds, in bytes, what is told of one custom resource.
const maxComplaint = 1024

// checker says whether a CustomResourceDefinition may take the place of another.
type checker struct {
	// client lists custom resources.
	client client.Reader
	// lender gives the supervisor the right to list those of a definition, which it
	// does not have otherwise.
	lender *grant.Lender
	// onInvalid is told of a resource that would not be valid in a new version that
	// its own webhook converts to.
	onInvalid func(complaint string)
}

// check compares the definition that is there with the one of a bundle.
func (c *checker) check(ctx context.Context, live, u *unstructured.Unstructured) error {
	before, err := typedCRD(live)
	if err != nil {
		return err
	}
	after, err := typedCRD(u)
	if err != nil {
		return err
	}
	if version := droppedVersion(before, after); version != "" {
		return fmt.Errorf("%w: risk of data loss updating %q: new CRD removes version %s that is listed as a stored version on the existing CRD; migrate what is stored in it and take it out of status.storedVersions of the CustomResourceDefinition",
			errUnsafe, after.Name, version)
	}
	if !established(live) {
		// Without being served it cannot have any resources.
		return nil
	}
	for _, version := range changedVersions(before, after) {
		v, err := newValidator(version)
		if err != nil {
			return fmt.Errorf("%w: the schema of version %s of %q cannot be read: %w", errUnsafe, version.Name, after.Name, err)
		}
		kind := schema.GroupVersionKind{Group: after.Spec.Group, Version: version.Name, Kind: before.Spec.Names.Kind}
		complaint, err := c.existing(ctx, before, kind, v)
		if err != nil {
			return err
		}
		if complaint == "" {
			continue
		}
		complaint = fmt.Sprintf("error validating existing CRs against new CRD's schema for %q: %s", after.Name, complaint)
		if after.Spec.Conversion != nil && after.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			// The webhook of the new version may well fix it.
			c.onInvalid(complaint)
			continue
		}
		return fmt.Errorf("%w: %s; change that object so that it is valid, and the plan goes on by itself", errUnsafe, complaint)
	}
	return nil
}

// existing looks at every resource of a kind, and tells of the first that would not
// be valid.
func (c *checker) existing(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, kind schema.GroupVersionKind, v *validator) (string, error) {
	var complaint string
	err := c.lender.With(ctx, crd, grant.Check, func() error {
		var err error
		complaint, err = c.pages(ctx, kind, v)
		return err
	})
	return complaint, err //nolint:wrapcheck // it says which kind
}

// pages reads a kind page by page.
func (c *checker) pages(ctx context.Context, kind schema.GroupVersionKind, v *validator) (complaint string, err error) {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for first := true; first || page.GetContinue() != ""; first = false {
		err := c.client.List(ctx, page, client.Limit(pageSize), client.Continue(page.GetContinue()))
		if apierrors.IsResourceExpired(err) {
			// It took so long that the list has to be begun again.
			err = c.client.List(ctx, page, client.Limit(pageSize))
		}
		if err != nil {
			return "", fmt.Errorf("listing the objects of kind %s: %w", kind, err)
		}
		for i := range page.Items {
			if problem := v.problem(page.Items[i].Object); problem != "" {
				key := client.ObjectKeyFromObject(&page.Items[i])
				return bundles.Clip(fmt.Sprintf("error validating %s %q: updated validation is too restrictive: %s", kind, key, problem), maxComplaint), nil
			}
		}
	}
	return "", nil
}

func typedCRD(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return nil, fmt.Errorf("%w: reading %s as apiextensions.k8s.io/v1: %w", errUnsafe, describe(u), err)
	}
	return crd, nil
}

// logged makes a complaint a line of the log.
func logged(logger logr.Logger) func(string) {
	return func(complaint string) { logger.Info("Custom resource would not be valid", "complaint", complaint) }
}
