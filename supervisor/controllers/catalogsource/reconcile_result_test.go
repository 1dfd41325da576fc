package catalogsource

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// TestDeriveHosted derives the status of hosted catalogs.
func TestDeriveHosted(t *testing.T) {
	const address = "shop.olm.svc:50051"
	at := func(minute int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)) }
	ready := catalogs.State{Address: address, Connectivity: "READY", LastConnect: at(3).Time, Snapshot: &catalogs.Snapshot{}}
	service := &operatorsv1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: at(1), ServiceName: "shop", ServiceNamespace: "olm", Port: "50051"}
	connected := &operatorsv1alpha1.GRPCConnectionState{Address: address, LastObservedState: "READY", LastConnectTime: at(3)}
	available := metav1.Condition{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, Reason: api.ReasonReplicasServe, Message: "2 of 2"}
	shown := available
	shown.LastTransitionTime = at(9)
	failing := reconcileResult{created: at(1)}.merge(serverFailure(errors.New("it is taken; delete it"))).merge(serverProblem(errors.New("a consequence")))
	const failure = "couldn't ensure registry server - it is taken; delete it"
	for _, tt := range []struct {
		reason string
		source *operatorsv1alpha1.CatalogSource
		before operatorsv1alpha1.CatalogSourceStatus
		h      reconcileResult
		state  catalogs.State
		want   operatorsv1alpha1.CatalogSourceStatus
	}{
		{reason: "nothing yet", source: shop()},
		{
			reason: "all well", source: shop(), h: reconcileResult{created: at(1), conditions: []metav1.Condition{available}}, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connected, Conditions: []metav1.Condition{shown}},
		},
		{
			reason: "the first failure comes before the state of the connection", source: shop(), h: failing,
			state: catalogs.State{Address: address, Connectivity: "READY", LastConnect: at(3).Time, Err: errors.New("broken")},
			want:  operatorsv1alpha1.CatalogSourceStatus{Reason: "RegistryServerError", Message: failure, RegistryServiceStatus: service, GRPCConnectionState: connected},
		},
		{
			reason: "content that cannot be read", source: shop(), h: reconcileResult{created: at(1)},
			state: catalogs.State{Address: address, Connectivity: "TRANSIENT_FAILURE", LastConnect: at(3).Time, Err: errors.New("broken")},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "RegistryServerError", Message: "the catalog's content could not be read: broken", RegistryServiceStatus: service,
				GRPCConnectionState: &operatorsv1alpha1.GRPCConnectionState{Address: address, LastObservedState: "TRANSIENT_FAILURE", LastConnectTime: at(3)},
			},
		},
		{
			reason: "pods that are ready and cannot be reached", source: shop(), h: reconcileResult{created: at(1), conditions: []metav1.Condition{available}},
			state: catalogs.State{Address: address, Connectivity: "TRANSIENT_FAILURE", Err: errors.New("i/o timeout")},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "RegistryServerError",
				Message: "the catalog's content could not be read: i/o timeout; its pods are ready: " +
					"check that NetworkPolicies allow the supervisor to reach them at port 50051, and that the supervisor runs in the pod network",
				RegistryServiceStatus: service, Conditions: []metav1.Condition{shown},
				GRPCConnectionState: &operatorsv1alpha1.GRPCConnectionState{Address: address, LastObservedState: "TRANSIENT_FAILURE"},
			},
		},
		{
			reason: "nothing answers yet", source: shop(), h: reconcileResult{created: at(1), starting: true},
			state: catalogs.State{Address: address, Connectivity: "TRANSIENT_FAILURE", LastConnect: at(3).Time, Err: errors.New("refused")},
			want: operatorsv1alpha1.CatalogSourceStatus{
				RegistryServiceStatus: service,
				GRPCConnectionState:   &operatorsv1alpha1.GRPCConnectionState{Address: address, LastObservedState: "TRANSIENT_FAILURE", LastConnectTime: at(3)},
			},
		},
		{
			reason: "nothing answers any more", source: shop(), h: reconcileResult{created: at(1), starting: true},
			state: catalogs.State{Address: address, Connectivity: "TRANSIENT_FAILURE", LastConnect: at(3).Time, Err: errors.New("refused"), Snapshot: &catalogs.Snapshot{}},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "RegistryServerError", Message: "the catalog's content could not be read: refused; using the last known content",
				RegistryServiceStatus: service,
				GRPCConnectionState:   &operatorsv1alpha1.GRPCConnectionState{Address: address, LastObservedState: "TRANSIENT_FAILURE", LastConnectTime: at(3)},
			},
		},
		{
			reason: "polled", source: polling("10m"), h: reconcileResult{created: at(1), polled: at(7).Add(time.Millisecond)}, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connected, LatestImageRegistryPoll: new(at(7))},
		},
		{
			reason: "polled before", source: polling("10m"), h: reconcileResult{created: at(1), polled: at(7).Time}, state: ready,
			before: operatorsv1alpha1.CatalogSourceStatus{LatestImageRegistryPoll: new(at(8))},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connected, LatestImageRegistryPoll: new(at(8))},
		},
		{
			reason: "polled by a clock that is ahead", source: polling("10m"), h: reconcileResult{created: at(1), polled: at(7).Time}, state: ready,
			before: operatorsv1alpha1.CatalogSourceStatus{LatestImageRegistryPoll: new(at(60 * 24))},
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connected, LatestImageRegistryPoll: new(at(7))},
		},
		{
			reason: "bad interval", source: polling("-1s"), h: reconcileResult{created: at(1)}, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason:                "InvalidIntervalError",
				Message:               `error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: "-1s" is not above zero`,
				RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "number", source: shop(annotated(api.AnnotationReplicas, "many")), h: reconcileResult{created: at(1)}, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason:                "SpecInvalidError",
				Message:               `annotation chandlery.dev/replicas is "many", and the default is used instead; set it to a whole number from 1 to 32`,
				RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "both", source: shop(func(s *operatorsv1alpha1.CatalogSource) { s.Spec.Address = "here:1" }), h: reconcileResult{created: at(1)}, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason:                "SpecInvalidError",
				Message:               "spec.image and spec.address are both set; the image is run and the address here:1 is not used: remove one of them",
				RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "ConfigMap and address", h: reconcileResult{created: at(1)}, state: ready,
			source: shop(func(s *operatorsv1alpha1.CatalogSource) {
				s.Spec = operatorsv1alpha1.CatalogSourceSpec{SourceType: "internal", ConfigMap: "lamps", Address: "here:1"}
			}),
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "SpecInvalidError",
				Message: "spec.configMap and spec.address are both set; the ConfigMap is served and the address here:1 is not used: " +
					"remove spec.address or, to use it, set spec.sourceType to grpc and remove spec.configMap",
				RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "a Secret that is not used", source: shop(), h: reconcileResult{created: at(1), ineffectiveSetting: "spec.secrets names nothing"}, state: ready,
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "SpecInvalidError", Message: "spec.secrets names nothing", RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "there never was anything to connect to", source: shop(), h: reconcileResult{reason: "ConfigMapError", problem: "it does not exist"},
			state: catalogs.State{Address: address, Connectivity: "CONNECTING"},
			want:  operatorsv1alpha1.CatalogSourceStatus{Reason: "ConfigMapError", Message: "it does not exist"},
		},
		{
			reason: "a directory outside", h: reconcileResult{created: at(1)}, state: ready,
			source: shop(config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "../../../etc"}})),
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason:                "SpecInvalidError",
				Message:               `spec.grpcPodConfig.extractContent.catalogDir is "../../../etc", and /etc is used instead; write an absolute path without ..`,
				RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "a relative directory", h: reconcileResult{created: at(1)}, state: ready,
			source: shop(config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "configs"}})),
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason:                "SpecInvalidError",
				Message:               `spec.grpcPodConfig.extractContent.catalogDir is "configs", and /configs is used instead; write an absolute path without ..`,
				RegistryServiceStatus: service, GRPCConnectionState: connected,
			},
		},
		{
			reason: "a usual directory", h: reconcileResult{created: at(1)}, state: ready,
			source: shop(config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{CatalogDir: "/configs/"}})),
			want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service, GRPCConnectionState: connected},
		},
		{
			reason: "the spec became invalid", source: shop(func(s *operatorsv1alpha1.CatalogSource) { s.Spec.SourceType, s.Generation = "helm", 2 }),
			before: operatorsv1alpha1.CatalogSourceStatus{
				RegistryServiceStatus: service, GRPCConnectionState: connected,
				Conditions: []metav1.Condition{shown, {Type: api.ConditionProgressing, Status: metav1.ConditionFalse, Reason: api.ReasonRolledOut, LastTransitionTime: at(2)}},
			},
			want: operatorsv1alpha1.CatalogSourceStatus{
				Reason: "SpecInvalidError", Message: "unknown sourcetype: helm",
				Conditions: []metav1.Condition{
					{
						Type: api.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "SpecInvalid", ObservedGeneration: 2, LastTransitionTime: at(9),
						Message: "the catalog is not used while the spec is invalid; its running replicas are not changed",
					},
					{
						Type: api.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "SpecInvalid", ObservedGeneration: 2, LastTransitionTime: at(2),
						Message: "nothing is changed while the spec is invalid",
					},
				},
			},
		},
		{
			reason: "it was at an address before", source: shop(), h: reconcileResult{created: at(1)}, state: catalogs.State{Address: "here:1"},
			before: operatorsv1alpha1.CatalogSourceStatus{
				RegistryServiceStatus: &operatorsv1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: at(0)},
				GRPCConnectionState:   &operatorsv1alpha1.GRPCConnectionState{Address: "here:1", LastObservedState: "READY"},
			},
			want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: service},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			tt.source.Status = tt.before
			got := deriveStatus(tt.source, tt.state, true, &tt.h, at(9))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			tt.source.Status = got
			if diff := cmp.Diff(got, deriveStatus(tt.source, tt.state, true, &tt.h, at(15))); diff != "" {
				t.Errorf("nothing happened and the status changed:\n%s", diff)
			}
		})
	}
}
