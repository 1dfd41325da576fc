package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/rival"
)

// The actions of a handback, in their order.
const (
	// Mark sets the phase HandingBack in the record, so that supervisors end.
	Mark Action = "Mark"
	// Dismiss scales the Deployment of the supervisors to 0.
	Dismiss Action = "Dismiss"
	// Release waits until no supervisor leads.
	Release Action = "Release"
	// Restore restores objects.
	Restore Action = "Restore"
	// Start scales a Deployment of OLM up again.
	Start Action = "Start"
	// Forget deletes the record.
	Forget Action = "Forget"
)

// labelSupervisor is the label of the Deployment of the supervisors.
const labelSupervisor = "app.kubernetes.io/name"

// marksOn returns the kinds of objects that may have marks, in addition to the recorded kinds.
func marksOn() []schema.GroupVersionKind {
	const operators = "operators.coreos.com"
	return []schema.GroupVersionKind{
		{Group: operators, Version: "v1alpha1", Kind: "CatalogSource"},
		{Group: operators, Version: "v1alpha1", Kind: "Subscription"},
		{Group: operators, Version: "v1alpha1", Kind: "InstallPlan"},
		{Group: operators, Version: "v1alpha1", Kind: "ClusterServiceVersion"},
		{Group: operators, Version: "v1", Kind: "OperatorGroup"},
		{Group: operators, Version: "v2", Kind: "OperatorCondition"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Namespace"},
	}
}

// NewHandBack returns the plan to hand back a cluster. dismissed are the Deployments of supervisors that have
// replicas, as NAMESPACE/NAME.
func NewHandBack(record *Record, dismissed []string, operations []Operation) Plan {
	if record == nil {
		return Plan{Verdict: Nothing}
	}
	p := Plan{Verdict: Possible}
	add := func(action Action, format string, args ...any) {
		p.Steps = append(p.Steps, Step{Action: action, Text: fmt.Sprintf(format, args...)})
	}
	if record.Phase != HandingBack {
		add(Mark, "tell supervisors to end, and not to begin again, in ConfigMap %s", RecordName)
	}
	for _, name := range dismissed {
		namespace, name, _ := strings.Cut(name, "/")
		p.Steps = append(p.Steps, Step{Action: Dismiss, Namespace: namespace, Name: name, Text: fmt.Sprintf("scale Deployment %s/%s, the supervisors, to 0 replicas", namespace, name)})
	}
	add(Release, "wait until no supervisor leads")
	add(Restore, "%s", describe(operations))
	for _, r := range record.Rivals {
		p.Steps = append(p.Steps, Step{
			Action: Start, Namespace: r.Namespace, Name: r.Name, Replicas: r.Replicas,
			Text: starting(&r),
		})
	}
	add(Forget, "delete ConfigMap %s, and those with what was written down", RecordName)
	p.Operations = operations
	p.Left = []string{
		"operators stay in the version that they have now, and so do the Deployments, roles and InstallPlans of those that were installed or updated meanwhile",
		"annotations " + api.Prefix + "* that people have set stay; OLM does not look at them",
		"status is OLM's to write again",
	}
	return p
}

// replaced records which InstallPlans are missing that were pending at the takeover. They are not restored.
// Their replacements have the same content, and OLM would have two plans.
func (p *Plan) replaced(plans []string, live inventory) {
	gone := slices.DeleteFunc(slices.Clone(plans), func(name string) bool { return live["InstallPlan "+name] != nil })
	if len(gone) > 0 {
		p.Left = append(p.Left, "InstallPlans that waited for approval, or were under way, when it was taken over are not made again; those that were made in their place stay, with the same content and other names: "+strings.Join(gone, ", "))
	}
}

// starting returns the text about the start of a Deployment of OLM.
func starting(r *Rival) string {
	if r.Replicas == 0 {
		return fmt.Sprintf("take the mark off Deployment %s/%s, which stays at 0 replicas, as before", r.Namespace, r.Name)
	}
	return fmt.Sprintf("scale Deployment %s/%s to %d replica%s, as before", r.Namespace, r.Name, r.Replicas, plural(int(r.Replicas)))
}

// describe returns a text with the number of changes to objects.
func describe(operations []Operation) string {
	count := map[Verb]int{}
	for _, o := range operations {
		count[o.Verb]++
	}
	return fmt.Sprintf("make %d objects again, put %d back as they were, delete %d that OLM does not make, and take our marks off %d",
		count[Make], count[Replace], count[Remove], count[Strip])
}

// PlanBack returns the plan of a handback.
func (m *Mover) PlanBack(ctx context.Context) (Plan, error) {
	record, elsewhere, err := m.known(ctx)
	if err != nil {
		return Plan{}, err
	}
	if elsewhere != "" {
		return Plan{Verdict: Blocked, Blockers: []string{fmt.Sprintf("the record of the take-over is in namespace %s; hand back with: --supervisor-namespace %s", elsewhere, elsewhere)}}, nil
	}
	if record == nil {
		return NewHandBack(nil, nil, nil), nil
	}
	dismissed, err := m.supervisors(ctx)
	if err != nil {
		return Plan{}, err
	}
	operations, live, err := m.operations(ctx, record)
	if err != nil {
		return Plan{}, err
	}
	p := NewHandBack(record, dismissed, operations)
	p.replaced(record.Plans, live)
	lost, err := NewRecords(m.Client, m.Namespace).lost(ctx, record)
	if err != nil {
		return Plan{}, err
	}
	p.Risks = losses(m.Namespace, lost)
	if record.Phase == "" {
		p.Risks = append(p.Risks, fmt.Sprintf("ConfigMap %s/%s, the record of the take-over, is gone: OLM's replicas are taken from the labels %s of its Deployments; of what OLM had made, %d ConfigMaps are left to put it back from",
			m.Namespace, RecordName, api.LabelTakenOver, record.Images))
	}
	return p, nil
}

// known returns the record. If it is missing, the labels of OLM's Deployments show how many replicas they had,
// which is enough to start OLM. Such a record has no phase. elsewhere is the namespace of the record if it
// differs from that of the supervisors.
func (m *Mover) known(ctx context.Context) (record *Record, elsewhere string, err error) {
	record, _, err = NewRecords(m.Client, m.Namespace).read(ctx)
	if err != nil || record != nil {
		return record, "", err
	}
	var list corev1.ConfigMapList
	if err := m.Client.List(ctx, &list, client.HasLabels{api.LabelRecord}); err != nil {
		return nil, "", fmt.Errorf("looking for the record of a take-over in all namespaces: %w", err)
	}
	images := 0
	for i := range list.Items {
		switch cm := &list.Items[i]; {
		case cm.Namespace == m.Namespace:
			images = max(images, chunkNumber(cm.Name)+1)
		case cm.Labels[api.LabelRecord] == "record":
			return nil, cm.Namespace, nil
		}
	}
	found, err := rival.NewSentry(m.Config).LookFully(ctx)
	if err != nil {
		return nil, "", err //nolint:wrapcheck // says what was looked for
	}
	for i := range found.Workloads {
		w := &found.Workloads[i]
		if !w.TakenOver {
			continue
		}
		if record == nil {
			record = &Record{Begun: m.Clock.Now().UTC().Truncate(time.Second), Images: images}
		}
		record.Rivals = append(record.Rivals, Rival{Namespace: w.Namespace, Name: w.Name, Replicas: w.Had(), Image: w.Image})
	}
	return record, "", nil
}

// mark sets the phase HandingBack in the record, so that supervisors end. It recreates a missing record.
func (m *Mover) mark(ctx context.Context) error {
	record, _, err := m.known(ctx)
	if err != nil {
		return err
	}
	if record == nil || record.Phase != "" {
		return m.change(ctx, func(r *Record) { r.Phase = HandingBack })
	}
	record.Phase = HandingBack
	return NewRecords(m.Client, m.Namespace).write(ctx, record, nil)
}

// operations reads the live objects, and compares them with the recorded ones.
func (m *Mover) operations(ctx context.Context, record *Record) ([]Operation, inventory, error) {
	images, err := NewRecords(m.Client, m.Namespace).load(ctx, record.Images)
	if err != nil {
		return nil, nil, err
	}
	live := inventory{}
	var need rights
	for _, gvk := range slices.Concat(imaged(), ours()) {
		list, err := listed(ctx, m.Client, gvk)
		if need.pass(err) != nil {
			return nil, nil, err
		}
		for _, o := range list {
			live[keyOf(o)] = o
		}
	}
	for _, gvk := range marksOn() {
		list, err := marksOf(ctx, m.Client, gvk)
		if need.pass(err) != nil {
			return nil, nil, err
		}
		for _, o := range list {
			live[keyOf(o)] = o
		}
	}
	if err := need.err(); err != nil {
		return nil, nil, err
	}
	return restoration(images, live), live, nil
}

// supervisors returns the names of the Deployments of supervisors in the namespace that have replicas.
func (m *Mover) supervisors(ctx context.Context) ([]string, error) {
	var list appsv1.DeploymentList
	if err := m.Client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingLabels{labelSupervisor: api.LeaseName}); err != nil {
		return nil, fmt.Errorf("looking for the Deployment of the supervisors: %w", err)
	}
	var names []string
	for i := range list.Items {
		if ptr.Deref(list.Items[i].Spec.Replicas, 1) > 0 {
			names = append(names, list.Items[i].Namespace+"/"+list.Items[i].Name)
		}
	}
	return names, nil
}

// Back hands back a cluster. Like Run, it may be interrupted and repeated.
func (m *Mover) Back(ctx context.Context) error {
	return m.pursue(ctx, "handing back", m.PlanBack, m.undo)
}

func (m *Mover) undo(ctx context.Context, step Step) error {
	key := client.ObjectKey{Namespace: step.Namespace, Name: step.Name}
	switch step.Action {
	case Mark:
		return m.mark(ctx)
	case Dismiss:
		return m.rescale(ctx, key, 0, nil)
	case Release:
		return m.released(ctx)
	case Restore:
		return m.restore(ctx)
	case Start:
		return client.IgnoreNotFound(m.rescale(ctx, key, step.Replicas, map[string]any{api.LabelTakenOver: nil}))
	case Forget:
		return m.forget(ctx)
	default:
		return fmt.Errorf("unknown action %q", step.Action)
	}
}

func (m *Mover) rescale(ctx context.Context, key client.ObjectKey, replicas int32, labels map[string]any) error {
	d := &appsv1.Deployment{}
	if err := m.Client.Get(ctx, key, d); err != nil {
		return fmt.Errorf("reading Deployment %s: %w", key, err)
	}
	return m.scale(ctx, d, replicas, labels)
}

// released waits until no supervisor leads: the Lease is released, or expires without a renewal.
func (m *Mover) released(ctx context.Context) error {
	var (
		version string
		since   time.Time
		begun   = m.Clock.Now()
	)
	for {
		lease := &coordinationv1.Lease{}
		err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: api.LeaseName}, lease)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading Lease %s/%s: %w", m.Namespace, api.LeaseName, err)
		}
		if lease.ResourceVersion != version {
			version, since = lease.ResourceVersion, m.Clock.Now()
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		switch {
		case holder == "", m.Clock.Since(since) > duration+time.Second:
			return nil
		case m.Clock.Since(begun) > gonePatience:
			return fmt.Errorf("supervisor %s still holds Lease %s/%s after %s; stop it and begin again", holder, m.Namespace, api.LeaseName, gonePatience)
		}
		if err := m.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits for a moment.
func (m *Mover) pause(ctx context.Context) error {
	select {
	case <-m.Clock.After(goneDelay):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // the caller's own
	}
}

// restore restores objects. It removes replicas of this project after the restored pods serve, or after a
// timeout.
func (m *Mover) restore(ctx context.Context) error {
	record, _, err := NewRecords(m.Client, m.Namespace).read(ctx)
	if err != nil || record == nil {
		return err
	}
	operations, _, err := m.operations(ctx, record)
	if err != nil {
		return err
	}
	waited := false
	for _, o := range operations {
		if o.Verb == Remove && !waited {
			waited = true
			if err := m.serve(ctx, operations); err != nil {
				return err
			}
		}
		if err := m.write(ctx, o); err != nil {
			return fmt.Errorf("%s %s %s/%s: %w", strings.ToLower(string(o.Verb)), o.Kind, o.Namespace, o.Name, err)
		}
	}
	return nil
}

func (m *Mover) write(ctx context.Context, o Operation) error {
	switch o.Verb {
	case Make:
		err := m.Client.Create(ctx, o.want, client.FieldOwner(fieldOwner))
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err //nolint:wrapcheck // wrapped by the caller
	case Replace:
		return m.Client.Update(ctx, o.want, client.FieldOwner(fieldOwner)) //nolint:wrapcheck // wrapped by the caller
	case Strip:
		//nolint:wrapcheck // wrapped by the caller
		return client.IgnoreNotFound(m.Client.Patch(ctx, o.want,
			client.MergeFromWithOptions(o.live, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner)))
	case Remove:
		uid := o.live.GetUID()
		err := m.Client.Delete(ctx, o.live, client.Preconditions{UID: &uid}, client.PropagationPolicy("Foreground"))
		return client.IgnoreNotFound(err) //nolint:wrapcheck // wrapped by the caller
	default:
		return fmt.Errorf("unknown verb %q", o.Verb)
	}
}

// servePatience is how long restored pods of catalogs may take to serve. After that, the catalogs are left to
// OLM, which starts other pods.
const servePatience = time.Minute

// serve waits until the restored pods serve.
func (m *Mover) serve(ctx context.Context, operations []Operation) error {
	begun := m.Clock.Now()
	for _, o := range operations {
		if o.Verb != Make || o.Kind != "Pod" {
			continue
		}
		for {
			pod := &corev1.Pod{}
			err := m.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, pod)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("reading pod %s/%s: %w", o.Namespace, o.Name, err)
			}
			if err != nil || ready(pod) || m.Clock.Since(begun) > servePatience {
				break
			}
			if err := m.pause(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// forget deletes the record. The ConfigMap that shows its existence is deleted last.
func (m *Mover) forget(ctx context.Context) error {
	records := NewRecords(m.Client, m.Namespace)
	record, cm, err := records.read(ctx)
	if err != nil || record == nil {
		return err
	}
	// A run that continues after an interruption must not look for the deleted chunks.
	if record.Images > 0 {
		record.Images = 0
		if err := records.write(ctx, record, cm); err != nil {
			return err
		}
	}
	var problems []error
	var list corev1.ConfigMapList
	if err := m.Client.List(ctx, &list, client.InNamespace(m.Namespace), client.MatchingLabels{api.LabelRecord: "images"}); err != nil {
		return fmt.Errorf("looking for the record: %w", err)
	}
	for i := range list.Items {
		problems = append(problems, client.IgnoreNotFound(m.Client.Delete(ctx, &list.Items[i])))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("deleting the record: %w", err)
	}
	if err := client.IgnoreNotFound(m.Client.Delete(ctx, cm)); err != nil {
		return fmt.Errorf("deleting the record: %w", err)
	}
	return nil
}
