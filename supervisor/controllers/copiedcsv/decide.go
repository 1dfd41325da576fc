package copiedcsv

import (
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// action is what a step does.
type action string

// The actions, in the order in which those of one pass are taken: rights are taken away
// before the copy that owns them, and given after it is there.
const (
	unbind   action = "unbind"   // deletes a binding
	revoke   action = "revoke"   // deletes a role
	withdraw action = "withdraw" // deletes a copy
	publish  action = "publish"  // makes a copy
	grant    action = "grant"    // makes a role, or corrects it
	bind     action = "bind"     // makes a binding, or corrects it
	compare  action = "compare"  // reads a copy and corrects it
)

func order() []action {
	return []action{unbind, revoke, withdraw, publish, grant, bind, compare}
}

// step is one thing to do in one namespace.
type step struct {
	action    action
	namespace string
	// name and uid are those of what is there and is to be corrected or deleted.
	name string
	uid  types.UID
	// role or binding is what is wanted.
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
}

// String names the step.
func (s step) String() string { return string(s.action) + " " + s.namespace + "/" + s.name }

// cacheLag is for how long a cache may not show what was made.
const cacheLag = 5 * time.Second

// statusPause is how long copies may show a status that is no longer the version's. One
// that is installed goes through several in a moment, and to write each of them to
// hundreds of namespaces helps nobody.
const statusPause = 2 * time.Second

// work is what there is to do for a version.
type work struct {
	place place
	steps []step
	// blocked says of namespaces why they get no copy.
	blocked map[string]string
	// outdated says that there are copies whose status alone is not the version's.
	outdated bool
	// wait is when to look again although nothing has happened; zero for never.
	wait time.Duration
}

// decide says what is to be done for a version so that its copies say what says stands
// for. Nothing of it depends on the order of what was observed.
func decide(o *observation, h *history, says fingerprint) work {
	w := work{place: placeOf(o), blocked: map[string]string{}}
	if w.place.stand == leave {
		return w
	}
	for _, namespace := range slices.Sorted(maps.Keys(o.copies)) {
		w.existing(o, h, namespace, says)
	}
	if w.place.stand == spread {
		for _, namespace := range slices.Sorted(maps.Keys(w.place.wanted)) {
			w.missing(o, h, namespace)
		}
	}
	if w.place.stand != keep {
		w.rights(o)
	}
	slices.SortStableFunc(w.steps, func(a, b step) int {
		return slices.Index(order(), a.action) - slices.Index(order(), b.action)
	})
	return w
}

// existing deals with a copy that is there.
func (w *work) existing(o *observation, h *history, namespace string, says fingerprint) {
	copied := o.copies[namespace]
	if !copied.DeletionTimestamp.IsZero() || !o.namespaces.Has(namespace) {
		return
	}
	if w.place.stand != keep && !w.place.wanted.Has(namespace) {
		w.steps = append(w.steps, step{action: withdraw, namespace: namespace, name: copied.Name, uid: copied.UID})
		return
	}
	known, ok := h.records[namespace]
	ok = ok && known.covers(copied)
	switch {
	case ok && known.says == says:
		return
	case ok && known.says.content == says.content && !w.statusDue(o, h):
		return
	}
	w.steps = append(w.steps, step{action: compare, namespace: namespace, name: copied.Name, uid: copied.UID})
}

// statusDue says whether copies whose status alone is outdated are written now.
func (w *work) statusDue(o *observation, h *history) bool {
	w.outdated = true
	since := h.outdated
	if since.IsZero() {
		since = o.now
	}
	left := statusPause - o.now.Sub(since)
	if left > 0 {
		w.after(left)
	}
	return left <= 0
}

// missing deals with a namespace that is to have a copy.
func (w *work) missing(o *observation, h *history, namespace string) {
	if o.copies[namespace] != nil {
		return
	}
	if what := o.taken[namespace]; what != "" {
		w.blocked[namespace] = what
		return
	}
	if made, ok := h.records[namespace]; ok {
		if left := cacheLag - o.now.Sub(made.at); left > 0 {
			w.after(left)
			return
		}
	}
	w.steps = append(w.steps, step{action: publish, namespace: namespace, name: o.key.Name})
}

// after asks for another look.
func (w *work) after(d time.Duration) {
	if w.wait == 0 || d < w.wait {
		w.wait = d
	}
}

// rights deals with the roles and bindings in the namespaces that the version serves.
func (w *work) rights(o *observation) {
	named := w.place.wanted
	if w.place.global {
		// All namespaces are served by roles of the cluster.
		named = nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(o.granted)) {
		if !o.namespaces.Has(namespace) {
			continue
		}
		if !named.Has(namespace) {
			w.takeAway(o, namespace, rights{})
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(named)) {
		copied := o.copies[namespace]
		if copied == nil || !copied.DeletionTimestamp.IsZero() {
			continue
		}
		want := wantedRights(o, copied)
		w.takeAway(o, namespace, want)
		if w.place.stand == spread {
			w.give(o, namespace, want)
		}
	}
}

// takeAway deletes the rights in a namespace that are not wanted.
func (w *work) takeAway(o *observation, namespace string, want rights) {
	have := o.granted[namespace]
	for i := range have.bindings {
		b := &have.bindings[i]
		wanted := bindingNamed(want.bindings, b.Name)
		if gone(b) || (wanted != nil && wanted.RoleRef == b.RoleRef) || (wanted == nil && w.unsure(o, b)) {
			continue
		}
		w.steps = append(w.steps, step{action: unbind, namespace: namespace, name: b.Name, uid: b.UID})
	}
	for i := range have.roles {
		r := &have.roles[i]
		if gone(r) || roleNamed(want.roles, r.Name) != nil || w.unsure(o, r) {
			continue
		}
		w.steps = append(w.steps, step{action: revoke, namespace: namespace, name: r.Name, uid: r.UID})
	}
}

// unsure says whether a right has its like in the version's own namespace, though not as
// the version declares it: it stays as it was when that was so.
func (w *work) unsure(o *observation, right metav1.Object) bool {
	if w.place.global || !w.place.wanted.Has(right.GetNamespace()) || o.origin == nil {
		return false
	}
	return roleNamed(o.rights.roles, right.GetName()) != nil || bindingNamed(o.rights.bindings, right.GetName()) != nil
}

// give makes or corrects the rights in a namespace.
func (w *work) give(o *observation, namespace string, want rights) {
	have := o.granted[namespace]
	for i := range want.roles {
		r := &want.roles[i]
		switch live := roleNamed(have.roles, r.Name); {
		case live == nil:
			w.steps = append(w.steps, step{action: grant, namespace: namespace, name: r.Name, role: r})
		case !gone(live) && !sameRole(live, r):
			w.steps = append(w.steps, step{action: grant, namespace: namespace, name: r.Name, uid: live.UID, role: r})
		}
	}
	for i := range want.bindings {
		b := &want.bindings[i]
		switch live := bindingNamed(have.bindings, b.Name); {
		case live == nil:
			w.steps = append(w.steps, step{action: bind, namespace: namespace, name: b.Name, binding: b})
		case !gone(live) && live.RoleRef == b.RoleRef && !sameBinding(live, b):
			// One of another role cannot be changed; it goes first.
			w.steps = append(w.steps, step{action: bind, namespace: namespace, name: b.Name, uid: live.UID, binding: b})
		}
	}
}

func gone(obj metav1.Object) bool { return obj.GetDeletionTimestamp() != nil }
