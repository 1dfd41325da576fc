// Package grant gives the supervisor, for a moment, rights to custom resources. It does
// not know the kinds of operators, and so has no rights to their objects; but sometimes
// it has to look at them, or to delete them.
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
	"github.com/chandlery/chandlery/supervisor/refusal"
)

// Right is what may be done with the objects of a kind, by the same name in the names
// of its roles.
type Right string

// The rights that are lent: to see whether a definition may change, and to clean up
// after an operator.
const (
	Check   Right = "check"
	Cleanup Right = "cleanup"
)

// verbs are what a right consists of.
func (r Right) verbs() []string {
	if r == Cleanup {
		return []string{"list", "delete"}
	}
	return []string{"list"}
}

// The authorizer of the API server learns of a role a moment after it was made.
const (
	patienceForRight = 5 * time.Second
	pollForRight     = 50 * time.Millisecond
	// pauseOfClearing is how long is waited before what could not be cleared is tried again.
	pauseOfClearing = 5 * time.Second
)

// Lender gives the supervisor rights that it has only while it needs them. It may do so
// because it gives operators their rights; doing so shows in the audit log, and what it
// may do at all other times stays in one list. A process has one.
type Lender struct {
	client client.Client

	// mu is held while rights are written, so that what one check gives back is
	// never what another one has just been told it has.
	mu sync.Mutex
	// loans counts those who use a right, by the name of its role.
	loans map[string]int
	// owed is told when a right could not be given back.
	owed chan struct{}
}

// New makes a lender whose roles c writes.
func New(c client.Client) *Lender {
	return &Lender{client: c, loans: map[string]int{}, owed: make(chan struct{}, 1)}
}

// Setup makes the lender of a manager's controllers. As soon as it leads it clears away what
// a process before this one has left, and afterwards what could not be given back.
func Setup(mgr ctrl.Manager) (*Lender, error) {
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client that lends rights: %w", err)
	}
	l := New(direct)
	if err := mgr.Add(manager.RunnableFunc(l.keepClear)); err != nil {
		return nil, fmt.Errorf("adding the clearing of rights: %w", err)
	}
	return l, nil
}

// With does something with the objects of a definition, and if the right to it is lacking
// does it again with one that is borrowed meanwhile. Nil lends nothing. Every request of do
// has to give its error, so that it can be told that the right has not come through yet.
func (l *Lender) With(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, right Right, do func() error) error {
	err := do()
	if l == nil || !Lacking(err) {
		return err
	}
	giveBack, err := l.borrow(ctx, crd, right)
	if err != nil {
		return fmt.Errorf("borrowing the right to %s objects of %s: %w", strings.Join(right.verbs(), " and "), crd.Name, err)
	}
	defer giveBack()
	return awaitRight(ctx, do)
}

// Lacking says whether an error is that of a request for which its user lacks the right.
// What admission refuses is forbidden too, whoever asks.
func Lacking(err error) bool {
	return apierrors.IsForbidden(err) && refusal.OfError(err) == refusal.PermissionDenied
}

// borrow lets the supervisor use a right to the objects of a definition until giveBack
// is called. The right is there until the last of those who borrowed it gives it back.
func (l *Lender) borrow(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, right Right) (giveBack func(), err error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := l.client.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("asking the API server who we are, to be granted the right: %w", err)
	}
	role, binding := borrowed(crd, right, review.Status.UserInfo.Username)
	l.mu.Lock()
	defer l.mu.Unlock()
	// Made again for each, as somebody may have deleted it.
	for _, o := range []client.Object{role, binding} {
		if err := l.make(ctx, o); err != nil {
			l.revoke(ctx, role, binding)
			return nil, fmt.Errorf("granting the right by %T %s: %w; or grant it to %s by a role of your own", o, o.GetName(), err, review.Status.UserInfo.Username)
		}
	}
	l.loans[role.Name]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.loans[role.Name]--
		l.revoke(ctx, role, binding)
	}, nil
}

// errForeign is why a right cannot be lent: what would give it is not the lender's.
var errForeign = errors.New("there is one of that name which is not marked " + api.LabelGrant + ", and is left as it is: rename it")

// make creates a role or binding. An existing one with the label of grants gets the content of o.
func (l *Lender) make(ctx context.Context, o client.Object) error {
	live, _ := o.DeepCopyObject().(client.Object)
	err := l.client.Create(ctx, live, client.FieldOwner(api.FieldManager))
	if !apierrors.IsAlreadyExists(err) {
		return err //nolint:wrapcheck // borrow says what for
	}
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return err //nolint:wrapcheck // borrow says what for
	}
	if live.GetLabels()[api.LabelGrant] == "" {
		return errForeign
	}
	return l.setContent(ctx, live, o)
}

// setContent gives an existing role or binding the rules, the subjects and the role of wanted. The role of a
// binding is immutable, so a binding with another role is deleted and created.
func (l *Lender) setContent(ctx context.Context, live, wanted client.Object) error {
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
			if err := l.delete(ctx, live); err != nil {
				return err
			}
			return l.client.Create(ctx, binding, client.FieldOwner(api.FieldManager))
		}
		if equality.Semantic.DeepEqual(live.Subjects, binding.Subjects) {
			return nil
		}
		live.Subjects = binding.Subjects
	}
	return l.client.Update(ctx, live, client.FieldOwner(api.FieldManager))
}

// revoke takes a right away that nobody uses. The caller holds mu.
func (l *Lender) revoke(ctx context.Context, role *rbacv1.ClusterRole, binding *rbacv1.ClusterRoleBinding) {
	if l.loans[role.Name] > 0 {
		return
	}
	delete(l.loans, role.Name)
	// It has to go even if the pass was cut short.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patienceForRight)
	defer cancel()
	for _, o := range []client.Object{binding, role} {
		if err := l.unmake(ctx, o); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Giving back a right, to be tried again", "name", o.GetName())
			select {
			case l.owed <- struct{}{}:
			default: // it is known already
			}
		}
	}
}

// unmake deletes a role or binding unless it is somebody else's.
func (l *Lender) unmake(ctx context.Context, o client.Object) error {
	live, _ := o.DeepCopyObject().(client.Object)
	if err := l.client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return client.IgnoreNotFound(err) //nolint:wrapcheck // revoke says what for
	}
	if live.GetLabels()[api.LabelGrant] == "" {
		return nil
	}
	return l.delete(ctx, live)
}

// delete deletes the very role or binding that was read. One that another owner has put in its
// place, or has written to since, gives a conflict.
func (l *Lender) delete(ctx context.Context, live client.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := l.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	return client.IgnoreNotFound(err) //nolint:wrapcheck // the callers say what for
}

// borrowed is the role by which a user has a right to the objects of a definition, and
// its binding.
func borrowed(crd *apiextensionsv1.CustomResourceDefinition, right Right, user string) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("chandlery-%s-%s", right, crd.Name), Labels: map[string]string{api.LabelGrant: "true"}}
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(account, ":")
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{crd.Spec.Group}, Resources: []string{crd.Spec.Names.Plural}, Verbs: right.verbs()}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{subject},
	}
	return role, binding
}

// keepClear clears at once, and each time when a right could not be given back.
func (l *Lender) keepClear(ctx context.Context) error {
	for {
		if err := l.Clear(ctx); err != nil {
			return err
		}
		select {
		case <-l.owed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Clear takes away what a process before this one may have left when it was killed
// while it used a right, and tries until it could. What this one uses stays.
func (l *Lender) Clear(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, pauseOfClearing, true, func(ctx context.Context) (bool, error) {
		err := l.clear(ctx)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Giving back rights that are left, to be tried again")
		}
		return err == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return err //nolint:wrapcheck // it is of no request
	}
	return nil
}

func (l *Lender) clear(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	roles, bindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	var errs []error
	for _, list := range []client.ObjectList{bindings, roles} {
		errs = append(errs, l.client.List(ctx, list, client.MatchingLabels{api.LabelGrant: "true"}))
	}
	var left []client.Object
	for i := range bindings.Items {
		left = append(left, &bindings.Items[i])
	}
	for i := range roles.Items {
		left = append(left, &roles.Items[i])
	}
	for _, o := range left {
		if l.loans[o.GetName()] == 0 {
			errs = append(errs, l.delete(ctx, o))
		}
	}
	return errors.Join(errs...)
}

// awaitRight repeats a request that is forbidden until the right has come through.
func awaitRight(ctx context.Context, do func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollForRight, patienceForRight, true, func(context.Context) (bool, error) {
		last = do()
		return !Lacking(last), nil
	})
	if err != nil && last == nil {
		return err //nolint:wrapcheck // a cancellation is the caller's own
	}
	return last
}
