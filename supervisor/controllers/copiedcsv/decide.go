package copiedcsv

import (
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/informer"
)

// action is the kind of a step.
type action string

// Actions in the order of one pass. A pass deletes roles and bindings before the copy that owns
// them, and creates them after the copy.
const (
	deleteBinding action = "unbind"   // deletes a binding
	deleteRole    action = "revoke"   // deletes a role
	deleteCopy    action = "withdraw" // deletes a copy
	createCopy    action = "publish"  // creates a copy
	applyRole     action = "grant"    // creates or corrects a role
	applyBinding  action = "bind"     // creates or corrects a binding
	syncCopy      action = "compare"  // reads a copy and corrects it
)

func order() []action {
	return []action{deleteBinding, deleteRole, deleteCopy, createCopy, applyRole, applyBinding, syncCopy}
}

// step is one action in one namespace.
type step struct {
	action    action
	namespace string
	// name and uid identify the existing object to correct or delete.
	name string
	uid  types.UID
	// role or binding is the wanted object.
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	// trimmed is true if the cache lacks a part of the existing role or binding. It may then already be
	// as wanted.
	trimmed bool
}

// object returns the wanted role or binding.
func (s step) object() metav1.Object {
	if s.role != nil {
		return s.role
	}
	return s.binding
}

// String returns the action and the object of the step.
func (s step) String() string { return string(s.action) + " " + s.namespace + "/" + s.name }

// cacheLag is how long a cache may not contain an object that was created.
const cacheLag = 5 * time.Second

// statusPause is how long copies may show an outdated status. A version that is being installed
// passes through several phases quickly. Writing each of them to hundreds of namespaces has no
// benefit.
const statusPause = 2 * time.Second

// decision is the result of decide.
type decision struct {
	placement placement
	steps     []step
	// blocked maps namespaces without a copy to the reason.
	blocked map[string]string
	// outdated is true if copies exist of which only the status is outdated.
	outdated bool
	// wait is when to reconcile again without an event; zero for never.
	wait time.Duration
}

// decide returns the steps that bring the copies of a version to the wanted content. The result
// does not depend on the order of the observed objects.
func decide(o *input, h *versionState, want fingerprint) decision {
	w := decision{placement: placementOf(o), blocked: map[string]string{}}
	if w.placement.mode == modeNone {
		return w
	}
	for _, namespace := range slices.Sorted(maps.Keys(o.copies)) {
		w.addExisting(o, h, namespace, want)
	}
	if w.placement.mode == modeSync {
		for _, namespace := range slices.Sorted(maps.Keys(w.placement.wanted)) {
			w.addMissing(o, h, namespace)
		}
	}
	if w.placement.mode != modeUpdate {
		w.rbac(o, h)
	}
	slices.SortStableFunc(w.steps, func(a, b step) int {
		return slices.Index(order(), a.action) - slices.Index(order(), b.action)
	})
	return w
}

// addExisting adds the step for an existing copy.
func (w *decision) addExisting(o *input, h *versionState, namespace string, want fingerprint) {
	copied := o.copies[namespace]
	if !copied.DeletionTimestamp.IsZero() || !o.namespaces.Has(namespace) {
		return
	}
	if w.placement.mode != modeUpdate && !w.placement.wanted.Has(namespace) {
		w.steps = append(w.steps, step{action: deleteCopy, namespace: namespace, name: copied.Name, uid: copied.UID})
		return
	}
	known, ok := h.records[namespace]
	ok = ok && known.describes(copied)
	switch {
	case ok && known.fingerprint == want:
		return
	case ok && known.fingerprint.content == want.content && !w.statusDue(o, h):
		return
	}
	w.steps = append(w.steps, step{action: syncCopy, namespace: namespace, name: copied.Name, uid: copied.UID})
}

// statusDue reports whether copies with an outdated status are written now.
func (w *decision) statusDue(o *input, h *versionState) bool {
	w.outdated = true
	since := h.outdated
	if since.IsZero() {
		since = o.now
	}
	left := statusPause - o.now.Sub(since)
	if left > 0 {
		w.requeueAfter(left)
	}
	return left <= 0
}

// addMissing adds the step for a namespace without a wanted copy.
func (w *decision) addMissing(o *input, h *versionState, namespace string) {
	if o.copies[namespace] != nil {
		return
	}
	if what := o.conflicts[namespace]; what != "" {
		w.blocked[namespace] = what
		return
	}
	if made, ok := h.records[namespace]; ok {
		if left := cacheLag - o.now.Sub(made.at); left > 0 {
			w.requeueAfter(left)
			return
		}
	}
	w.steps = append(w.steps, step{action: createCopy, namespace: namespace, name: o.key.Name})
}

// requeueAfter schedules another reconciliation.
func (w *decision) requeueAfter(d time.Duration) {
	if w.wait == 0 || d < w.wait {
		w.wait = d
	}
}

// rbac adds the steps for the roles and bindings in the target namespaces.
func (w *decision) rbac(o *input, h *versionState) {
	named := w.placement.wanted
	if w.placement.allNamespaces {
		// Cluster roles cover a version that serves all namespaces.
		named = nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(o.granted)) {
		if !o.namespaces.Has(namespace) {
			continue
		}
		if !named.Has(namespace) {
			w.removeRBAC(o, namespace, rbac{})
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(named)) {
		copied := o.copies[namespace]
		if copied == nil || !copied.DeletionTimestamp.IsZero() {
			continue
		}
		want := wantedRBAC(o, copied)
		w.removeRBAC(o, namespace, want)
		if w.placement.mode == modeSync {
			w.addRBACSteps(o, h, namespace, want)
		}
	}
}

// removeRBAC deletes unwanted roles and bindings in a namespace.
func (w *decision) removeRBAC(o *input, namespace string, want rbac) {
	have := o.granted[namespace]
	for i := range have.bindings {
		b := &have.bindings[i]
		wanted := bindingNamed(want.bindings, b.Name)
		if isDeleting(b) || (wanted != nil && wanted.RoleRef == b.RoleRef) || (wanted == nil && w.differsFromDeclared(o, b)) {
			continue
		}
		w.steps = append(w.steps, step{action: deleteBinding, namespace: namespace, name: b.Name, uid: b.UID})
	}
	for i := range have.roles {
		r := &have.roles[i]
		if isDeleting(r) || roleNamed(want.roles, r.Name) != nil || w.differsFromDeclared(o, r) {
			continue
		}
		w.steps = append(w.steps, step{action: deleteRole, namespace: namespace, name: r.Name, uid: r.UID})
	}
}

// differsFromDeclared reports whether an unwanted role or binding has a counterpart in the version's own
// namespace that differs from the version's declaration. The copy then stays unchanged.
func (w *decision) differsFromDeclared(o *input, obj metav1.Object) bool {
	if w.placement.allNamespaces || !w.placement.wanted.Has(obj.GetNamespace()) || o.origin == nil {
		return false
	}
	return roleNamed(o.rbac.roles, obj.GetName()) != nil || bindingNamed(o.rbac.bindings, obj.GetName()) != nil
}

// addRBACSteps adds the steps that create or correct the roles and bindings in a namespace. One that the
// cache lacks a part of is compared at the API server, unless this process has found it as wanted.
func (w *decision) addRBACSteps(o *input, h *versionState, namespace string, want rbac) {
	have := o.granted[namespace]
	for i := range want.roles {
		r := &want.roles[i]
		switch live := roleNamed(have.roles, r.Name); {
		case live == nil:
			w.steps = append(w.steps, step{action: applyRole, namespace: namespace, name: r.Name, role: r})
		case !isDeleting(live) && !sameRole(live, r):
			s := step{action: applyRole, namespace: namespace, name: r.Name, uid: live.UID, role: r, trimmed: informer.Trimmed(live)}
			if !h.matches(s, live) {
				w.steps = append(w.steps, s)
			}
		}
	}
	for i := range want.bindings {
		b := &want.bindings[i]
		switch live := bindingNamed(have.bindings, b.Name); {
		case live == nil:
			w.steps = append(w.steps, step{action: applyBinding, namespace: namespace, name: b.Name, binding: b})
		case !isDeleting(live) && live.RoleRef == b.RoleRef && !sameBinding(live, b):
			// The roleRef of a binding is immutable. A binding to another role is deleted first.
			s := step{action: applyBinding, namespace: namespace, name: b.Name, uid: live.UID, binding: b, trimmed: informer.Trimmed(live)}
			if !h.matches(s, live) {
				w.steps = append(w.steps, s)
			}
		}
	}
}

func isDeleting(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }
