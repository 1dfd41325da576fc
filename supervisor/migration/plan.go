package migration

import (
	"fmt"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

// Verdict is the result of a plan.
type Verdict string

// The verdicts.
const (
	// Possible means that the steps can be executed.
	Possible Verdict = "Possible"
	// Nothing means that there is nothing to take over.
	Nothing Verdict = "Nothing"
	// Done means that everything has been done.
	Done Verdict = "Done"
	// Blocked means that something prevents the steps.
	Blocked Verdict = "Blocked"
)

// Action is what a step does.
type Action string

// The actions of a takeover, in their order.
const (
	// RecordReplicas records the number of replicas of OLM.
	RecordReplicas Action = "Begin"
	// ScaleDown scales a Deployment of OLM to 0.
	ScaleDown Action = "Stop"
	// AwaitPods waits until its pods are gone.
	AwaitPods Action = "Await"
	// RecordObjects records the objects that the controllers may replace.
	RecordObjects Action = "Keep"
	// CompleteTakeover permits the supervisors to work.
	CompleteTakeover Action = "Finish"
)

// Step is one step of a plan.
type Step struct {
	Action Action `json:"action"`
	// Namespace and Name identify the Deployment of the step, if it has one.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Replicas is the current number of replicas of the Deployment.
	Replicas int32 `json:"replicas,omitempty"`
	// Text describes the step for users.
	Text string `json:"text"`
}

// Plan describes a takeover of a cluster.
type Plan struct {
	Verdict Verdict `json:"verdict"`
	// Blockers are the reasons that prevent it, each with a remedy.
	Blockers []string `json:"blockers,omitempty"`
	// Managers are the Deployments of the other lifecycle manager, each with its state.
	Managers []string `json:"rivals,omitempty"`
	// Steps are the steps, in order.
	Steps []Step `json:"steps,omitempty"`
	// Operations are the changes of a handback to objects.
	Operations []Operation `json:"operations,omitempty"`
	// Adopted are the objects that the controllers continue to use unchanged.
	Adopted []string `json:"adopted,omitempty"`
	// Changes are the differences between the controllers and OLM after the takeover.
	Changes []string `json:"changes,omitempty"`
	// Left are the objects that are not changed.
	Left []string `json:"left,omitempty"`
	// Risks are the facts that users should know in advance.
	Risks []string `json:"risks,omitempty"`
}

// Started returns the Deployments that the plan scales up.
func (p *Plan) Started() []client.ObjectKey {
	var keys []client.ObjectKey
	for i := range p.Steps {
		if p.Steps[i].Action == ScaleUp {
			keys = append(keys, client.ObjectKey{Namespace: p.Steps[i].Namespace, Name: p.Steps[i].Name})
		}
	}
	return keys
}

// DeletedVersions returns the ClusterServiceVersions that the plan deletes, as NAMESPACE/NAME.
func (p *Plan) DeletedVersions() []string {
	var deleted []string
	for i := range p.Operations {
		if op := &p.Operations[i]; op.Verb == Delete && op.Kind == operatorsv1alpha1.ClusterServiceVersionKind {
			deleted = append(deleted, op.Namespace+"/"+op.Name)
		}
	}
	return deleted
}

// NewPlan returns the plan to take over an observed cluster. again permits stopping an OLM that was started
// again after a takeover.
func NewPlan(o *ClusterState, again bool) Plan {
	p := Plan{Blockers: blockers(o, again)}
	if len(o.Managers.Workloads) == 0 && o.Record == nil && len(p.Blockers) == 0 {
		p.Verdict = Nothing
		return p
	}
	for i := range o.Managers.Workloads {
		p.Managers = append(p.Managers, o.Managers.Workloads[i].Describe())
	}
	p.Steps = steps(o)
	p.describe(o)
	switch {
	case len(p.Blockers) > 0:
		p.Verdict, p.Steps = Blocked, nil
	case len(p.Steps) == 0:
		p.Verdict, p.Risks = Done, o.Missing
	default:
		p.Verdict = Possible
	}
	return p
}

// blockers returns the reasons that prevent a takeover.
func blockers(o *ClusterState, again bool) []string {
	var all []string
	if o.OpenShift && len(o.Managers.Workloads) > 0 {
		all = append(all, "OpenShift's cluster version operator restores OLM and would start it again; leave this cluster to its OLM, which is a part of the platform")
	}
	for _, s := range o.Managers.Supervisors {
		all = append(all, fmt.Sprintf("another supervisor works here (%s, Lease %s/%s); stop it first", s.Holder, s.Namespace, api.LeaseName))
	}
	if blocker := o.CatalogNamespaces.blocker(); blocker != "" {
		all = append(all, blocker)
	}
	for _, hidden := range o.Managers.Hidden {
		all = append(all, "cannot read "+hidden)
	}
	if o.Record.is(HandingBack) {
		all = append(all, "this cluster is being handed back; finish that first, with: kubectl chandlery migrate --back")
	}
	if again || !o.Record.is(TakenOver) {
		return all
	}
	for _, w := range o.Managers.Active() {
		if w.TakenOver {
			all = append(all, fmt.Sprintf("Deployment %s/%s was scaled up again after the takeover; to stop it again, run: kubectl chandlery migrate", w.Namespace, w.Name))
		}
	}
	return all
}

// steps returns the remaining steps.
func steps(o *ClusterState) []Step {
	running, unrecorded := pending(o)
	taken, half := o.Record.is(TakenOver), o.Record.is(TakingOver)
	var all []Step
	if unrecorded || taken && len(running) > 0 {
		all = append(all, Step{Action: RecordReplicas, Text: "record the replicas of OLM's Deployments, in ConfigMap " + RecordName})
	}
	for i := range running {
		w := &running[i]
		all = append(all, Step{
			Action: ScaleDown, Namespace: w.Namespace, Name: w.Name, Replicas: w.Replicas,
			Text: describeScaleDown(w),
		})
	}
	if len(running) > 0 || len(o.Pods) > 0 {
		all = append(all, Step{Action: AwaitPods, Text: "wait until the pods of these Deployments are deleted"})
	}
	if len(all) > 0 || half && o.Record.Chunks == 0 {
		all = append(all, Step{Action: RecordObjects, Text: fmt.Sprintf("record %d objects that OLM created and that supervisors may replace, in ConfigMaps %s-0 and following", o.Objects, RecordName)})
	}
	if len(all) > 0 || half {
		all = append(all, Step{Action: CompleteTakeover, Text: "let supervisors work"})
	}
	return all
}

// describeScaleDown returns the text about the stop of a Deployment of OLM.
func describeScaleDown(w *competing.Workload) string {
	if w.Replicas == 0 {
		return fmt.Sprintf("mark Deployment %s/%s, which is at 0 replicas already, as taken over from", w.Namespace, w.Name)
	}
	return fmt.Sprintf("scale Deployment %s/%s from %d to 0 replicas; it is not deleted", w.Namespace, w.Name, w.Replicas)
}

// pending returns the Deployments that have yet to be stopped, or marked as stopped. unrecorded reports whether
// the record lacks some of them, or has other replicas.
func pending(o *ClusterState) (running []competing.Workload, unrecorded bool) {
	for i := range o.Managers.Workloads {
		w := o.Managers.Workloads[i]
		if w.Replicas > 0 || !w.TakenOver {
			running = append(running, w)
		}
		known := o.Record.find(&w)
		unrecorded = unrecorded || known == nil || w.Replicas > 0 && known.Replicas != w.Replicas
	}
	return running, unrecorded
}

// describe adds the effects on existing objects.
func (p *Plan) describe(o *ClusterState) {
	for i := range o.Counts.Kinds {
		p.Adopted = append(p.Adopted, o.Counts.Kinds[i].describe())
	}
	switch {
	case o.Counts.Hosted == 1:
		p.Changes = append(p.Changes, "1 catalog runs as a Deployment behind its Service; OLM's pod is deleted when the new pods serve")
	case o.Counts.Hosted > 1:
		p.Changes = append(p.Changes, fmt.Sprintf("%d catalogs run as Deployments behind their Services; OLM's pods are deleted when the new pods serve", o.Counts.Hosted))
	}
	p.Changes = append(p.Changes,
		"Deployments of operators, their pods and their certificates stay unchanged until the next update of the operator",
		"Services, webhook configurations and bindings of operators that serve the API server get our labels; bindings outside the namespace of the operator get names that contain it",
	)
	if len(o.Counts.Waiting) > 0 {
		p.Changes = append(p.Changes, "InstallPlans that wait for approval are replaced by InstallPlans with the same content and other names: "+strings.Join(o.Counts.Waiting, ", "))
		p.Risks = append(p.Risks, "handing back does not recreate InstallPlans that waited: their replacements stay")
	}
	p.Left = []string{
		"OLM's Deployments and CustomResourceDefinitions stay, so that handing back is possible, with: kubectl chandlery migrate --back",
		"ConfigMaps of bundles that OLM unpacked stay until their CatalogSource is deleted, or until kubectl chandlery migrate --finish; their Jobs stay 5 minutes",
	}
	if server := o.PackageServer.describe(); server != "" {
		p.Left = append(p.Left, server)
	}
	p.Risks = append(p.Risks, o.Missing...)
	if risk := o.CatalogNamespaces.risk(); risk != "" {
		p.Risks = append(p.Risks, risk)
	}
	p.Risks = append(p.Risks, "handing back does not revert updates of operators")
	if len(o.Counts.InProgress) > 0 {
		p.Risks = append(p.Risks, "InstallPlans in progress continue, or fail if they refer to bundles that OLM unpacked; another InstallPlan then installs the version, "+
			"after approval if its Subscription is manual; handing back does not revert this: "+strings.Join(o.Counts.InProgress, ", "))
	}
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
