package copiedcsv

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestDecideAboutCopies(t *testing.T) {
	fp := fingerprint{content: digest{1}, status: digest{1}}
	older := fingerprint{content: digest{1}, status: digest{2}}
	other := fingerprint{content: digest{3}, status: digest{1}}
	two := []string{"cellar", "pantry"}
	for name, tc := range map[string]struct {
		reason  string
		o       *input
		h       *versionState
		want    []string
		blocked []string
		wait    time.Duration
	}{
		"New": {
			"a version gets its copies", seen([]string{""}, nil), knowing(fp),
			[]string{"publish cellar/kettle.v1", "publish garden/kettle.v1", "publish pantry/kettle.v1"},
			nil, 0,
		},
		"Steady":  {"nothing is done when nothing has changed", seen(two, two), knowing(fp, two...), nil, nil, 0},
		"Unknown": {"after a start each copy is compared once", seen(two, two), knowing(fp), []string{"compare cellar/kettle.v1", "compare pantry/kettle.v1"}, nil, 0},
		"Changed": {"a copy that another client has changed is compared", seen(two, two, func(o *input) {
			o.copies["pantry"].ResourceVersion = "21"
		}), knowing(fp, two...), []string{"compare pantry/kettle.v1"}, nil, 0},
		"Late": {"a cache may be behind what was written", seen(two, two, func(o *input) {
			o.copies["pantry"].ResourceVersion = "19"
		}), knowing(fp, two...), nil, nil, 0},
		"Another": {"a recreated copy is compared", seen(two, two, func(o *input) {
			o.copies["pantry"].UID = "another"
		}), knowing(fp, two...), []string{"compare pantry/kettle.v1"}, nil, 0},
		"Outdated":   {"a change of content is written at once", seen(two, two), knowing(other, two...), []string{"compare cellar/kettle.v1", "compare pantry/kettle.v1"}, nil, 0},
		"StatusNew":  {"a change of status can wait", seen(two, two), knowing(older, two...), nil, nil, statusPause},
		"StatusWait": {"it waits no longer than that", seen(two, two), outdated(knowing(older, two...), time.Second), nil, nil, statusPause - time.Second},
		"StatusDue": {
			"and is written then", seen(two, two), outdated(knowing(older, two...), statusPause),
			[]string{"compare cellar/kettle.v1", "compare pantry/kettle.v1"},
			nil, 0,
		},
		"Removed": {"a namespace that is no target any more loses its copy", seen([]string{"pantry"}, two), knowing(fp, two...), []string{"withdraw cellar/kettle.v1"}, nil, 0},
		"Gone":    {"a version that is gone leaves nothing", seen(two, two, func(o *input) { o.origin = nil }), knowing(fp, two...), []string{"withdraw cellar/kettle.v1", "withdraw pantry/kettle.v1"}, nil, 0},
		"Going": {"a copy that is going already is let go", seen(two, two, func(o *input) {
			o.origin = nil
			o.copies["pantry"].DeletionTimestamp = new(metav1.NewTime(noon()))
		}), knowing(fp, two...), []string{"withdraw cellar/kettle.v1"}, nil, 0},
		"Deleting": {"a version that is being deleted is left alone", seen(two, []string{"garden"}, func(o *input) { o.origin.DeletionTimestamp = new(metav1.NewTime(noon())) }), knowing(fp), nil, nil, 0},
		"NamespaceGoing": {"what is in a namespace that is going goes with it", seen(two, two, func(o *input) {
			o.namespaces.Delete("pantry")
			o.origin = nil
		}), knowing(fp, two...), []string{"withdraw cellar/kettle.v1"}, nil, 0},
		"Keep": {"copies stay while the targets are unknown", seen(two, []string{"garden", "pantry"}, func(o *input) { o.groups = nil }), knowing(other, "garden", "pantry"), []string{"compare garden/kettle.v1", "compare pantry/kettle.v1"}, nil, 0},
		"Shrink": {"a version without a verdict gets no new copies, and unwanted copies are deleted", seen(two, []string{"garden", "pantry"}, func(o *input) {
			o.origin.Status.Phase = ""
		}), knowing(fp, "garden", "pantry"), []string{"withdraw garden/kettle.v1"}, nil, 0},
		"Taken": {"a version of that name is not touched", seen(two, nil, func(o *input) { o.conflicts["pantry"] = "it is there" }), knowing(fp), []string{"publish cellar/kettle.v1"}, []string{"pantry"}, 0},
		"JustMade": {"what was just made need not be in the cache", seen([]string{"pantry"}, nil), func() *versionState {
			h := knowing(fp, "pantry")
			h.records["pantry"] = record{uid: "uid-pantry", version: "20", fingerprint: fp, at: noon().Add(-time.Second)}
			return h
		}(), nil, nil, cacheLag - time.Second},
		"Deleted": {"a deleted copy is recreated", seen([]string{"pantry"}, nil), knowing(fp, "pantry"), []string{"publish pantry/kettle.v1"}, nil, 0},
		"Disabled": {"turning copies off takes them away", seen([]string{""}, two, func(o *input) {
			o.enabled, o.protected = false, []string{"pantry"}
		}), knowing(fp, two...), []string{"withdraw cellar/kettle.v1"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.o, tc.h, fp)
			if diff := cmp.Diff(tc.want, outline(got.steps)); diff != "" {
				t.Errorf("%s\nsteps: -want, +got:\n%s", tc.reason, diff)
			}
			var blocked []string
			for namespace := range got.blocked {
				blocked = append(blocked, namespace)
			}
			if diff := cmp.Diff(tc.blocked, blocked); diff != "" {
				t.Errorf("%s\nblocked: -want, +got:\n%s", tc.reason, diff)
			}
			if got.wait != tc.wait {
				t.Errorf("%s\nwait %s, want %s", tc.reason, got.wait, tc.wait)
			}
		})
	}
}

func outdated(h *versionState, since time.Duration) *versionState {
	h.outdated = noon().Add(-since)
	return h
}

func TestDecideAboutRights(t *testing.T) {
	fp := fingerprint{content: digest{1}}
	const right = "pantry/kettle.v1-kettle-abc"
	withOwned := func(o *input) { o.rbac = owned() }
	granted := func(change ...func(*rbac)) func(*input) {
		return func(o *input) {
			g := copied(o, "pantry")
			for _, c := range change {
				c(&g)
			}
			o.granted["pantry"] = g
		}
	}
	gone := func(o *input) { o.origin = nil }
	for name, tc := range map[string]struct {
		reason  string
		targets []string
		change  []func(*input)
		want    []string
	}{
		"Missing":   {"an operator gets its rights where it is to work", []string{"pantry"}, []func(*input){withOwned}, []string{"grant " + right, "bind " + right}},
		"Steady":    {"once", []string{"pantry"}, []func(*input){withOwned, granted()}, nil},
		"Global":    {"rights for all namespaces are the cluster's", []string{""}, []func(*input){withOwned}, nil},
		"NowGlobal": {"roles of a namespace are then not needed", []string{""}, []func(*input){withOwned, granted()}, []string{"unbind " + right, "revoke " + right}},
		"Rules": {"rules that have changed are refreshed", []string{"pantry"}, []func(*input){withOwned, granted(func(g *rbac) {
			g.roles[0].Rules = nil
		})}, []string{"grant " + right}},
		"Subjects": {"and so is who has them", []string{"pantry"}, []func(*input){withOwned, granted(func(g *rbac) {
			g.bindings[0].Subjects[0].Name = "other"
		})}, []string{"bind " + right}},
		"RoleRef": {"a binding of another role goes first", []string{"pantry"}, []func(*input){withOwned, granted(func(g *rbac) {
			g.bindings[0].RoleRef.Name = "other"
		})}, []string{"unbind " + right}},
		"Owner": {"roles belong to the existing copy", []string{"pantry"}, []func(*input){withOwned, granted(func(g *rbac) {
			g.roles[0].OwnerReferences[0].UID = "before"
		})}, []string{"grant " + right}},
		"Others": {"what others add is theirs", []string{"pantry"}, []func(*input){withOwned, granted(func(g *rbac) {
			g.roles[0].Labels["x"] = "y"
		})}, nil},
		"Surplus": {"a role that is no longer the version's goes", []string{"pantry"}, []func(*input){granted()}, []string{"unbind " + right, "revoke " + right}},
		"NoTarget": {"rights go where the version no longer serves", []string{"cellar"}, []func(*input){withOwned, granted(), func(o *input) {
			delete(o.copies, "pantry")
		}}, []string{"unbind " + right, "revoke " + right, "publish cellar/kettle.v1"}},
		"Gone": {"rights go before what they belong to", []string{"pantry"}, []func(*input){granted(), gone}, []string{"unbind " + right, "revoke " + right, "withdraw pantry/kettle.v1"}},
		"NoCopyYet": {"rights wait for the copy that owns them", []string{"pantry"}, []func(*input){withOwned, func(o *input) {
			delete(o.copies, "pantry")
		}}, []string{"publish pantry/kettle.v1"}},
		"Keep": {"nothing is taken or given while it is not known where", []string{"pantry"}, []func(*input){withOwned, granted(func(g *rbac) {
			g.roles[0].Rules = nil
		}), func(o *input) { o.groups = nil }}, nil},
		"Undeclared": {"a role that the version does not declare is not copied", []string{"pantry"}, []func(*input){func(o *input) {
			o.rbac = owned()
			o.rbac.roles[0].Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
		}}, nil},
		"Tampered": {"what was copied before stays as it was", []string{"pantry"}, []func(*input){withOwned, granted(), func(o *input) {
			o.rbac.roles[0].Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
		}}, nil},
		"Stranger": {"a binding with another subject is not copied", []string{"pantry"}, []func(*input){func(o *input) {
			o.rbac = owned()
			o.rbac.bindings[0].Subjects = append(o.rbac.bindings[0].Subjects, rbacv1.Subject{Kind: rbacv1.UserKind, Name: "mallory"})
		}}, []string{"grant " + right}},
		"OtherAccount": {"nor one of an account that the role is not declared for", []string{"pantry"}, []func(*input){func(o *input) {
			o.rbac = owned()
			o.rbac.bindings[0].Subjects[0].Name = "mallory"
		}}, []string{"grant " + right}},
		"ClusterRole": {"nor one of a role of the cluster", []string{"pantry"}, []func(*input){func(o *input) {
			o.rbac = owned()
			o.rbac.bindings[0].RoleRef.Kind = "ClusterRole"
		}}, []string{"grant " + right}},
	} {
		t.Run(name, func(t *testing.T) {
			var there []string
			if tc.targets[0] == "" {
				there = []string{"cellar", "garden"}
			}
			there = append(there, "pantry")
			o := seen(tc.targets, there, tc.change...)
			h := knowing(fp, "cellar", "garden", "pantry")
			if tc.targets[0] == "cellar" || o.copies["pantry"] == nil {
				h = knowing(fp)
			}
			if diff := cmp.Diff(tc.want, outline(decide(o, h, fp).steps)); diff != "" {
				t.Errorf("%s\nsteps: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTrimmedRightsAreComparedOnce has a copied role and a binding that the cache lacks a part of.
func TestTrimmedRightsAreComparedOnce(t *testing.T) {
	fp := fingerprint{content: digest{1}}
	o := seen([]string{"pantry"}, []string{"pantry"}, func(o *input) { o.rbac = owned() })
	g := copied(o, "pantry")
	g.roles[0].Rules, g.bindings[0].Subjects = nil, nil
	for _, right := range []metav1.Object{&g.roles[0], &g.bindings[0]} {
		right.SetUID("right")
		right.SetResourceVersion("30")
		right.SetAnnotations(map[string]string{api.AnnotationTrimmed: ""})
	}
	o.granted["pantry"] = g
	h := knowing(fp, "pantry")
	const right = "pantry/kettle.v1-kettle-abc"
	steps := func(reason string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, outline(decide(o, h, fp).steps)); diff != "" {
			t.Errorf("%s\nsteps: -want, +got:\n%s", reason, diff)
		}
	}
	steps("it is not known whether they are as wanted", "grant "+right, "bind "+right)
	for _, s := range decide(o, h, fp).steps {
		h.record(s, record{uid: "right", version: "30"})
	}
	steps("they were compared")
	g.roles[0].ResourceVersion = "31"
	steps("another process has changed one since", "grant "+right)
	g.roles[0].ResourceVersion, g.roles[0].UID = "30", "other"
	steps("another process has recreated it", "grant "+right)
	g.roles[0].UID = "right"
	o.rbac.bindings[0].Subjects = append(o.rbac.bindings[0].Subjects, o.rbac.bindings[0].Subjects[0])
	steps("the version's binding has changed", "bind "+right)
	o.rbac = owned()
	delete(g.roles[0].Annotations, api.AnnotationTrimmed)
	steps("the cache shows that the role differs", "grant "+right)
	g.roles[0].Annotations[api.AnnotationTrimmed] = ""
	delete(o.copies, "pantry")
	h.prune(o)
	if len(h.rbac) > 0 {
		t.Error("roles of a copy that is gone are remembered")
	}
}

// copied returns the copies of a version's roles and bindings in a namespace.
func copied(o *input, namespace string) rbac {
	before := o.rbac
	defer func() { o.rbac = before }()
	o.rbac = owned()
	want := wantedRBAC(o, o.copies[namespace])
	return rbac{
		roles:    []rbacv1.Role{*want.roles[0].DeepCopy()},
		bindings: []rbacv1.RoleBinding{*want.bindings[0].DeepCopy()},
	}
}

func TestRightsAreLabelledAndOwned(t *testing.T) {
	o := seen([]string{"pantry"}, []string{"pantry"})
	got := copied(o, "pantry").roles[0].ObjectMeta
	want := metav1.ObjectMeta{
		Namespace: "pantry", Name: "kettle.v1-kettle-abc",
		Labels: map[string]string{
			"olm.managed": "true", "olm.owner": "kettle.v1", "olm.owner.namespace": "pantry", "olm.owner.kind": "ClusterServiceVersion",
			"olm.permissions.hash": "abc", "olm.copiedFrom": home,
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion", Name: "kettle.v1", UID: "uid-pantry",
			Controller: new(false), BlockOwnerDeletion: new(false),
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if owner, ok := ownerOf(&got); !ok || owner != o.key {
		t.Errorf("the role leads to %s, want %s", owner, o.key)
	}
}
