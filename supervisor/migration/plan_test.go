package migration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

func workload(name string, replicas int32, takenOver bool) competing.Workload {
	return competing.Workload{Namespace: "olm", Name: name, Program: name, Replicas: replicas, Pods: replicas, Ready: replicas, TakenOver: takenOver}
}

func recorded(phase Phase, images int, names ...string) *Record {
	r := &Record{Phase: phase, Chunks: images}
	for _, name := range names {
		r.Deployments = append(r.Deployments, ScaledDeployment{Namespace: "olm", Name: name, Replicas: 1})
	}
	return r
}

// planCase is the state of a cluster, and the plan of its takeover.
type planCase struct {
	reason    string
	workloads []competing.Workload
	with      func(*ClusterState)
	again     bool
	want      Verdict
	steps     []Action
	blocked   string
}

// planCases are the states before, within and after a takeover.
func planCases() []planCase {
	const o, c = "olm-operator", "catalog-operator"
	kept := workload(o, 1, false)
	kept.ManagedBy = "ClusterVersion version"
	return []planCase{
		{reason: "a cluster without OLM", want: Nothing},
		{reason: "OLM as it runs", workloads: []competing.Workload{workload(c, 1, false), workload(o, 1, false)}, want: Possible, steps: []Action{RecordReplicas, ScaleDown, ScaleDown, AwaitPods, RecordObjects, CompleteTakeover}},
		{reason: "OLM that somebody has stopped is marked, and what it left written down", workloads: []competing.Workload{workload(o, 0, false)}, want: Possible, steps: []Action{RecordReplicas, ScaleDown, AwaitPods, RecordObjects, CompleteTakeover}},
		{
			reason: "interrupted before the first was stopped", workloads: []competing.Workload{workload(c, 1, false), workload(o, 1, false)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakingOver, 0, o, c) }, want: Possible, steps: []Action{ScaleDown, ScaleDown, AwaitPods, RecordObjects, CompleteTakeover},
		},
		{
			reason: "interrupted between the two", workloads: []competing.Workload{workload(c, 0, true), workload(o, 1, false)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakingOver, 0, o, c) }, want: Possible, steps: []Action{ScaleDown, AwaitPods, RecordObjects, CompleteTakeover},
		},
		{
			reason: "interrupted while pods were waited for", workloads: []competing.Workload{workload(c, 0, true), workload(o, 0, true)},
			with: func(ob *ClusterState) {
				ob.Record, ob.Pods = recorded(TakingOver, 0, o, c), []string{"olm/olm-operator-x"}
			}, want: Possible, steps: []Action{AwaitPods, RecordObjects, CompleteTakeover},
		},
		{
			reason: "interrupted while objects were written down", workloads: []competing.Workload{workload(c, 0, true), workload(o, 0, true)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakingOver, 0, o, c) }, want: Possible, steps: []Action{RecordObjects, CompleteTakeover},
		},
		{
			reason: "interrupted before the end: what was written down is not written again", workloads: []competing.Workload{workload(c, 0, true), workload(o, 0, true)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakingOver, 1, o, c) }, want: Possible, steps: []Action{CompleteTakeover},
		},
		{
			reason: "done", workloads: []competing.Workload{workload(c, 0, true), workload(o, 0, true)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakenOver, 1, o, c) }, want: Done,
		},
		{
			reason: "done, and OLM uninstalled since",
			with:   func(ob *ClusterState) { ob.Record = recorded(TakenOver, 1, o, c) }, want: Done,
		},
		{
			reason: "started again by somebody: a supervisor leaves that", workloads: []competing.Workload{workload(c, 0, true), workload(o, 1, true)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakenOver, 1, o, c) }, want: Blocked, blocked: "scaled up again",
		},
		{
			reason: "started again by somebody, and the command is given", workloads: []competing.Workload{workload(c, 0, true), workload(o, 1, true)}, again: true,
			with: func(ob *ClusterState) { ob.Record = recorded(TakenOver, 1, o, c) }, want: Possible, steps: []Action{RecordReplicas, ScaleDown, AwaitPods, RecordObjects, CompleteTakeover},
		},
		{
			reason: "another part of OLM appears", workloads: []competing.Workload{workload(c, 1, false), workload(o, 0, true)},
			with: func(ob *ClusterState) { ob.Record = recorded(TakenOver, 1, o) }, want: Possible, steps: []Action{RecordReplicas, ScaleDown, AwaitPods, RecordObjects, CompleteTakeover},
		},
		{reason: "OpenShift would start it again", workloads: []competing.Workload{kept}, with: func(ob *ClusterState) { ob.OpenShift = true }, want: Blocked, blocked: "cluster version operator"},
		{reason: "OpenShift without OLM", with: func(ob *ClusterState) { ob.OpenShift = true }, want: Nothing},
		{
			reason: "another supervisor", with: func(ob *ClusterState) {
				ob.Managers.Supervisors = []competing.Supervisor{{Namespace: "elsewhere", Holder: "a"}}
			},
			want: Blocked, blocked: "another supervisor works here (a, Lease elsewhere/chandlery-supervisor)",
		},
		{reason: "one that may not look", with: func(ob *ClusterState) { ob.Managers.Hidden = []string{"Deployments"} }, want: Blocked, blocked: "cannot read Deployments"},
		{
			reason: "the supervisors would not find the global catalogs", workloads: []competing.Workload{workload(c, 1, false)},
			with: func(ob *ClusterState) { ob.CatalogNamespaces = CatalogNamespaces{"shared", "olm"} }, want: Blocked, blocked: "--global-catalog-namespace=shared",
		},
		{
			reason: "half handed back", workloads: []competing.Workload{workload(o, 0, true)},
			with: func(ob *ClusterState) { ob.Record = recorded(HandingBack, 1, o) }, want: Blocked, blocked: "kubectl chandlery migrate --back",
		},
	}
}

func TestNewPlan(t *testing.T) {
	for _, tt := range planCases() {
		t.Run(tt.reason, func(t *testing.T) {
			ob := &ClusterState{Managers: competing.Finding{Workloads: tt.workloads}}
			if tt.with != nil {
				tt.with(ob)
			}
			p := NewPlan(ob, tt.again)
			var got []Action
			for _, s := range p.Steps {
				got = append(got, s.Action)
			}
			if diff := cmp.Diff(tt.steps, got); p.Verdict != tt.want || diff != "" {
				t.Errorf("verdict %s, want %s; steps (-want +got):\n%s", p.Verdict, tt.want, diff)
			}
			if all := strings.Join(p.Blockers, "; "); !strings.Contains(all, tt.blocked) || tt.blocked == "" && all != "" {
				t.Errorf("blocked by %q, want %q", all, tt.blocked)
			}
		})
	}
}

// TestWaitingPlans checks that plans that wait or are in progress are not described as unchanged, before and after.
func TestWaitingPlans(t *testing.T) {
	o := &ClusterState{Managers: competing.Finding{Workloads: []competing.Workload{workload("olm-operator", 1, false)}}}
	by := map[string]int{}
	for name, phase := range map[string]string{"done": "Complete", "waits": "RequiresApproval", "runs": "Installing"} {
		by[o.Counts.addPlan(object("InstallPlan", "shop/"+name, map[string]any{"status|phase": phase}))]++
	}
	if diff := cmp.Diff(map[string]int{"Complete": 1, "RequiresApproval": 1, "Installing": 1}, by); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	o.Counts.Kinds = []Count{{Kind: "InstallPlan", Total: 3, By: by, Unfinished: 2}, {Kind: "Subscription", Total: 1}}
	p := NewPlan(o, false)
	want := []string{"1 InstallPlan (1 Complete); 2 more, which are in progress or wait for approval, are named below", "1 Subscription"}
	if diff := cmp.Diff(want, p.Adopted); diff != "" {
		t.Errorf("managed without changes (-want +got):\n%s", diff)
	}
	if text := strings.Join(p.Changes, "\n"); !strings.Contains(text, "shop/waits") {
		t.Errorf("changes:\n%s", text)
	}
	if text := strings.Join(p.Risks, "\n"); !strings.Contains(text, "manual; handing back does not revert this: shop/runs") || !strings.Contains(text, "does not recreate InstallPlans") {
		t.Errorf("risks:\n%s", text)
	}
	left := replacedPlans([]string{"shop/waits", "shop/runs"}, objectsByKey{"InstallPlan shop/runs": object("InstallPlan", "shop/runs", nil)})
	if text := strings.Join(left, "\n"); !strings.Contains(text, "shop/waits") || strings.Contains(text, "shop/runs") {
		t.Errorf("left:\n%s", text)
	}
}

// TestPackageServer checks what a plan states about OLM's package server.
func TestPackageServer(t *testing.T) {
	for _, tt := range []struct {
		server PackageServer
		says   []string
	}{
		{PackageServer{}, nil},
		{PackageServer{Deployment: "olm/packageserver"}, []string{"Deployment olm/packageserver still serves", "its certificate is not renewed"}},
		{PackageServer{Deployment: "olm/packageserver", Version: "packageserver"}, []string{"in place of Deployment olm/packageserver", "a handback returns the API", "stays until kubectl chandlery migrate --finish"}},
	} {
		o := &ClusterState{Managers: competing.Finding{Workloads: []competing.Workload{workload("olm-operator", 1, false)}}, PackageServer: tt.server}
		left := strings.Join(NewPlan(o, false).Left, "\n")
		if tt.says == nil && strings.Contains(left, "packages") {
			t.Errorf("without a package server: %s", left)
		}
		for _, says := range tt.says {
			if !strings.Contains(left, says) {
				t.Errorf("%+v: %q lacks %q", tt.server, left, says)
			}
		}
	}
}

// TestRecordAdd checks the recorded number of replicas of a Deployment.
func TestRecordAdd(t *testing.T) {
	const name = "olm-operator"
	at := func(replicas, before int32) competing.Workload {
		w := workload(name, replicas, before > 0)
		w.PreviousReplicas = before
		return w
	}
	for _, tt := range []struct {
		reason   string
		recorded int32 // -1 for none
		w        competing.Workload
		want     int32
		begins   bool
	}{
		{"the first time", -1, at(2, 0), 2, true},
		{"it was at 0 already", -1, at(0, 0), 0, true},
		{"the record was lost, and the label is there", -1, at(0, 3), 3, true},
		{"stopped by us", 1, at(0, 1), 1, false},
		{"at 0 the first time, and started since", 0, at(1, 0), 1, true},
		{"started again with fewer", 3, at(1, 3), 1, true},
		{"interrupted before it was stopped", 1, at(1, 0), 1, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			r := &Record{Phase: TakingOver}
			if tt.recorded >= 0 {
				r.Deployments = []ScaledDeployment{{Namespace: "olm", Name: name, Replicas: tt.recorded}}
			}
			p := NewPlan(&ClusterState{Record: r, Managers: competing.Finding{Workloads: []competing.Workload{tt.w}}}, true)
			if begins := len(p.Steps) > 0 && p.Steps[0].Action == RecordReplicas; begins != tt.begins {
				t.Errorf("steps %v", p.Steps)
			}
			r.add(&tt.w)
			if got := r.find(&tt.w).Replicas; len(r.Deployments) != 1 || got != tt.want {
				t.Errorf("replicas %d, want %d", got, tt.want)
			}
		})
	}
}

// TestRecordBegin checks that a takeover after an interruption records the objects again if OLM has worked since.
func TestRecordBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		w     competing.Workload
		again bool
	}{
		"StartedAgain": {workload("olm-operator", 1, true), true},
		"Unknown":      {workload("catalog-operator", 0, false), true},
		"Stopped":      {workload("olm-operator", 0, true), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(TakingOver, 3, "olm-operator")
			r.Plans = []string{"shop/waits"}
			r.begin([]competing.Workload{tt.w})
			if again := r.Chunks == 0 && len(r.Plans) == 0; again != tt.again || r.Phase != TakingOver {
				t.Errorf("record %+v", r)
			}
			p := NewPlan(&ClusterState{Record: r, Managers: competing.Finding{Workloads: []competing.Workload{workload("olm-operator", 0, true)}}}, true)
			if records := slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action == RecordObjects }); records != tt.again {
				t.Errorf("after an interruption: steps %v", p.Steps)
			}
		})
	}
}

// TestHandbackCounts checks that the steps of a handback count the objects that its operations name, and that objects of a catalog
// without replicas are deleted, too.
func TestHandbackCounts(t *testing.T) {
	source := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		return by(ownedBy(o, "CatalogSource", "shop", "s1"), "chandlery-supervisor", "{}")
	}
	replicas := source(object("Deployment", "olm/shop", map[string]any{"metadata|labels": map[string]any{labelManagedBy: managedBy}}))
	replicas.SetAPIVersion("apps/v1")
	secret, role := source(object("Secret", "olm/shop-catalog-cert", nil)), object("Role", "lamps/lamp", nil)
	secret.SetAPIVersion("v1")
	role.SetAPIVersion("rbac.authorization.k8s.io/v1")
	labels, deletion := newOperation(RemoveMetadata, role, nil), newOperation(Delete, secret, nil)
	for _, tt := range []struct {
		operations []Operation
		want       []string
	}{
		{
			[]Operation{newOperation(Create, nil, role), labels, newOperation(Delete, replicas, nil), deletion},
			[]string{
				"recreate 1 objects, restore the content of 0, delete 0 that", "while OLM starts, restore or delete the 1 other object, or remove the supervisors' labels and annotations",
				"wait until OLM's pods of 1 catalog are ready, at most 1m0s, and delete 2 objects with which",
			},
		},
		{[]Operation{deletion}, []string{"delete 1 object with which"}},
	} {
		steps := map[Action]int{}
		for _, op := range tt.operations {
			steps[op.Step()]++
		}
		plan := NewHandbackPlan(recorded(TakenOver, 1, "olm-operator"), nil, tt.operations)
		var got []string
		for _, step := range plan.Steps {
			if steps[step.Action] > 0 {
				got = append(got, step.Text)
			}
		}
		if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
			t.Errorf("steps %q, want %q", got, tt.want)
		}
	}
}

// TestStoppedAlready checks that no scaling is reported for a Deployment that remains at 0 replicas.
func TestStoppedAlready(t *testing.T) {
	there := NewPlan(&ClusterState{Managers: competing.Finding{Workloads: []competing.Workload{workload("olm-operator", 0, false)}}}, false)
	r := recorded(TakenOver, 1, "olm-operator")
	r.Deployments[0].Replicas = 0
	for _, step := range append(there.Steps, NewHandbackPlan(r, nil, nil).Steps...) {
		if strings.Contains(step.Text, "scale Deployment") {
			t.Error(step.Text)
		}
	}
}
