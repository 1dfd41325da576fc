package suite_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/supervisor/discovery"
)

var (
	served      = discovery.Verdict{Outcome: discovery.Installed, Reason: discovery.ReasonServed}
	noGroup     = discovery.Verdict{Outcome: discovery.NotInstalled, Reason: discovery.ReasonNoGroup}
	noVersion   = discovery.Verdict{Outcome: discovery.NotInstalled, Reason: discovery.ReasonNoVersion}
	noKind      = discovery.Verdict{Outcome: discovery.NotInstalled, Reason: discovery.ReasonNoKind}
	mayNotList  = discovery.Verdict{Outcome: discovery.Forbidden, Reason: discovery.ReasonMayNotList}
	mayNotKnow  = discovery.Verdict{Outcome: discovery.Forbidden, Reason: discovery.ReasonMayNotDiscover}
	backendDown = discovery.Verdict{Outcome: discovery.Unreachable, Reason: discovery.ReasonBackendDown}
)

// TestUsers checks targets that exist and targets that do not, as each user.
func TestUsers(t *testing.T) {
	w := newWorld(t)
	w.serve(w.definition("v2", "v1beta1"))
	people := map[string]person{
		"Admin": {}, "Reader": w.reader(), "ReaderHere": w.readerHere(), "Nobody": w.nobody(), "Stranger": w.stranger(),
	}
	here := w.widgets("v2")
	here.Namespace = w.Namespace
	unnamed := w.widgets("")
	unnamed.Resource = ""
	gadgets := w.widgets("v2")
	gadgets.Kind, gadgets.Resource = "Gadget", "gadgets"
	elsewhere := w.widgets("v1")
	elsewhere.Group = "no." + w.group

	for name, tc := range map[string]struct {
		reason string
		target discovery.Target
		want   map[string]discovery.Verdict
		say    string
	}{
		"Served": {
			"it is there", w.widgets("v2"),
			map[string]discovery.Verdict{"Admin": served, "Reader": served, "ReaderHere": mayNotList, "Nobody": mayNotList, "Stranger": mayNotKnow},
			w.group,
		},
		"Here": {
			"in one namespace more people may read it", here,
			map[string]discovery.Verdict{"Admin": served, "Reader": served, "ReaderHere": served, "Nobody": mayNotList, "Stranger": mayNotKnow},
			"in namespace " + w.Namespace,
		},
		"LookedUp": {
			"the preferred version is found, and the name of the resource", unnamed,
			map[string]discovery.Verdict{"Admin": served, "Reader": served, "ReaderHere": mayNotList, "Nobody": mayNotList, "Stranger": mayNotKnow},
			"",
		},
		"OtherVersion": {
			"what is not there at this version is said to be at others, to everybody who may ask", w.widgets("v1"),
			map[string]discovery.Verdict{"Admin": noVersion, "Reader": noVersion, "ReaderHere": noVersion, "Nobody": noVersion, "Stranger": mayNotKnow},
			"",
		},
		"OtherKind": {
			"the group has other kinds", gadgets,
			map[string]discovery.Verdict{"Admin": noKind, "Reader": noKind, "ReaderHere": noKind, "Nobody": noKind, "Stranger": mayNotKnow},
			"",
		},
		"NoGroup": {
			"nobody who may ask is told anything but that it is not installed", elsewhere,
			map[string]discovery.Verdict{"Admin": noGroup, "Reader": noGroup, "ReaderHere": noGroup, "Nobody": noGroup, "Stranger": mayNotKnow},
			"no." + w.group,
		},
	} {
		for who, want := range tc.want {
			t.Run(name+"/"+who, func(t *testing.T) {
				w := w.in(t)
				got := w.expect(people[who], tc.target, want, tc.say)
				if want == noVersion && strings.Join(got.Served, " ") != "v2 v1beta1" {
					t.Errorf("%s: it is served at %q, want v2 and v1beta1", tc.reason, got.Served)
				}
			})
		}
	}
}

// TestGrant applies the permissions of a result, and checks again.
func TestGrant(t *testing.T) {
	w := newWorld(t)
	w.serve(w.definition("v1"))
	here := w.widgets("v1")
	here.Namespace = w.Namespace
	unnamed := w.widgets("")
	unnamed.Resource = ""
	account := person{
		name:   "system:serviceaccount:" + w.Namespace + ":default",
		groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	for name, tc := range map[string]struct {
		who    person
		target discovery.Target
		// asks is how often permissions are granted. The first grant does not name a resource that the user cannot
		// look up.
		asks int
	}{
		"Cluster":               {person{name: "alice@example.com"}, w.widgets("v1"), 1},
		"Namespace":             {person{name: "bob"}, here, 1},
		"ServiceAccount":        {account, w.widgets("v1"), 1},
		"Undiscoverable":        {w.stranger(), here, 1},
		"UndiscoverableUnnamed": {person{name: "carol", groups: w.stranger().groups}, unnamed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			for range tc.asks {
				before := w.find(tc.who, tc.target)
				if before.Outcome != discovery.Forbidden || before.Grant == "" {
					t.Fatalf("%v: %s\n%s\nwant Forbidden with the missing RBAC rules", before.Verdict, before.Message(), before.Grant)
				}
				w.apply(before.Grant)
				// Permissions take effect when the API server's caches have them.
				w.eventually("the rights change something", func(ctx context.Context) bool {
					after := w.findWithin(ctx, tc.who, tc.target)
					return after.Verdict != before.Verdict
				})
			}
			w.eventually("the rights are enough", func(ctx context.Context) bool {
				return w.findWithin(ctx, tc.who, tc.target).Verdict == served
			})
		})
	}
}
