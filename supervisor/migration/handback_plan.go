package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/supervisor/api"
)

// The actions of a handback, in their order.
const (
	// MarkHandback sets the phase HandingBack in the record, so that supervisors end.
	MarkHandback Action = "Mark"
	// ScaleDownSupervisors scales the Deployment of the supervisors to 0.
	ScaleDownSupervisors Action = "Dismiss"
	// AwaitRelease waits until no supervisor leads.
	AwaitRelease Action = "Release"
	// RestoreObjects restores objects, but keeps the replicas of catalogs.
	RestoreObjects Action = "Restore"
	// ScaleUp scales a Deployment of OLM up again.
	ScaleUp Action = "Start"
	// RemoveLabels restores, while OLM starts, what does not change what OLM does: most of it are labels and annotations.
	RemoveLabels Action = "RemoveLabels"
	// DeleteReplicas waits until the pods of catalogs are ready, and deletes the replicas of this project.
	DeleteReplicas Action = "DeleteReplicas"
	// DeleteRecord deletes the record.
	DeleteRecord Action = "Forget"
)

// NewHandbackPlan returns the plan to hand back a cluster. supervisors are the Deployments of supervisors that
// have replicas, as NAMESPACE/NAME.
func NewHandbackPlan(record *Record, supervisors []string, operations []Operation) Plan {
	if record == nil {
		return Plan{Verdict: Nothing}
	}
	p := Plan{Verdict: Possible, Operations: operations, Left: []string{
		"operators stay in the version that they have now, and so do the Deployments, roles and InstallPlans of operators that were installed or updated since the takeover",
		"annotations " + api.Prefix + "* that users have set stay; OLM ignores them",
		"OLM writes status again",
	}}
	add := func(action Action, format string, args ...any) {
		p.Steps = append(p.Steps, Step{Action: action, Text: fmt.Sprintf(format, args...)})
	}
	if record.Phase != HandingBack {
		add(MarkHandback, "tell supervisors to stop, and not to start again, in ConfigMap %s", RecordName)
	}
	for _, name := range supervisors {
		namespace, name, _ := strings.Cut(name, "/")
		p.Steps = append(p.Steps, Step{Action: ScaleDownSupervisors, Namespace: namespace, Name: name, Text: fmt.Sprintf("scale Deployment %s/%s, the supervisors, to 0 replicas", namespace, name)})
	}
	add(AwaitRelease, "wait until no supervisor leads")
	if !record.Restored {
		add(RestoreObjects, "%s", describeOperations(operations))
	}
	for i := range record.Deployments {
		d := &record.Deployments[i]
		p.Steps = append(p.Steps, Step{Action: ScaleUp, Namespace: d.Namespace, Name: d.Name, Replicas: d.Replicas, Text: describeStart(d)})
	}
	if n := countOperations(operations, Operation.followsStart); n > 0 {
		add(RemoveLabels, "while OLM starts, restore or delete the %d other object%s, or remove the supervisors' labels and annotations", n, plural(n))
	}
	if n := countOperations(operations, Operation.isOfCatalog); n > 0 {
		add(DeleteReplicas, "%sdelete %d object%s with which supervisors served catalogs", describeWait(operations), n, plural(n))
	}
	add(DeleteRecord, "delete ConfigMap %s, and those with the recorded objects", RecordName)
	return p
}

// countOperations returns the number of operations that match.
func countOperations(operations []Operation, matches func(Operation) bool) int {
	n := 0
	for _, op := range operations {
		if matches(op) {
			n++
		}
	}
	return n
}

// replacedPlans describes the recorded InstallPlans that no longer exist. They are not restored. Their
// replacements have the same content, and OLM would have two plans.
func replacedPlans(recorded []string, live objectsByKey) []string {
	gone := slices.DeleteFunc(slices.Clone(recorded), func(name string) bool { return live["InstallPlan "+name] != nil })
	if len(gone) == 0 {
		return nil
	}
	return []string{"InstallPlans that waited for approval, or were in progress, at the takeover are not recreated; their replacements stay, with the same content and other names: " + strings.Join(gone, ", ")}
}

// describeStart returns the text about the start of a Deployment of OLM.
func describeStart(d *ScaledDeployment) string {
	if d.Replicas == 0 {
		return fmt.Sprintf("remove the label of the takeover from Deployment %s/%s, which stays at 0 replicas, as before", d.Namespace, d.Name)
	}
	return fmt.Sprintf("scale Deployment %s/%s to %d replica%s, as before", d.Namespace, d.Name, d.Replicas, plural(int(d.Replicas)))
}

// describeWait returns the text about the wait for the pods of catalogs whose replicas are deleted; empty if there are none.
func describeWait(operations []Operation) string {
	n := countOperations(operations, Operation.deletesReplicas)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("wait until OLM's pods of %d catalog%s are ready, at most %s, and ", n, plural(n), readyTimeout)
}

// describeOperations returns a text with the number of changes to objects before OLM starts.
func describeOperations(operations []Operation) string {
	count := map[Verb]int{}
	for _, op := range operations {
		if op.precedesStart() {
			count[op.Verb]++
		}
	}
	return fmt.Sprintf("recreate %d objects, restore the content of %d, delete %d that OLM does not create, and remove the supervisors' labels and annotations from %d and their conditions from %d",
		count[Create], count[ReplaceContent], count[Delete], count[RemoveMetadata], count[RemoveConditions])
}
