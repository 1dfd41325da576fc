package rollback

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apiserver/pager"
	"github.com/chandlery/chandlery/supervisor/rbac/grant"
)

// Objects reads the objects of definitions.
type Objects struct {
	Reader client.Reader
	// Grants gives the permission to list them if it is missing.
	Grants *grant.Granter
}

// UsedFields returns which of the fields that the definition of an older version lacks are used, with one object for
// each.
func (o Objects) UsedFields(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition, lost []Field, version string) ([]string, error) {
	if len(lost) == 0 {
		return nil, nil
	}
	var used []use
	err := o.Grants.With(ctx, live, grant.Check, func() error {
		var err error
		used, err = o.usedBy(ctx, live, lost)
		return err
	})
	if apierrors.IsForbidden(err) {
		return []string{fmt.Sprintf("%s does not know field %s, and the supervisor lacks permission to check whether objects of %s use it; allow its service account to list %s.%s (a ClusterRole and a ClusterRoleBinding)",
			version, lost[0], live.Name, live.Spec.Names.Plural, live.Spec.Group)}, nil
	}
	if err != nil {
		return nil, err
	}
	var list []string
	for _, u := range used {
		list = append(list, fmt.Sprintf("%s %s uses field %s, which %s does not know and would drop", live.Spec.Names.Kind, u.object, u.field, version))
	}
	return list, nil
}

// use is a field and an object that has it.
type use struct {
	field  Field
	object client.ObjectKey
}

// usedBy checks the objects of each version for its fields.
func (o Objects) usedBy(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition, lost []Field) ([]use, error) {
	var found []use
	for len(lost) > 0 {
		inVersion := lost[0].Version
		end := slices.IndexFunc(lost, func(f Field) bool { return f.Version != inVersion })
		if end < 0 {
			end = len(lost)
		}
		used, err := o.usedIn(ctx, schema.GroupVersionKind{Group: live.Spec.Group, Version: inVersion, Kind: live.Spec.Names.Kind}, lost[:end])
		if err != nil {
			return nil, err
		}
		found, lost = append(found, used...), lost[end:]
	}
	return found, nil
}

// usedIn checks all objects of a kind, page by page, for fields of one version.
func (o Objects) usedIn(ctx context.Context, kind schema.GroupVersionKind, fields []Field) ([]use, error) {
	left, found := slices.Clone(fields), []use(nil)
	newPage := func() *unstructured.UnstructuredList {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page
	}
	err := pager.EachPage(ctx, o.Reader, newPage, func(page *unstructured.UnstructuredList) bool {
		for i := range page.Items {
			left = slices.DeleteFunc(left, func(f Field) bool {
				used := f.UsedBy(page.Items[i].Object)
				if used {
					found = append(found, use{field: f, object: client.ObjectKeyFromObject(&page.Items[i])})
				}
				return used
			})
		}
		return len(left) > 0
	})
	if err != nil {
		return nil, fmt.Errorf("listing the objects of kind %s, to see which fields they use: %w", kind, err)
	}
	return found, nil
}
