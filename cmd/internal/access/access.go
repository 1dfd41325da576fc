// Package access names the permissions that users lack.
package access

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// Rule is the permission for a request. Namespace is empty for a request about all namespaces or a cluster-scoped
// resource. Name is empty for a request that names no object.
type Rule struct {
	Group, Resource, Verb string
	Namespace, Name       string
}

// String returns the rule in the form of a rule of a Role.
func (r Rule) String() string {
	group := r.Group
	if group == "" {
		group = `""`
	}
	return fmt.Sprintf("{apiGroups: [%s], resources: [%s], verbs: [%s]}", group, r.Resource, r.Verb)
}

// missing returns the text about a rule that the user lacks.
func (r Rule) missing() string { return "the missing rule: " + r.String() }

// MissingError occurs when the user lacks the permission for a request.
type MissingError struct {
	Rule Rule
	// Err is the reason or the answer of the API server.
	Err error
}

// Error returns the text of Err with the rule.
func (e *MissingError) Error() string { return e.Err.Error() + "; " + e.Rule.missing() }

// Unwrap returns Err.
func (e *MissingError) Unwrap() error { return e.Err }

// Allowed asks the API server whether the user has a permission.
func Allowed(ctx context.Context, c client.Writer, r Rule) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Version: "*", Resource: r.Resource, Name: r.Name,
		},
	}}
	if err := apply.Review(ctx, c, review); err != nil {
		return false, fmt.Errorf("asking for the permission %s: %w", r, err)
	}
	return review.Status.Allowed, nil
}

// Client returns a client whose errors name the missing rule if the API server forbids a request for lack of a
// permission. Admission forbids requests too; such errors stay as they are.
func Client(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return explain(ctx, c, Rule{Verb: "get", Namespace: key.Namespace}, c.Get(ctx, key, o, options...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return explain(ctx, c, Rule{Verb: "list", Namespace: namespaceOf(options)}, c.List(ctx, list, options...))
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			watched, err := c.Watch(ctx, list, options...)
			return watched, explain(ctx, c, Rule{Verb: "watch", Namespace: namespaceOf(options)}, err)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return explain(ctx, c, Rule{Verb: "create", Namespace: o.GetNamespace()}, c.Create(ctx, o, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return explain(ctx, c, Rule{Verb: "update", Namespace: o.GetNamespace()}, c.Update(ctx, o, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return explain(ctx, c, Rule{Verb: "patch", Namespace: o.GetNamespace()}, c.Patch(ctx, o, patch, options...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return explain(ctx, c, Rule{Verb: "delete", Namespace: o.GetNamespace()}, c.Delete(ctx, o, options...))
		},
	})
}

func namespaceOf(options []client.ListOption) string {
	var all client.ListOptions
	all.ApplyOptions(options)
	return all.Namespace
}

// explain adds the missing rule to an error. r has the verb and the namespace of the request.
func explain(ctx context.Context, c client.Writer, r Rule, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) {
		return err
	}
	details := status.Status().Details
	if details == nil || details.Kind == "" {
		return err
	}
	// The details of a refusal have the resource in place of the kind.
	r.Group, r.Resource, r.Name = details.Group, details.Kind, details.Name
	if allowed, failure := Allowed(ctx, c, r); failure != nil || allowed {
		return err
	}
	return &MissingError{Rule: r, Err: err}
}
