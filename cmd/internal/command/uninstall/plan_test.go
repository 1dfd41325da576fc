package uninstall_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/cmd/internal/command/uninstall"
)

// inventory is a cluster with two operators, of which one has a finalizer.
func inventory(changes ...func(*uninstall.Inventory)) *uninstall.Inventory {
	o := &uninstall.Inventory{
		Namespace: "chandlery-system", NamespaceOwned: true,
		Present: uninstall.Product("chandlery-system"),
		Operators: []uninstall.Operator{
			{Namespace: "shop", Name: "lamp.v1", Phase: "Succeeded", Definitions: []string{"lamps.example.com"}},
			{Namespace: "lab", Name: "lamp.v1", Definitions: []string{"lamps.example.com"}},
		},
		Finalized: []string{"ClusterServiceVersion shop/lamp.v1"},
		Counts:    map[string]int{"Subscription": 2, "ClusterServiceVersion": 2, "CatalogSource": 1},
	}
	for _, object := range uninstall.Prerequisites("olm") {
		o.Prerequisites = append(o.Prerequisites, uninstall.Prerequisite{Object: object})
	}
	for _, change := range changes {
		change(o)
	}
	return o
}

// planTests are the cases of TestNewPlan.
var planTests = map[string]struct {
	reason                       string
	change                       func(*uninstall.Inventory)
	everything                   bool
	removed, kept                []string
	lost, stays, notes, blockers string
	noLost, noBlockers           bool
}{
	"ProductOnly": {
		reason:  "what operators need stays",
		removed: []string{"Deployment chandlery-system/chandlery-supervisor", "Namespace chandlery-system", "Role kube-node-lease/chandlery-supervisor"},
		kept:    []string{"CustomResourceDefinition subscriptions.operators.coreos.com", "Namespace olm", "ClusterRole aggregate-olm-edit"},
		stays:   "2 operators, with running pods", notes: "ClusterServiceVersion shop/lamp.v1. Without a supervisor, the deletion", noLost: true, noBlockers: true,
	},
	"Everything": {
		reason: "each operator is named before it is lost", everything: true,
		removed: []string{"CustomResourceDefinition subscriptions.operators.coreos.com", "Namespace olm", "ClusterRole aggregate-olm-view"},
		lost:    "Operator shop/lamp.v1 with its Deployments and RBAC (Succeeded)", stays: "1 CustomResourceDefinition of operators", noBlockers: true,
	},
	"OtherOwner": {
		reason: "a namespace that another owner created stays", everything: true,
		change: func(o *uninstall.Inventory) { o.Prerequisites[len(o.Prerequisites)-1].Foreign = true },
		kept:   []string{"Namespace olm"}, stays: "Namespace olm, which another owner created",
	},
	"BesideOLM": {
		reason: "the kinds are OLM's too", everything: true,
		change: func(o *uninstall.Inventory) {
			o.Managers = []string{"Deployment olm/olm-operator (0 of 0 replicas ready)"}
		},
		kept:     []string{"CustomResourceDefinition subscriptions.operators.coreos.com", "Namespace olm"},
		blockers: "Deployment olm/olm-operator",
	},
	"ProductBesideOLM": {
		reason:     "the product can always be removed",
		change:     func(o *uninstall.Inventory) { o.Managers = []string{"Deployment olm/olm-operator"} },
		removed:    []string{"Deployment chandlery-system/chandlery-supervisor"},
		noBlockers: true,
	},
	"RecordOfTakeOver": {
		reason: "the record of a takeover is needed to hand back",
		change: func(o *uninstall.Inventory) { o.Contents.Objects = []string{"ConfigMap chandlery-takeover"} },
		kept:   []string{"Namespace chandlery-system"}, stays: "which contains ConfigMap chandlery-takeover",
	},
	"UnlistedContents": {
		reason: "a namespace that may hold other objects stays",
		change: func(o *uninstall.Inventory) { o.Contents.Unlisted = []string{"wares.example.com/v1"} },
		kept:   []string{"Namespace chandlery-system"}, stays: "because the API server cannot list its objects of wares.example.com/v1",
	},
	"NamespaceOfOthers": {
		reason: "a namespace without the label belongs to another owner",
		change: func(o *uninstall.Inventory) { o.NamespaceOwned = false },
		kept:   []string{"Namespace chandlery-system"},
	},
	"Nothing": {
		reason: "users see where the command looked",
		change: func(o *uninstall.Inventory) { o.Present, o.NamespaceOwned = nil, false },
		notes:  "looked for a supervisor in namespace chandlery-system. If its namespace is another one, set --supervisor-namespace", noBlockers: true,
	},
	"Finalizers": {
		reason: "finalizers of others stay",
		notes:  `kubectl -n NAMESPACE get KIND NAME -o json | jq '.metadata.finalizers -= ["operators.coreos.com/csv-cleanup", "chandlery.dev/uninstall"]' | kubectl replace -f -`,
	},
	"Helm": {
		reason: "the record of a release is Helm's own",
		change: func(o *uninstall.Inventory) { o.Release = "chandlery" },
		notes:  "helm uninstall chandlery --namespace chandlery-system",
	},
}

// TestNewPlan checks what is removed, lost and left, by the names that the plan shows.
func TestNewPlan(t *testing.T) {
	t.Parallel()
	for name, test := range planTests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := inventory()
			if test.change != nil {
				test.change(o)
			}
			p := uninstall.NewPlan(o, test.everything)
			var removed []string
			for _, object := range p.Remove {
				removed = append(removed, object.String())
			}
			for _, want := range test.removed {
				if !slices.Contains(removed, want) {
					t.Errorf("%s: %s is not removed", test.reason, want)
				}
			}
			for _, want := range test.kept {
				if slices.Contains(removed, want) {
					t.Errorf("%s: %s is removed", test.reason, want)
				}
			}
			for _, part := range []struct {
				lines []string
				want  string
				none  bool
			}{{p.Lost, test.lost, test.noLost}, {p.Stays, test.stays, false}, {p.Notes, test.notes, false}, {p.Blockers, test.blockers, test.noBlockers}} {
				text := strings.Join(part.lines, "\n")
				if !strings.Contains(text, part.want) || part.none && text != "" {
					t.Errorf("%s: got %q, want %q", test.reason, text, part.want)
				}
			}
		})
	}
}
