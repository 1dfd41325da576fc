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

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/digest"
)

// protocol is the only protocol of catalogs.
const protocol = "grpc"

// deriveStatus returns the status of a CatalogSource. It combines the validity of the spec, the result of
// running the catalog, and the state of the connection. followed is false if there is no connection
// yet. Fields that derive does not set keep their values.
func deriveStatus(
	source *operatorsv1alpha1.CatalogSource, state catalogs.State, followed bool, h *reconcileResult, now metav1.Time,
) operatorsv1alpha1.CatalogSourceStatus {
	status := *source.Status.DeepCopy()
	status.Reason, status.Message = catalogs.SpecProblem(source)
	if status.Message != "" {
		status.GRPCConnectionState, status.RegistryServiceStatus = nil, nil
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionConnectionSecured)
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionPackageManifestsIncomplete)
		status.Conditions = withConditions(status.Conditions, suspended(source), source.Generation, now)
		return status
	}
	status.Reason, status.Message, status.ConfigMapResource = h.reason, h.problem, h.configMap.reference
	status.LatestImageRegistryPoll = lastPoll(source, h, now)
	if apimeta.FindStatusCondition(h.conditions, api.ConditionAvailable) == nil {
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionAvailable)
		apimeta.RemoveStatusCondition(&status.Conditions, api.ConditionProgressing)
	}
	wanted := h.conditions
	if secured := connectionSecured(source, state, followed); secured != nil {
		wanted = append(slices.Clone(wanted), *secured)
	}
	if incomplete := packageManifestsIncomplete(source, state); incomplete != nil {
		wanted = append(slices.Clone(wanted), *incomplete)
	}
	status.Conditions = withConditions(withoutObsolete(status.Conditions, wanted), wanted, source.Generation, now)
	status.RegistryServiceStatus = registryService(source, h, now)
	address := catalogs.Address(source)
	if shown := status.GRPCConnectionState; shown != nil && shown.Address != address {
		// The state of a connection to another address does not apply.
		status.GRPCConnectionState = nil
	}
	if followed && state.Address == address && !hadNoService(source, state, h, status.GRPCConnectionState) {
		if status.Message == "" {
			status.Reason, status.Message = readProblem(source, state, h)
		}
		status.GRPCConnectionState = nextConnectionState(status.GRPCConnectionState, &operatorsv1alpha1.GRPCConnectionState{
			Address: state.Address, LastObservedState: state.Connectivity,
			LastConnectTime: connectTimeOfConfigMap(status.GRPCConnectionState, state, h.configMap, now),
		}, state)
	}
	if status.Message == "" {
		status.Reason, status.Message = ineffectiveSetting(source, h)
	}
	return status
}

// nextConnectionState returns the next state of the connection to show. If the connection was lost and is back
// since the shown state was written, that is the state in between: clients see each state. The current one follows.
func nextConnectionState(shown, current *operatorsv1alpha1.GRPCConnectionState, state catalogs.State) *operatorsv1alpha1.GRPCConnectionState {
	ready, lost := connectivity.Ready.String(), metav1.NewTime(state.Lost).Rfc3339Copy()
	if shown == nil || shown.LastObservedState != ready || current.LastObservedState != ready ||
		!lost.After(shown.LastConnectTime.Time) || lost.After(current.LastConnectTime.Time) {
		return current
	}
	return &operatorsv1alpha1.GRPCConnectionState{Address: shown.Address, LastObservedState: state.LostTo, LastConnectTime: shown.LastConnectTime}
}

// hadNoService reports whether a hosted catalog has never had a Service to connect to.
func hadNoService(source *operatorsv1alpha1.CatalogSource, state catalogs.State, h *reconcileResult, shown *operatorsv1alpha1.GRPCConnectionState) bool {
	return catalogs.Hosted(source) && h.created.IsZero() && state.LastConnect.IsZero() && shown == nil
}

// suspended returns the conditions of a catalog while its spec is invalid, as far as it has them.
func suspended(source *operatorsv1alpha1.CatalogSource) []metav1.Condition {
	all := []metav1.Condition{
		{Type: api.ConditionAvailable, Message: "the catalog is not used while the spec is invalid; its running replicas are not changed"},
		{Type: api.ConditionProgressing, Message: "nothing is changed while the spec is invalid"},
	}
	for i := range all {
		all[i].Status, all[i].Reason = metav1.ConditionFalse, api.ReasonSpecInvalid
	}
	return slices.DeleteFunc(all, func(c metav1.Condition) bool {
		return apimeta.FindStatusCondition(source.Status.Conditions, c.Type) == nil
	})
}

// lastPoll returns when the registry was last queried; nil without polling. A shown time in the future
// comes from another clock.
func lastPoll(source *operatorsv1alpha1.CatalogSource, h *reconcileResult, now metav1.Time) *metav1.Time {
	shown := source.Status.LatestImageRegistryPoll
	interval, _ := digest.PollInterval(source)
	switch {
	case interval == 0:
		return nil
	case h.polled.IsZero(), shown != nil && !shown.After(now.Time) && !h.polled.Truncate(time.Second).After(shown.Time):
		return shown
	default:
		return new(metav1.NewTime(h.polled).Rfc3339Copy())
	}
}

// registryService returns where the catalog is served. For a catalog at an address, it only has the
// protocol and a creation time, which clients check.
func registryService(source *operatorsv1alpha1.CatalogSource, h *reconcileResult, now metav1.Time) *operatorsv1alpha1.RegistryServiceStatus {
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

// readProblem returns the reason and message for content that could not be read; empty if it could. While
// replicas start, a missing answer is expected.
func readProblem(source *operatorsv1alpha1.CatalogSource, state catalogs.State, h *reconcileResult) (operatorsv1alpha1.ConditionReason, string) {
	if state.Err == nil || (h.starting && state.Snapshot == nil) {
		return "", ""
	}
	message := "the catalog's content could not be read: " + state.Err.Error()
	if state.Snapshot != nil {
		message += "; using the last known content"
	}
	return operatorsv1alpha1.CatalogSourceRegistryServerError, message + remedyOf(source, state, h)
}

// remedyOf returns the remedy for an unreachable catalog, unless the conditions contain it.
func remedyOf(source *operatorsv1alpha1.CatalogSource, state catalogs.State, h *reconcileResult) string {
	hosted, port := catalogs.Hosted(source), catalogs.Port
	if state.TLS.Encrypted {
		port = catalogs.PortTLS
	}
	switch {
	case state.Connectivity != connectivity.TransientFailure.String():
		return ""
	case hosted && apimeta.IsStatusConditionTrue(h.conditions, api.ConditionAvailable):
		return fmt.Sprintf("; its pods are ready: check that NetworkPolicies allow the supervisor to reach them at port %d, and that the supervisor runs in the pod network", port)
	case hosted:
		return ""
	case state.TLS.Problem != nil && !state.TLS.InUse:
		return "; " + state.TLS.Problem.Remedy()
	case state.TLS.Failure != nil:
		return "; " + state.TLS.Failure.Remedy()
	default:
		return "; check spec.address " + source.Spec.Address + " and that the catalog serves there"
	}
}

// ineffectiveSetting returns the reason and message for a setting without effect, while the catalog
// works.
func ineffectiveSetting(source *operatorsv1alpha1.CatalogSource, h *reconcileResult) (operatorsv1alpha1.ConditionReason, string) {
	if _, problem := digest.PollInterval(source); problem != "" {
		return operatorsv1alpha1.CatalogSourceIntervalInvalidError, problem
	}
	if _, err := api.OperatorPullSecrets(source.Annotations); err != nil {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, err.Error()
	}
	if catalogs.Hosted(source) {
		return ineffectiveSettingOfHosted(source, h)
	}
	if problem := ineffectiveFilter(source); problem != "" {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, problem
	}
	return "", ""
}

// ineffectiveSettingOfHosted does the same for a catalog that the supervisor runs.
func ineffectiveSettingOfHosted(source *operatorsv1alpha1.CatalogSource, h *reconcileResult) (operatorsv1alpha1.ConditionReason, string) {
	if _, set := source.Annotations[api.AnnotationTLS]; set {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError,
			"the annotation " + api.AnnotationTLS + " is for catalogs at spec.address; for a catalog that the supervisor runs, use " + api.AnnotationServeTLS
	}
	if source.Spec.Address != "" && catalogs.IsConfigMap(source) {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError,
			fmt.Sprintf("spec.configMap and spec.address are both set; the ConfigMap is served and the address %s is not used: remove spec.address or, to use it, set spec.sourceType to grpc and remove spec.configMap", source.Spec.Address)
	}
	if source.Spec.Address != "" {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError,
			fmt.Sprintf("spec.image and spec.address are both set; the image is run and the address %s is not used: remove one of them", source.Spec.Address)
	}
	if _, err := deployment.RequestedReplicas(source); err != nil {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, err.Error()
	}
	if extract := deployment.ExtractContent(source); extract != nil && isUnusualDir(extract.CatalogDir) {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, fmt.Sprintf(
			"spec.grpcPodConfig.extractContent.catalogDir is %q, and %s is used instead; write an absolute path without ..", extract.CatalogDir, path.Join("/", extract.CatalogDir))
	}
	if h.ineffectiveSetting != "" {
		return operatorsv1alpha1.CatalogSourceSpecInvalidError, h.ineffectiveSetting
	}
	return "", ""
}

// isUnusualDir reports whether a directory in an image may differ from the one that is read.
func isUnusualDir(dir string) bool {
	return dir != "" && (!path.IsAbs(dir) || slices.Contains(strings.Split(dir, "/"), ".."))
}

// connectTime returns since when the catalog has served its content over the current connection; zero
// before the first time. The time of another supervisor stays if it is later. A time in the future
// comes from another clock. Times in the API have whole seconds.
func connectTime(before *operatorsv1alpha1.GRPCConnectionState, state catalogs.State, now metav1.Time) metav1.Time {
	since := metav1.NewTime(state.LastConnect).Rfc3339Copy()
	switch {
	case before == nil:
		return since
	case state.LastConnect.IsZero():
		return before.LastConnectTime
	case before.LastConnectTime.After(since.Time) && !before.LastConnectTime.After(now.Time):
		return before.LastConnectTime
	default:
		return since
	}
}

// connectTimeOfConfigMap returns the connect time of a catalog. Until the newest version of its ConfigMap is read, the time
// does not become later than the update: a client would take the former content for the new one.
func connectTimeOfConfigMap(before *operatorsv1alpha1.GRPCConnectionState, state catalogs.State, served servedConfigMap, now metav1.Time) metav1.Time {
	connected := connectTime(before, state, now)
	former := served.current && state.Revision != "" && state.Revision != served.newest
	if former && before != nil && connected.After(served.reference.LastUpdateTime.Time) && !before.LastConnectTime.After(served.reference.LastUpdateTime.Time) {
		return before.LastConnectTime
	}
	return afterUpdate(connected, state, served, now)
}

// afterUpdate returns a connect time that is later than the update of the ConfigMap, if its newest
// version is served without another connection. A client that waits for this would otherwise never end.
func afterUpdate(connected metav1.Time, state catalogs.State, served servedConfigMap, now metav1.Time) metav1.Time {
	if served.revision == "" || served.revision != state.Revision || state.Connectivity != connectivity.Ready.String() {
		return connected
	}
	updated := served.reference.LastUpdateTime
	later := metav1.NewTime(updated.Add(time.Second))
	if connected.After(updated.Time) || later.After(now.Time) {
		return connected
	}
	return later
}

// maxMessage is the maximum length of a message, in bytes. Registries and container runtimes can
// return whole pages, and the API limits conditions.
const maxMessage = 4096

// setCondition sets a condition. Its transition time changes only with its status.
func setCondition(conditions *[]metav1.Condition, c metav1.Condition, now metav1.Time) {
	c.Message, c.LastTransitionTime = bundles.Clip(c.Message, maxMessage), now
	if old := apimeta.FindStatusCondition(*conditions, c.Type); old != nil && old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	apimeta.SetStatusCondition(conditions, c)
}

// withoutObsolete returns conditions without those that are removed if they are not wanted.
func withoutObsolete(conditions, wanted []metav1.Condition) []metav1.Condition {
	for _, kind := range []string{
		api.ConditionContentWarnings, api.ConditionImageSettingsInvalid, api.ConditionConnectionSecured, api.ConditionPackageManifestsIncomplete,
	} {
		if apimeta.FindStatusCondition(wanted, kind) == nil {
			apimeta.RemoveStatusCondition(&conditions, kind)
		}
	}
	return conditions
}

// withConditions returns conditions with the wanted ones, which apply to a generation.
func withConditions(conditions, wanted []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	for _, c := range wanted {
		c.ObservedGeneration = generation
		setCondition(&conditions, c, now)
	}
	return conditions
}
