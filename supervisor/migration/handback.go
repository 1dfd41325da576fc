package migration

import (
	"context"
	"fmt"
	"slices"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	// labelSupervisor is the label of the Deployment of the supervisors.
	labelSupervisor = "app.kubernetes.io/name"
	// readyTimeout is how long OLM's pods of catalogs may take to become ready. After that, the catalogs are left to OLM.
	readyTimeout = time.Minute
)

// Handback hands back a cluster to OLM.
type Handback struct {
	Options
}

// Plan returns the plan of a handback.
func (h *Handback) Plan(ctx context.Context) (Plan, error) {
	record, elsewhere, err := h.findRecord(ctx)
	if err != nil {
		return Plan{}, err
	}
	if elsewhere != "" {
		return Plan{Verdict: Blocked, Blockers: []string{fmt.Sprintf("the record of the takeover is in namespace %s; hand back with: --supervisor-namespace %s", elsewhere, elsewhere)}}, nil
	}
	if record == nil {
		return NewHandbackPlan(nil, nil, nil), nil
	}
	if record.Phase == "" {
		if blocker, err := missingNamespace(ctx, h.Client, h.Namespace); err != nil || blocker != "" {
			return Plan{Verdict: Blocked, Blockers: []string{blocker}}, err
		}
	}
	supervisors, err := h.supervisors(ctx)
	if err != nil {
		return Plan{}, err
	}
	operations, live, err := h.operations(ctx, record, markedKinds())
	if err != nil {
		return Plan{}, err
	}
	if record.Restored {
		operations = slices.DeleteFunc(operations, Operation.precedesStart)
	}
	p := NewHandbackPlan(record, supervisors, operations)
	p.Left = append(p.Left, replacedPlans(record.Plans, live)...)
	missing, err := h.records().missingChunks(ctx, record)
	if err != nil {
		return Plan{}, err
	}
	p.Risks = append(describeMissing(h.Namespace, missing), restarts(live)...)
	if record.Phase == "" {
		p.Risks = append(p.Risks, fmt.Sprintf("ConfigMap %s/%s, the record of the takeover, is gone: OLM's replicas are taken from the labels %s of its Deployments; %d ConfigMaps with recorded objects of OLM remain",
			h.Namespace, RecordName, api.LabelTakenOver, record.Chunks))
	}
	return p, nil
}

// Run hands back a cluster. It may be interrupted at any moment and repeated.
func (h *Handback) Run(ctx context.Context) error {
	return h.run(ctx, "handing back", h.Plan, h.runStep)
}

func (h *Handback) runStep(ctx context.Context, step Step) error {
	switch step.Action {
	case MarkHandback:
		if err := h.returnPackages(ctx); err != nil {
			return err
		}
		return h.mark(ctx)
	case ScaleDownSupervisors:
		return h.stopSupervisors(ctx, step)
	case AwaitRelease:
		return h.awaitRelease(ctx)
	case RestoreObjects:
		return h.restore(ctx)
	case RemoveLabels:
		return h.write(ctx, markedKinds(), Operation.followsStart)
	case DeleteReplicas:
		return h.write(ctx, markedKinds(), Operation.isOfCatalog)
	case ScaleUp:
		return client.IgnoreNotFound(h.scaleTo(ctx, step, step.Replicas, map[string]any{api.LabelTakenOver: nil}))
	case DeleteRecord:
		return h.deleteRecord(ctx)
	default:
		return fmt.Errorf("unknown action %q", step.Action)
	}
}

// findRecord returns the record. If it is missing, the labels of OLM's Deployments show how many replicas they
// had, which is enough to start OLM. Such a record has no phase. elsewhere is the namespace of the record if it
// differs from that of the supervisors.
func (h *Handback) findRecord(ctx context.Context) (record *Record, elsewhere string, err error) {
	record, _, err = h.records().read(ctx)
	if err != nil || record != nil {
		return record, "", err
	}
	var list corev1.ConfigMapList
	if err := h.Client.List(ctx, &list, client.HasLabels{api.LabelRecord}); err != nil {
		return nil, "", fmt.Errorf("looking for the record of a takeover in all namespaces: %w", err)
	}
	chunks := 0
	for i := range list.Items {
		switch cm := &list.Items[i]; {
		case cm.Namespace == h.Namespace:
			chunks = max(chunks, chunkNumber(cm.Name)+1)
		case cm.Labels[api.LabelRecord] == "record":
			return nil, cm.Namespace, nil
		}
	}
	found, err := competing.NewDetector(h.Config).CheckAll(ctx)
	if err != nil {
		return nil, "", err
	}
	for i := range found.Workloads {
		w := &found.Workloads[i]
		if !w.TakenOver {
			continue
		}
		if record == nil {
			record = &Record{Begun: h.Clock.Now().UTC().Truncate(time.Second), Chunks: chunks}
		}
		record.Deployments = append(record.Deployments, scaledDeployment(w))
	}
	return record, "", nil
}

// missingNamespace returns a blocker if the namespace is gone in which the record must be created again.
func missingNamespace(ctx context.Context, c client.Reader, namespace string) (string, error) {
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("namespace %s is gone, and the record of the takeover with it; create it, because a handback writes its progress there: kubectl create namespace %s", namespace, namespace), nil
	case err != nil:
		return "", fmt.Errorf("looking for namespace %s: %w", namespace, err)
	}
	return "", nil
}

// mark sets the phase HandingBack in the record, so that supervisors end. It recreates a missing record.
func (h *Handback) mark(ctx context.Context) error {
	record, _, err := h.findRecord(ctx)
	if err != nil {
		return err
	}
	if record == nil || record.Phase != "" {
		return h.records().change(ctx, func(r *Record) { r.Phase, r.Restored = HandingBack, false })
	}
	record.Phase = HandingBack
	return h.records().write(ctx, record, nil)
}

// operations compares the live objects with the recorded ones. marked are the kinds of which the metadata is read.
func (h *Handback) operations(ctx context.Context, record *Record, marked []schema.GroupVersionKind) ([]Operation, objectsByKey, error) {
	var (
		recorded, objects, metadata []*unstructured.Unstructured
		group                       errgroup.Group
	)
	group.Go(func() (err error) {
		recorded, err = h.records().loadObjects(ctx, record.Chunks)
		return err
	})
	group.Go(func() (err error) {
		objects, err = listKinds(ctx, h.Client, slices.Concat(recordedKinds(), addedKinds()), listAll)
		return err
	})
	group.Go(func() (err error) {
		metadata, err = listKinds(ctx, h.Client, marked, listMetadata)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err //nolint:wrapcheck // says what it reads
	}
	live := objectsByKey{}
	live.add(objects)
	live.add(metadata)
	return restoration(recorded, live), live, nil
}

// supervisors returns the names of the Deployments of supervisors in the namespace that have replicas.
func (h *Handback) supervisors(ctx context.Context) ([]string, error) {
	var list appsv1.DeploymentList
	if err := h.Client.List(ctx, &list, client.InNamespace(h.Namespace), client.MatchingLabels{labelSupervisor: api.LeaseName}); err != nil {
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

// stopSupervisors scales the Deployment of supervisors of a step to 0.
func (h *Handback) stopSupervisors(ctx context.Context, step Step) error {
	// Before the mark, a supervisor may have taken the API again.
	if err := h.returnPackages(ctx); err != nil {
		return err
	}
	if err := h.scaleTo(ctx, step, 0, nil); err != nil {
		return err
	}
	return h.disown(ctx, client.ObjectKey{Namespace: step.Namespace, Name: step.Name})
}

// deleteRecord deletes the record, after it has disowned the Deployments of OLM. Before the start of OLM, that would delay it.
func (h *Handback) deleteRecord(ctx context.Context) error {
	record, _, err := h.records().read(ctx)
	if err != nil {
		return err
	}
	if record != nil {
		for i := range record.Deployments {
			d := &record.Deployments[i]
			err := h.disown(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name})
			if client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return h.records().delete(ctx)
}

// awaitRelease waits until no supervisor leads: the Lease is released, or expires without a renewal.
func (h *Handback) awaitRelease(ctx context.Context) error {
	var (
		version string
		since   time.Time
		begun   = h.Clock.Now()
	)
	for {
		lease := &coordinationv1.Lease{}
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: api.LeaseName}, lease)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading Lease %s/%s: %w", h.Namespace, api.LeaseName, err)
		}
		if lease.ResourceVersion != version {
			version, since = lease.ResourceVersion, h.Clock.Now()
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		switch {
		case holder == "", h.Clock.Since(since) > duration+time.Second:
			return nil
		case h.Clock.Since(begun) > waitTimeout:
			return fmt.Errorf("supervisor %s still holds Lease %s/%s after %s; stop it and run the command again", holder, h.Namespace, api.LeaseName, waitTimeout)
		}
		if err := h.pause(ctx); err != nil {
			return err
		}
	}
}

// returnPackages returns the APIService of packages to OLM's package server in one write, while the supervisors still serve it.
// Without the labels of its owner, they do not take it again; the restoration adds these labels.
func (h *Handback) returnPackages(ctx context.Context) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: kindAPIService})
	err := h.Client.Get(ctx, client.ObjectKey{Name: "v1.packages.operators.coreos.com"}, live)
	if apierrors.IsNotFound(err) || notServed(err) || err == nil && !servesPackages(live) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the APIService of packages: %w", err)
	}
	recorded, err := h.recordedPackages(ctx, objectKey(live))
	if err != nil || recorded == nil {
		return err
	}
	want := replacement(recorded, live)
	labels := want.GetLabels()
	for _, key := range []string{api.LabelOwner, api.LabelOwnerNamespace, api.LabelOwnerKind} {
		delete(labels, key)
	}
	want.SetLabels(labels)
	return apply.Replace(ctx, h.Client, want, fieldOwner)
}

// recordedPackages returns the recorded APIService of packages. It is nil if there was none, or if OLM's package server was
// removed since.
func (h *Handback) recordedPackages(ctx context.Context, key string) (*unstructured.Unstructured, error) {
	record, _, err := h.records().read(ctx)
	if err != nil || record == nil {
		return nil, err
	}
	all, err := h.records().loadObjects(ctx, record.Chunks)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return objectKey(o) == key })
	if i < 0 {
		return nil, nil //nolint:nilnil // absence is documented
	}
	labels := all[i].GetLabels()
	version := &operatorsv1alpha1.ClusterServiceVersion{}
	err = h.Client.Get(ctx, client.ObjectKey{Namespace: labels[api.LabelOwnerNamespace], Name: labels[api.LabelOwner]}, version)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ClusterServiceVersion of OLM's package server: %w", err)
	}
	return all[i], nil
}

// restore restores objects, and records that. The replicas of catalogs serve until OLM has started, so that no wait for
// OLM's pods delays the start. Most labels that OLM does not know are removed while it starts. Of the marked kinds, only
// versions own what is restored before.
func (h *Handback) restore(ctx context.Context) error {
	versions := operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind)
	err := h.write(ctx, []schema.GroupVersionKind{versions}, Operation.precedesStart)
	if err != nil {
		return err
	}
	return h.records().change(ctx, func(r *Record) { r.Restored = true })
}

// write writes the operations that match, on objects of marked and other kinds. It waits for the pods of catalogs before it
// deletes their replicas, at most until a timeout.
func (h *Handback) write(ctx context.Context, marked []schema.GroupVersionKind, matches func(Operation) bool) error {
	record, _, err := h.records().read(ctx)
	if err != nil || record == nil {
		return err
	}
	operations, _, err := h.operations(ctx, record, marked)
	if err != nil {
		return err
	}
	operations = slices.DeleteFunc(operations, func(op Operation) bool { return !matches(op) })
	if err := h.awaitPods(ctx, operations); err != nil {
		return err
	}
	for _, batch := range batches(operations) {
		var group errgroup.Group
		group.SetLimit(parallelRequests)
		for _, op := range batch {
			group.Go(func() error {
				if err := op.write(ctx, h.Client); err != nil {
					return fmt.Errorf("%s %s %s/%s: %w", op.Verb.Text(), op.Kind, op.Namespace, op.Name, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// awaitPods waits until each catalog whose replicas are deleted has a ready pod of OLM.
func (h *Handback) awaitPods(ctx context.Context, operations []Operation) error {
	begun := h.Clock.Now()
	for _, op := range operations {
		if !op.deletesReplicas() {
			continue
		}
		catalog := client.MatchingLabels{api.LabelCatalogSource: ownerOf(op.live, operatorsv1alpha1.CatalogSourceKind).Name}
		for h.Clock.Since(begun) < readyTimeout {
			var pods corev1.PodList
			if err := h.Client.List(ctx, &pods, client.InNamespace(op.Namespace), catalog); err != nil {
				return fmt.Errorf("listing the pods of catalog %s/%s: %w", op.Namespace, op.Name, err)
			}
			if slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Labels[labelManagedBy] != managedBy && isReady(&p) }) {
				break
			}
			if err := h.pause(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
