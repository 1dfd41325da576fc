package catalogsource

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

func TestDerive(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(minute int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(minute) * time.Minute)) }
	connection := func(state string, since metav1.Time) *operatorsv1alpha1.GRPCConnectionState {
		return &operatorsv1alpha1.GRPCConnectionState{Address: "shop:50051", LastObservedState: state, LastConnectTime: since}
	}
	service := &operatorsv1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: at(0)}
	fresh := &operatorsv1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: at(9)}
	good := operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop:50051"}
	moved := operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "stall:50051"}
	ready := catalogs.State{Address: "shop:50051", Connectivity: "READY", LastConnect: at(3).Add(400 * time.Millisecond), Snapshot: &catalogs.Snapshot{}}
	for _, tt := range []struct {
		reason   string
		spec     operatorsv1alpha1.CatalogSourceSpec
		before   operatorsv1alpha1.CatalogSourceStatus
		state    catalogs.State
		followed bool
		want     operatorsv1alpha1.CatalogSourceStatus
	}{
		{reason: "not followed yet", spec: good, want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: fresh}},
		{
			reason: "connecting for the first time", spec: good, followed: true, state: catalogs.State{Address: "shop:50051", Connectivity: "CONNECTING"},
			want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: fresh, GRPCConnectionState: connection("CONNECTING", metav1.Time{})},
		},
		{
			reason: "connected, in whole seconds", spec: good, followed: true, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: fresh, GRPCConnectionState: connection("READY", at(3))},
		},
		{
			reason: "lost: the time of the last connection stays", spec: good, followed: true, state: catalogs.State{Address: "shop:50051", Connectivity: "TRANSIENT_FAILURE"},
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(3))},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("TRANSIENT_FAILURE", at(3))},
		},
		{
			reason: "cannot be read", spec: good, followed: true,
			state: catalogs.State{Address: "shop:50051", Connectivity: "READY", LastConnect: at(3).Time, Err: errors.New("broken")},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "RegistryServerError", Message: "the catalog's content could not be read: broken",
				RegistryServiceStatus: fresh, GRPCConnectionState: connection("READY", at(3)),
			},
		},
		{
			reason: "cannot be read any more", spec: good, followed: true,
			state: catalogs.State{Address: "shop:50051", Connectivity: "READY", LastConnect: at(3).Time, Err: errors.New("broken"), Snapshot: &catalogs.Snapshot{}},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "RegistryServerError", Message: "the catalog's content could not be read: broken; using the last known content",
				RegistryServiceStatus: fresh, GRPCConnectionState: connection("READY", at(3)),
			},
		},
		{
			reason: "cannot be reached, and never could", spec: good, followed: true,
			state: catalogs.State{Address: "shop:50051", Connectivity: "TRANSIENT_FAILURE", Err: errors.New("refused")},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "RegistryServerError", Message: "the catalog's content could not be read: refused; check spec.address shop:50051 and that the catalog serves there",
				RegistryServiceStatus: fresh, GRPCConnectionState: connection("TRANSIENT_FAILURE", metav1.Time{}),
			},
		},
		{
			reason: "another replica's connection: nothing happened to the catalog", spec: good, followed: true, state: ready,
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(1))},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(1))},
		},
		{
			reason: "connected again", spec: good, followed: true, state: ready,
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("CONNECTING", at(1))},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(3))},
		},
		{
			reason: "another address, of which the store does not know yet: the old connection goes", spec: moved, followed: true, state: ready,
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(3))},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service},
		},
		{
			reason: "another address: the time of the old connection goes", spec: good, followed: true, state: catalogs.State{Address: "shop:50051", Connectivity: "CONNECTING"},
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: &operatorsv1alpha1.GRPCConnectionState{Address: "stall:50051", LastObservedState: "READY", LastConnectTime: at(1)}},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("CONNECTING", metav1.Time{})},
		},
		{
			reason: "well again: reason and message go", spec: good, followed: true, state: ready,
			before: operatorsv1alpha1.CatalogSourceStatus{Reason: "RegistryServerError", Message: "old", RegistryServiceStatus: service},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(3))},
		},
		{
			reason: "cannot be used: what was known of a connection goes", spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "odd"},
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connection("READY", at(3))},
			want:   operatorsv1alpha1.CatalogSourceStatus{Reason: "SpecInvalidError", Message: "unknown sourcetype: odd; set spec.sourceType to grpc, configmap or internal"},
		},
		{
			reason: "fields that are not ours stay", spec: good,
			before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, Conditions: []metav1.Condition{{Type: "Foreign"}}},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, Conditions: []metav1.Condition{{Type: "Foreign"}}},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			source := &operatorsv1alpha1.CatalogSource{Spec: tt.spec, Status: tt.before}
			got := deriveStatus(source, tt.state, tt.followed, &reconcileResult{}, at(9))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			source.Status = got
			if diff := cmp.Diff(got, deriveStatus(source, tt.state, tt.followed, &reconcileResult{}, at(15))); diff != "" {
				t.Errorf("nothing happened and the status changed:\n%s", diff)
			}
		})
	}
}

func TestSetConditionBoundsItsMessage(t *testing.T) {
	var conditions []metav1.Condition
	setCondition(&conditions, metav1.Condition{Type: api.ConditionAvailable, Message: strings.Repeat("x", 1<<20)}, metav1.Now())
	if got := len(conditions[0].Message); got != maxMessage {
		t.Errorf("the condition has %d bytes", got)
	}
}
