package catalogsource

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

// protocol is the only protocol of catalogs.
const protocol = "grpc"

// derive returns the status of a CatalogSource. It combines the validity of the spec, the result of
// running the catalog, and the state of the connection. followed is false if there is no connection
// yet. Fields that derive does not set keep their values.
func derive(source *operatorsv1alpha1.CatalogSource, state catalogs.State, followed bool, h *hosted, now metav1.Time) operatorsv1alpha1.CatalogSourceStatus {
	status := *source.Status.DeepCopy()
	status.Reason, status.Message = catalogs.SpecProblem(source)
	if status.Message != "" {
		status.GRPCConnectionState = nil
		status.RegistryServiceStatus = nil
		suspend(&status, source, now)
		return status
	}
	describeHosted(&status, source, h, now)
	status.RegistryServiceStatus = registryService(source, h, now)
	address := catalogs.Address(source)
	if shown := status.GRPCConnectionState; shown != nil && shown.Address != address {
		// The state of a connection to another address does not apply.
		status.GRPCConnectionState = nil
	}
	if followed && state.Address == address && !nowhere(&status, source, state, h) {
		describeConnection(&status, source, state, h)
	}
	if status.Message == "" {
		status.Reason, status.Message = mistake(source, h)
	}
	return status
}

// nowhere reports whether a hosted catalog has never had a Service to connect to.
func nowhere(status *operatorsv1alpha1.CatalogSourceStatus, source *operatorsv1alpha1.CatalogSource, state catalogs.State, h *hosted) bool {
	return catalogs.Hosted(source) && h.created.IsZero() && state.LastConnect.IsZero() && status.GRPCConnectionState == nil
}

// suspend sets the conditions of a hosted catalog while its spec is invalid.
func suspend(status *operatorsv1alpha1.CatalogSourceStatus, source *operatorsv1alpha1.CatalogSource, now metav1.Time) {
	for _, c := range []metav1.Condition{
		{Type: api.ConditionAvailable, Message: "the catalog is not used while the spec is invalid; its running replicas are left alone"},
		{Type: api.ConditionProgressing, Message: "nothing is changed while the spec is invalid"},
	} {
		if apimeta.FindStatusCondition(status.Conditions, c.Type) == nil {
			continue
		}
		c.Status, c.Reason, c.ObservedGeneration = metav1.ConditionFalse, api.ReasonSpecInvalid, source.Generation
		setCondition(&status.Conditions, c, now)
	}
}

// describeHosted sets the fields that describe the hosted catalog.
func describeHosted(status *operatorsv1alpha1.CatalogSourceStatus, source *operatorsv1alpha1.CatalogSource, h *hosted, now metav1.Time) {
	status.Reason, status.Message = h.reason, h.problem
	status.ConfigMapResource = h.configMap
	if interval, _ := digest.PollInterval(source); interval == 0 {
		status.LatestImageRegistryPoll = nil
	} else if !h.polled.IsZero() && isOutdated(status.LatestImageRegistryPoll, h.polled, now) {
		status.LatestImageRegistryPoll = new(metav1.NewTime(h.polled).Rfc3339Copy())
	}
	if len(h.conditions) == 0 {
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionAvailable)
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionProgressing)
	}
	for _, c := range h.conditions {
		c.ObservedGeneration = source.Generation
		setCondition(&status.Conditions, c, now)
	}
}

// isOutdated reports whether the shown poll time must be replaced by polled. A time in the future
// comes from another clock.
func isOutdated(shown *metav1.Time, polled time.Time, now metav1.Time) bool {
	return shown == nil || shown.After(now.Time) || polled.Truncate(time.Second).After(shown.Time)
}

// registryService returns where the catalog is served. For a catalog at an address, it only has the
// protocol and a creation time, which clients check.
func registryService(source *operatorsv1alpha1.CatalogSource, h *hosted, now metav1.Time) *operatorsv1alpha1.RegistryServiceStatus {
	before := source.Status.RegistryServiceStatus
	if !catalogs.Hosted(source) {
		if before != nil && before.ServiceName == "" {
			return before
		}
		return &operatorsv1alpha1.RegistryServiceStatus{Protocol: protocol, CreatedAt: now}
	}
	if h.created.IsZero() {
		return before
	}
	return &operatorsv1alpha1.RegistryServiceStatus{
		Protocol: protocol, CreatedAt: h.created, Port: strconv.Itoa(catalogs.Port),
		ServiceName: catalogs.ServiceName(source), ServiceNamespace: source.Namespace,
	}
}

// describeConnection sets the fields that describe the connection to the catalog.
func describeConnection(status *operatorsv1alpha1.CatalogSourceStatus, source *operatorsv1alpha1.CatalogSource, state catalogs.State, h *hosted) {
	if h.starting && state.Snapshot == nil {
		// While replicas start, a missing answer is expected.
		state.Err = nil
	}
	if state.Err != nil && status.Message == "" {
		status.Reason = operatorsv1alpha1.CatalogSourceRegistryServerError
		status.Message = "the catalog's content could not be read: " + state.Err.Error()
		if state.Snapshot != nil {
			status.Message += "; the last content that was read goes on being used"
		}
		status.Message += remedyOf(source, state, h)
	}
	status.GRPCConnectionState = &operatorsv1alpha1.GRPCConnectionState{
		Address:           state.Address,
		LastObservedState: state.Connectivity,
		LastConnectTime:   connectTime(status.GRPCConnectionState, state),
	}
}

// remedyOf returns the remedy for an unreachable catalog, unless the conditions contain it.
func remedyOf(source *operatorsv1alpha1.CatalogSource, state catalogs.State, h *hosted) string {
	switch {
	case state.Connectivity != connectivity.TransientFailure.String():
		return ""
	case !catalogs.Hosted(source):
		return "; check spec.address " + source.Spec.Address + " and that the catalog serves there"
	case apimeta.IsStatusConditionTrue(h.conditions, api.ConditionAvailable):
		return fmt.Sprintf("; its pods are ready: see that NetworkPolicies let the supervisor reach them at port %d, and that it runs in the pod network", catalogs.Port)
	default:
		return ""
	}
}

// mistake returns the reason and message for a setting without effect, while the catalog works.
func mistake(source *operatorsv1alpha1.CatalogSource, h *hosted) (operatorsv1alpha1.ConditionReason, string) {
	if _, problem := digest.PollInterval(source); problem != "" {
		return operatorsv1alpha1.CatalogSourceIntervalInvalidError, problem
	}
	if !catalogs.Hosted(source) {
		if problem := filterMistake(source); problem != "" {
			return operatorsv1alpha1.CatalogSourceSpecInvalidError, problem
		}
		return "", ""
	}
	if source.Spec.Address != "" && deployment.IsConfigMap(source) {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError,
			fmt.Sprintf("spec.configMap and spec.address are both set; the ConfigMap is served and the address %s is not used: remove spec.address or, to use it, set spec.sourceType to grpc and remove spec.configMap", source.Spec.Address)
	}
	if source.Spec.Address != "" {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError,
			fmt.Sprintf("spec.image and spec.address are both set; the image is run and the address %s is not used: remove one of them", source.Spec.Address)
	}
	if _, err := deployment.AskedReplicas(source); err != nil {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, err.Error()
	}
	if extract := deployment.ExtractContent(source); extract != nil && oddDir(extract.CatalogDir) {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, fmt.Sprintf(
			"spec.grpcPodConfig.extractContent.catalogDir is %q, and %s is used instead; write an absolute path without ..", extract.CatalogDir, path.Join("/", extract.CatalogDir))
	}
	if h.mistake != "" {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, h.mistake
	}
	return "", ""
}

// oddDir reports whether a directory in an image may differ from the one that is read.
func oddDir(dir string) bool {
	return dir != "" && (!path.IsAbs(dir) || slices.Contains(strings.Split(dir, "/"), ".."))
}

// connectTime returns when the connection was last established; zero before the first time. It
// stays while the connection stays ready: a new leader has its own connection, but the catalog has
// not changed. Times in the API have whole seconds.
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
