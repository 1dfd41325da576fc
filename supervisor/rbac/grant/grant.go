// Package grant gives the supervisor temporary permissions for custom resources. The supervisor does not know the
// kinds of operators, so its roles contain no permissions for their objects. It needs some to check objects before a
// definition changes, and to delete them in a clean-up.
//
// Threat model. Grants limit what the supervisor's account may do between such tasks, and each one shows in the
// audit log. They do not stop an attacker who controls the account: it may create any role (escalate, bind).
// docs/security.md, under "Custom resources", states what grants prevent and what they do not.
package grant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apiserver/refusal"
	"github.com/chandlery/chandlery/supervisor/apply"
)

// Permission is a permission for the objects of a kind. The names of its roles contain it.
type Permission string

const (
	// Check permits listing the objects.
	Check Permission = "check"
	// Cleanup permits listing and deleting the objects.
	Cleanup Permission = "cleanup"
)

func (r Permission) verbs() []string {
	if r == Cleanup {
		return []string{"list", "delete"}
	}
	return []string{"list"}
}

const (
	// propagationTimeout is how long the authorizer of the API server may take to apply a new role.
	propagationTimeout = 5 * time.Second
	propagationPoll    = 50 * time.Millisecond
	// revokeTimeout bounds the revocation of one grant.
	revokeTimeout = 5 * time.Second
	// revokeRetryInterval is the pause between attempts to revoke what is left.
	revokeRetryInterval = 5 * time.Second
)

// Granter grants permissions to the account of the supervisor, and revokes them after use. It needs the verbs escalate
// and bind, which the supervisor has for the permissions of operators. A process has one Granter. It is safe for
// concurrent use.
type Granter struct {
	client client.Client

	// mu is held while permissions are written, so that the end of one task does not revoke a permission that
	// another task has just been granted.
	mu sync.Mutex
	// uses counts the tasks that use a permission, by the name of its role.
	uses map[string]int
	// failed receives a value when a permission was not revoked.
	failed chan struct{}
}

// New returns a Granter that writes roles with c.
func New(c client.Client) *Granter {
	return &Granter{client: c, uses: map[string]int{}, failed: make(chan struct{}, 1)}
}

// Setup returns the Granter of a manager's controllers. When it becomes the leader, it revokes the permissions that an
// earlier process left, and afterwards those whose revocation failed.
func Setup(mgr ctrl.Manager) (*Granter, error) {
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating the client that grants permissions: %w", err)
	}
	g := New(direct)
	if err := mgr.Add(manager.RunnableFunc(g.run)); err != nil {
		return nil, fmt.Errorf("adding the revocation of permissions: %w", err)
	}
	return g, nil
}

// With calls do. If do lacks a permission for the objects of a definition, With grants the permission, calls do again,
// and revokes the permission. A nil Granter grants nothing. do must return the error of each request that it makes,
// since With repeats it until the API server applies the grant.
func (g *Granter) With(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, permission Permission, do func() error) error {
	err := do()
	if g == nil || !IsForbidden(err) {
		return err
	}
	revoke, err := g.grant(ctx, crd, permission)
	if err != nil {
		return fmt.Errorf("granting permission to %s objects of %s: %w", strings.Join(permission.verbs(), " and "), crd.Name, err)
	}
	defer revoke()
	return awaitPermission(ctx, do)
}

// IsForbidden reports whether the API server refused a request because the account lacks a permission. An admission
// webhook refuses requests with the same status, whatever the account.
func IsForbidden(err error) bool {
	return apierrors.IsForbidden(err) && refusal.OfError(err) == refusal.PermissionDenied
}

// grant grants a permission for the objects of a definition until revoke is called. Tasks that use the same permission
// at the same time share the role, and the last call of revoke deletes it.
func (g *Granter) grant(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, permission Permission) (revoke func(), err error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := apply.Review(ctx, g.client, review); err != nil {
		return nil, fmt.Errorf("asking the API server for the own user, to grant the permission: %w", err)
	}
	role, binding := rolesFor(crd, permission, review.Status.UserInfo.Username)
	g.mu.Lock()
	defer g.mu.Unlock()
	// Each task ensures both, since another client may have deleted them.
	for _, o := range []client.Object{role, binding} {
		if err := g.ensure(ctx, o); err != nil {
			g.deleteUnused(ctx, role, binding)
			return nil, fmt.Errorf("%T %s: %w; or grant it to %s by a role of your own", o, o.GetName(), err, review.Status.UserInfo.Username)
		}
	}
	g.uses[role.Name]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.uses[role.Name]--
		g.deleteUnused(ctx, role, binding)
	}, nil
}

// errOtherOwner means that a role or binding of that name belongs to another owner.
var errOtherOwner = errors.New("an object with this name exists without the label " + api.LabelGrant + ": rename or delete it")

// ensure creates a role or binding. An existing one with the label of grants gets the content of o.
func (g *Granter) ensure(ctx context.Context, o client.Object) error {
	live, _ := o.DeepCopyObject().(client.Object)
	err := apply.Create(ctx, g.client, live)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := g.client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return err
	}
	if live.GetLabels()[api.LabelGrant] == "" {
		return errOtherOwner
	}
	return g.setContent(ctx, live, o)
}

// setContent gives an existing role or binding the rules, the subjects and the role of wanted. The role of a
// binding is immutable, so a binding with another role is deleted and created.
func (g *Granter) setContent(ctx context.Context, live, wanted client.Object) error {
	switch live := live.(type) {
	case *rbacv1.ClusterRole:
		role, _ := wanted.DeepCopyObject().(*rbacv1.ClusterRole)
		if live.AggregationRule == nil && equality.Semantic.DeepEqual(live.Rules, role.Rules) {
			return nil
		}
		live.Rules, live.AggregationRule = role.Rules, nil
	case *rbacv1.ClusterRoleBinding:
		binding, _ := wanted.DeepCopyObject().(*rbacv1.ClusterRoleBinding)
		if live.RoleRef != binding.RoleRef {
			if err := g.delete(ctx, live); err != nil {
				return err
			}
			return apply.Create(ctx, g.client, binding)
		}
		if equality.Semantic.DeepEqual(live.Subjects, binding.Subjects) {
			return nil
		}
		live.Subjects = binding.Subjects
	}
	return apply.Replace(ctx, g.client, live)
}

// deleteUnused deletes the role and the binding of a permission that no task uses. The caller holds mu.
func (g *Granter) deleteUnused(ctx context.Context, role *rbacv1.ClusterRole, binding *rbacv1.ClusterRoleBinding) {
	if g.uses[role.Name] > 0 {
		return
	}
	delete(g.uses, role.Name)
	// The permission is also revoked after the task was canceled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	for _, o := range []client.Object{binding, role} {
		if err := g.deleteOwn(ctx, o); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot revoke a temporary grant, will retry", "name", o.GetName())
			select {
			case g.failed <- struct{}{}:
			default: // run already has a value to receive
			}
		}
	}
}

// deleteOwn deletes a role or binding with the label of grants.
func (g *Granter) deleteOwn(ctx context.Context, o client.Object) error {
	live, _ := o.DeepCopyObject().(client.Object)
	if err := g.client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetLabels()[api.LabelGrant] == "" {
		return nil
	}
	return g.delete(ctx, live)
}

// delete deletes a role or binding that was read. It returns a conflict if the object was changed or replaced
// since.
func (g *Granter) delete(ctx context.Context, live client.Object) error {
	return client.IgnoreNotFound(apply.DeleteIf(ctx, g.client, live, apply.SameVersion(live)))
}

// rolesFor returns the role with a permission for the objects of a definition, and its binding to a user.
func rolesFor(crd *apiextensionsv1.CustomResourceDefinition, permission Permission, user string) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("chandlery-%s-%s", permission, crd.Name), Labels: map[string]string{api.LabelGrant: "true"}}
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{crd.Spec.Group}, Resources: []string{crd.Spec.Names.Plural}, Verbs: permission.verbs()}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	return role, binding
}

// run revokes unused permissions at the start, and each time a revocation has failed.
func (g *Granter) run(ctx context.Context) error {
	for {
		if err := g.revokeUnused(ctx); err != nil {
			return err
		}
		select {
		case <-g.failed:
		case <-ctx.Done():
			return nil
		}
	}
}

// revokeUnused deletes the roles and bindings of grants that this process does not use, and retries until that
// succeeds. A process that was killed leaves such objects.
func (g *Granter) revokeUnused(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, revokeRetryInterval, true, func(ctx context.Context) (bool, error) {
		err := g.deleteAllUnused(ctx)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot revoke unused temporary grants, will retry")
		}
		return err == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (g *Granter) deleteAllUnused(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	var errs []error
	for _, list := range []client.ObjectList{bindings, roles} {
		errs = append(errs, g.client.List(ctx, list, client.MatchingLabels{api.LabelGrant: "true"}))
	}
	var found []client.Object
	for i := range bindings.Items {
		found = append(found, &bindings.Items[i])
	}
	for i := range roles.Items {
		found = append(found, &roles.Items[i])
	}
	for _, o := range found {
		if g.uses[o.GetName()] == 0 {
			errs = append(errs, g.delete(ctx, o))
		}
	}
	return errors.Join(errs...)
}

// awaitPermission repeats do while it lacks a permission, for at most propagationTimeout.
func awaitPermission(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, propagationPoll, propagationTimeout, true, func(context.Context) (bool, error) {
		last = do()
		return !IsForbidden(last), nil
	})
	if err != nil && last == nil {
		return err
	}
	return last
}
