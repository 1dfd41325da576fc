package installplan

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/apply"
)

// labelBorrowed marks the roles by which the supervisor may list custom resources
// for the time of a check.
const labelBorrowed = "chandlery.dev/borrowed"

// The authorizer of the API server learns of a role a moment after it was made.
const (
	patienceForRight = 5 * time.Second
	pollForRight     = 50 * time.Millisecond
)

// lender gives the supervisor rights that it has only for the time of a check. It
// may do so because it gives operators their rights; doing so shows in the audit
// log, and what it may read at all other times stays in one list.
type lender struct {
	client client.Client

	// mu is held while rights are written, so that what one check gives back is
	// never what another one has just been told it has.
	mu sync.Mutex
	// loans counts the checks that use a right, by the name of its role.
	loans map[string]int
}

// borrow lets the supervisor list the objects of a definition until giveBack is
// called. The right is there until the last of those who borrowed it gives it back.
func (l *lender) borrow(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (giveBack func(), err error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := l.client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("asking the API server who we are, to be granted the right: %w", err)
	}
	role, binding := borrowed(crd, review.Status.UserInfo.Username)
	l.mu.Lock()
	defer l.mu.Unlock()
	// Made again for each, as somebody may have deleted it.
	for _, o := range []client.Object{role, binding} {
		if err := l.client.Create(ctx, o, client.FieldOwner(apply.FieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
			l.revoke(ctx, role, binding)
			return nil, fmt.Errorf("granting the right by %T %s: %w; or grant it to %s by a role of your own", o, o.GetName(), err, review.Status.UserInfo.Username)
		}
	}
	if l.loans == nil {
		l.loans = map[string]int{}
	}
	l.loans[role.Name]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.loans[role.Name]--
		l.revoke(ctx, role, binding)
	}, nil
}

// revoke takes a right away that nobody uses. The caller holds mu.
func (l *lender) revoke(ctx context.Context, role *rbacv1.ClusterRole, binding *rbacv1.ClusterRoleBinding) {
	if l.loans[role.Name] > 0 {
		return
	}
	delete(l.loans, role.Name)
	// It has to go even if the pass was cut short.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patienceForRight)
	defer cancel()
	for _, o := range []client.Object{binding, role} {
		if err := client.IgnoreNotFound(l.client.Delete(ctx, o)); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Giving back a right", "name", o.GetName())
		}
	}
}

// borrowed is the role by which a user may list the objects of a definition, and its
// binding.
func borrowed(crd *apiextensionsv1.CustomResourceDefinition, user string) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	meta := metav1.ObjectMeta{Name: "chandlery-check-" + crd.Name, Labels: map[string]string{labelBorrowed: "true"}}
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{crd.Spec.Group}, Resources: []string{crd.Spec.Names.Plural}, Verbs: []string{"list"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	return role, binding
}

// clear takes away what a process before this one may have left when it was killed
// in the middle of a check. What this one uses stays.
func (l *lender) clear(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{bindings, roles} {
		if err := l.client.List(ctx, list, client.MatchingLabels{labelBorrowed: "true"}); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Looking for rights that a process before left")
		}
	}
	var left []client.Object
	for i := range bindings.Items {
		left = append(left, &bindings.Items[i])
	}
	for i := range roles.Items {
		left = append(left, &roles.Items[i])
	}
	for _, o := range left {
		if l.loans[o.GetName()] > 0 {
			continue
		}
		if err := client.IgnoreNotFound(l.client.Delete(ctx, o)); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Giving back a right that a process before left", "name", o.GetName())
		}
	}
	return nil
}

// awaitRight repeats a request that is forbidden until the right has come through.
func awaitRight(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollForRight, patienceForRight, true, func(context.Context) (bool, error) {
		last = do()
		return !apierrors.IsForbidden(last), nil
	})
	if err != nil && last == nil {
		return err //nolint:wrapcheck // a cancellation is the caller's own
	}
	return last
}
