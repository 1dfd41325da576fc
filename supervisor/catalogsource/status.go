package catalogsource

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// protocol is the only one that catalogs speak.
const protocol = "grpc"

// derive gives the status of a CatalogSource: what its spec allows, and what is
// known of the connection (followed is false when there is none yet). Fields
// that this version does not fill keep their values.
func derive(source *operatorsv1alpha1.CatalogSource, state catalogs.State, followed bool, now metav1.Time) operatorsv1alpha1.CatalogSourceStatus {
	status := *source.Status.DeepCopy()
	status.Reason, status.Message = catalogs.SpecProblem(source)
	if status.Message != "" {
		status.GRPCConnectionState = nil
		status.RegistryServiceStatus = nil
		return status
	}
	if status.RegistryServiceStatus == nil {
		// A catalog with an address has no Service; that it is served at all,
		// and since when, is what clients look for here.
		status.RegistryServiceStatus = &operatorsv1alpha1.RegistryServiceStatus{Protocol: protocol, CreatedAt: now}
	}
	address := source.Spec.Address
	if shown := status.GRPCConnectionState; shown != nil && shown.Address != address {
		// What was known of a connection to elsewhere says nothing of this one.
		status.GRPCConnectionState = nil
	}
	if !followed || state.Address != address {
		return status
	}
	if state.Err != nil {
		status.Reason = operatorsv1alpha1.CatalogSourceRegistryServerError
		status.Message = "the catalog's content could not be read: " + state.Err.Error()
		switch {
		case state.Snapshot != nil:
			status.Message += "; the last content that was read goes on being used"
		case state.Connectivity == connectivity.TransientFailure.String():
			status.Message += "; check spec.address " + address + " and that the catalog serves there"
		}
	}
	status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{
		Address:           state.Address,
		LastObservedState: state.Connectivity,
		LastConnectTime:   connectTime(status.GRPCConnectionState, state),
	}
	return status
}

// connectTime is when the connection was last established; no time before the
// first one. While the connection is seen to stay, so does its time: another
// replica that leads now has a connection of its own, and nothing happened to
// the catalog. Times in the API count whole seconds.
func connectTime(before *operatorsv1alpha1.GRPCConnectionState, state catalogs.State) metav1.Time {
	if before != nil && state.LastConnect.IsZero() {
		return before.LastConnectTime
	}
	ready := connectivity.Ready.String()
	if before != nil && before.LastObservedState == ready && state.Connectivity == ready && !before.LastConnectTime.IsZero() {
		return before.LastConnectTime
	}
	return metav1.NewTime(state.LastConnect).Rfc3339Copy()
}
