package installplan

import (
	"context"
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api/olmtext"
	"github.com/chandlery/chandlery/supervisor/apiserver/pager"
	"github.com/chandlery/chandlery/supervisor/crd/rollback"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
)

// maxInvalidMessage bounds the message about one custom resource, in bytes.
const maxInvalidMessage = 1024

// crdChecker checks whether a CustomResourceDefinition may replace another.
type crdChecker struct {
	// client lists custom resources.
	client client.Reader
	// grants gives the supervisor permission to list the objects of a definition, which it lacks
	// otherwise.
	grants   *grant.Granter
	reporter reporter
}

// check returns an error if the definition of a bundle must not replace the live one.
func (c *crdChecker) check(ctx context.Context, live, u *unstructured.Unstructured) error {
	before, err := typedCRD(live)
	if err != nil {
		return err
	}
	after, err := typedCRD(u)
	if err != nil {
		return err
	}
	if version := droppedVersion(before, after); version != "" {
		return fmt.Errorf("%w: %s; migrate the objects that are stored in this version, and remove it from status.storedVersions of the CustomResourceDefinition",
			errUnsafe, olmtext.StoredVersionRemoved(after.Name, version))
	}
	if !established(live) {
		// A definition that is not served cannot have objects.
		return nil
	}
	for _, version := range changedVersions(before, after) {
		v, err := newValidator(version)
		if err != nil {
			return fmt.Errorf("%w: the schema of version %s of %q cannot be read: %w", errUnsafe, version.Name, after.Name, err)
		}
		kind := schema.GroupVersionKind{Group: after.Spec.Group, Version: version.Name, Kind: before.Spec.Names.Kind}
		message, err := c.findInvalid(ctx, before, kind, v)
		if err != nil {
			return err
		}
		if message == "" {
			continue
		}
		message = olmtext.ObjectsInvalid(after.Name, message)
		if after.Spec.Conversion != nil && after.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			// The webhook of the new version may fix it.
			c.reporter.invalid(olmtext.ConversionTrusted(after.Name, message))
			continue
		}
		return fmt.Errorf("%w: %s; change that object so that it is valid; the plan then continues automatically", errUnsafe, message)
	}
	return nil
}

// findInvalid returns a message about the first object of a kind that the validator rejects; empty
// when there is none.
func (c *crdChecker) findInvalid(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, kind schema.GroupVersionKind, v *validator,
) (string, error) {
	var message string
	err := c.grants.With(ctx, crd, grant.Check, func() error {
		var err error
		message, err = c.findInvalidIn(ctx, kind, v)
		return err
	})
	return message, err //nolint:wrapcheck // it says which kind
}

// findInvalidIn validates the objects of a kind page by page, and returns a message about the first invalid
// one.
func (c *crdChecker) findInvalidIn(ctx context.Context, kind schema.GroupVersionKind, v *validator) (message string, err error) {
	newPage := func() *unstructured.UnstructuredList {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page
	}
	err = pager.EachPage(ctx, c.client, newPage, func(page *unstructured.UnstructuredList) bool {
		for i := range page.Items {
			if problem := v.problem(page.Items[i].Object); problem != "" {
				key := client.ObjectKeyFromObject(&page.Items[i])
				message = bundles.Clip(olmtext.ObjectInvalid(kind.String(), key.String(), problem), maxInvalidMessage)
				return false
			}
		}
		return true
	})
	if err != nil {
		return "", fmt.Errorf("listing the objects of kind %s: %w", kind, err)
	}
	return message, nil
}

func typedCRD(u *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
		return nil, fmt.Errorf("%w: reading %s as apiextensions.k8s.io/v1: %w", errUnsafe, describe(u), err)
	}
	return crd, nil
}

// checkRevert returns an error if an object would lose data when the definition of an older version
// replaces the live one.
func (c *crdChecker) checkRevert(ctx context.Context, s *crdState) error {
	before, err := typedCRD(s.live)
	if err != nil {
		return err
	}
	after, err := typedCRD(s.bundle)
	if err != nil {
		return err
	}
	older, err := s.olderBundle()
	if err != nil {
		return err
	}
	obstacles := older.Obstacles(before, after)
	if established(s.live) {
		objects := rollback.Objects{Reader: c.client, Grants: c.grants}
		used, err := objects.UsedFields(ctx, before, older.LostFields(before, after), s.version.Name)
		if err != nil {
			return err //nolint:wrapcheck // it says which kind
		}
		obstacles = append(obstacles, used...)
	}
	if len(obstacles) > 0 {
		return fmt.Errorf("%w: %s; remove these obstacles; the plan then continues automatically", errUnsafe, strings.Join(obstacles, ", "))
	}
	return nil
}

// olderBundle returns the older version that the plan reverts to.
func (s *crdState) olderBundle() (rollback.Bundle, error) {
	older := rollback.Bundle{Version: &operatorsv1alpha1.ClusterServiceVersion{}}
	older.Version.Name = s.version.Name
	if s.csv == nil {
		return older, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.csv.Object, older.Version); err != nil {
		return rollback.Bundle{}, fmt.Errorf("%w: reading ClusterServiceVersion %s, to which the plan returns: %w", errUnsafe, s.version.Name, err)
	}
	return older, nil
}
