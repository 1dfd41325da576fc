package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/apply"
	"github.com/chandlery/chandlery/supervisor/migration/competing"
)

const (
	// RecordName is the name of the ConfigMap with the phase of a takeover and the number of OLM's replicas. The
	// names of the ConfigMaps with the recorded objects begin with it.
	RecordName = "chandlery-takeover"
	recordKey  = "record.json"
	fieldOwner = client.FieldOwner("chandlery-takeover")
)

// ErrRefused means that a supervisor must not work here now.
var ErrRefused = errors.New("refused")

// Phase is the phase of a takeover.
type Phase string

// The phases, in their order.
const (
	// TakingOver means that OLM is being stopped, or that its objects are being recorded.
	TakingOver Phase = "TakingOver"
	// TakenOver means that the supervisors may work.
	TakenOver Phase = "TakenOver"
	// HandingBack means that the supervisors must not work any more.
	HandingBack Phase = "HandingBack"
)

// ScaledDeployment is the previous state of a Deployment of OLM.
type ScaledDeployment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Replicas  int32  `json:"replicas"`
	Image     string `json:"image,omitempty"`
}

// Record is the record of a takeover.
type Record struct {
	Phase Phase     `json:"phase"`
	Begun time.Time `json:"begun"`
	// Deployments are those that were scaled to 0.
	Deployments []ScaledDeployment `json:"rivals"`
	// Chunks is the number of ConfigMaps with the recorded objects; 0 before they are recorded.
	Chunks int `json:"images,omitempty"`
	// Plans are the InstallPlans, as NAMESPACE/NAME, that were waiting or in progress. The supervisors recreate them
	// under other names.
	Plans []string `json:"plans,omitempty"`
	// Restored is true if a handback has restored the objects. OLM may have changed them since.
	Restored bool `json:"restored,omitempty"`
}

// is reports whether there is a record in a phase.
func (r *Record) is(phase Phase) bool { return r != nil && r.Phase == phase }

// find returns the record of a Deployment; nil for none.
func (r *Record) find(w *competing.Workload) *ScaledDeployment {
	if r == nil {
		return nil
	}
	for i := range r.Deployments {
		if known := &r.Deployments[i]; known.Namespace == w.Namespace && known.Name == w.Name {
			return known
		}
	}
	return nil
}

// begin starts a takeover from Deployments. Objects that were recorded before one of them worked again are
// outdated, so they have to be recorded again, even if the takeover is interrupted before.
func (r *Record) begin(workloads []competing.Workload) {
	r.Phase, r.Restored = TakingOver, false
	for i := range workloads {
		w := &workloads[i]
		if w.Replicas > 0 || r.find(w) == nil {
			r.Chunks, r.Plans = 0, nil
		}
		r.add(w)
	}
}

// add records the number of replicas of a Deployment. A stopped one keeps its recorded number, or the number
// in its label. For one that was started again, the latest number is recorded.
func (r *Record) add(w *competing.Workload) {
	known := r.find(w)
	switch {
	case known == nil:
		r.Deployments = append(r.Deployments, scaledDeployment(w))
	case w.Replicas > 0:
		known.Replicas, known.Image = w.Replicas, w.Image
	}
}

// workloads returns the namespaces and names of the Deployments.
func (r *Record) workloads() []competing.Workload {
	all := make([]competing.Workload, 0, len(r.Deployments))
	for i := range r.Deployments {
		all = append(all, competing.Workload{Namespace: r.Deployments[i].Namespace, Name: r.Deployments[i].Name})
	}
	return all
}

func scaledDeployment(w *competing.Workload) ScaledDeployment {
	return ScaledDeployment{Namespace: w.Namespace, Name: w.Name, Replicas: w.LastReplicas(), Image: w.Image}
}

// Records reads and writes the record of a cluster, in the namespace of the supervisors.
type Records struct {
	client    client.Client
	namespace string
}

// NewRecords returns the records in a namespace.
func NewRecords(c client.Client, namespace string) *Records {
	return &Records{client: c, namespace: namespace}
}

// Check returns an error while a takeover or a handback is incomplete.
func (r *Records) Check(ctx context.Context) error {
	record, _, err := r.read(ctx)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil || record == nil {
		return err
	}
	switch record.Phase {
	case TakingOver:
		return fmt.Errorf("%w: a takeover from OLM was begun at %s and is not finished (ConfigMap %s/%s); finish it with: kubectl chandlery migrate, or by starting supervisors with --takeover; or undo it with: kubectl chandlery migrate --back",
			ErrRefused, record.Begun.Format(time.RFC3339), r.namespace, RecordName)
	case HandingBack:
		return fmt.Errorf("%w: this cluster is being handed back to OLM (ConfigMap %s/%s); finish that with: kubectl chandlery migrate --back", ErrRefused, r.namespace, RecordName)
	case TakenOver:
	}
	return nil
}

// Exists reports whether there is a record. It returns false if the record cannot be read.
func (r *Records) Exists(ctx context.Context) bool {
	record, _, err := r.read(ctx)
	return err == nil && record != nil
}

// ReadPhase returns the phase of the takeover that is recorded in a namespace; empty if there is no record.
func ReadPhase(ctx context.Context, reader client.Reader, namespace string) (Phase, error) {
	record, _, err := loadRecord(ctx, reader, namespace)
	if err != nil || record == nil {
		return "", err
	}
	return record.Phase, nil
}

// read returns the record and its ConfigMap; nil if there is none.
func (r *Records) read(ctx context.Context) (*Record, *corev1.ConfigMap, error) {
	return loadRecord(ctx, r.client, r.namespace)
}

// loadRecord returns the record in a namespace and its ConfigMap; nil if there is none.
func loadRecord(ctx context.Context, reader client.Reader, namespace string) (*Record, *corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: RecordName}, cm)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the record of the takeover: %w", err)
	}
	record := &Record{}
	if err := json.Unmarshal([]byte(cm.Data[recordKey]), record); err != nil {
		return nil, nil, fmt.Errorf("decoding the record of the takeover, %s of ConfigMap %s/%s: %w", recordKey, cm.Namespace, cm.Name, err)
	}
	return record, cm, nil
}

// write replaces the record that was read from a ConfigMap; nil to create it.
func (r *Records) write(ctx context.Context, record *Record, cm *corev1.ConfigMap) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the record of the takeover: %w", err)
	}
	if cm == nil {
		cm = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: RecordName, Labels: map[string]string{api.LabelRecord: "record"}},
			Data:       map[string]string{recordKey: string(text)},
		}
		if err := apply.Create(ctx, r.client, cm, fieldOwner); err != nil {
			return fmt.Errorf("making the record of the takeover: %w", err)
		}
		return nil
	}
	before := cm.DeepCopy()
	cm.Data = map[string]string{recordKey: string(text)}
	// The version makes one of two concurrent takeovers start again.
	if err := apply.Patch(ctx, r.client, cm, apply.MergeFromLocked(before), fieldOwner); err != nil {
		return fmt.Errorf("writing the record of the takeover: %w", err)
	}
	return nil
}

// change changes the record.
func (r *Records) change(ctx context.Context, change func(*Record)) error {
	record, cm, err := r.read(ctx)
	if err != nil {
		return err
	}
	if record == nil {
		return fmt.Errorf("ConfigMap %s/%s, the record of the takeover, is gone", r.namespace, RecordName)
	}
	change(record)
	return r.write(ctx, record, cm)
}

// delete deletes the record, the ConfigMap with the phase last.
func (r *Records) delete(ctx context.Context) error {
	record, cm, err := r.read(ctx)
	if err != nil || record == nil {
		return err
	}
	// A run that continues after an interruption must not look for the deleted chunks.
	if record.Chunks > 0 {
		record.Chunks = 0
		if err := r.write(ctx, record, cm); err != nil {
			return err
		}
	}
	var list corev1.ConfigMapList
	if err := r.client.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabels{api.LabelRecord: "images"}); err != nil {
		return fmt.Errorf("looking for the record: %w", err)
	}
	var errs []error
	for i := range list.Items {
		errs = append(errs, client.IgnoreNotFound(apply.DeleteIf(ctx, r.client, &list.Items[i], apply.SameUID(&list.Items[i]))))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("deleting the record: %w", err)
	}
	if err := client.IgnoreNotFound(apply.DeleteIf(ctx, r.client, cm, apply.SameUID(cm))); err != nil {
		return fmt.Errorf("deleting the record: %w", err)
	}
	return nil
}
