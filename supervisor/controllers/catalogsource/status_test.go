package catalogsource

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// minute returns a minute of the tests of the status.
func minute(n int) metav1.Time {
	return metav1.NewTime(time.Date(2026, time.March, 1, 12, n, 0, 0, time.UTC))
}

func connectionState(state string, since metav1.Time) *operatorsv1alpha1.GRPCConnectionState {
	return &operatorsv1alpha1.GRPCConnectionState{Address: "shop:50051", LastObservedState: state, LastConnectTime: since}
}

var (
	oldService = &operatorsv1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: minute(0)}
	newService = &operatorsv1alpha1.RegistryServiceStatus{Protocol: "grpc", CreatedAt: minute(9)}
	shopSpec   = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop:50051"}
	stallSpec  = operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "stall:50051"}
	readyState = catalogs.State{Address: "shop:50051", Connectivity: "READY", LastConnect: minute(3).Add(400 * time.Millisecond), Snapshot: &catalogs.Snapshot{}}
)

// deriveTest is a case of TestDerive.
type deriveTest struct {
	reason   string
	spec     operatorsv1alpha1.CatalogSourceSpec
	before   operatorsv1alpha1.CatalogSourceStatus
	state    catalogs.State
	followed bool
	want     operatorsv1alpha1.CatalogSourceStatus
}

// connectionTests are about the state of one connection.
var connectionTests = []deriveTest{
	{reason: "not followed yet", spec: shopSpec, want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: newService}},
	{
		reason: "connecting for the first time", spec: shopSpec, followed: true, state: catalogs.State{Address: "shop:50051", Connectivity: "CONNECTING"},
		want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: newService, GRPCConnectionState: connectionState("CONNECTING", metav1.Time{})},
	},
	{
		reason: "connected, in whole seconds", spec: shopSpec, followed: true, state: readyState,
		want: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: newService, GRPCConnectionState: connectionState("READY", minute(3))},
	},
	{
		reason: "lost: the time of the last connection stays", spec: shopSpec, followed: true, state: catalogs.State{Address: "shop:50051", Connectivity: "TRANSIENT_FAILURE"},
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("TRANSIENT_FAILURE", minute(3))},
	},
	{
		reason: "cannot be read", spec: shopSpec, followed: true,
		state: catalogs.State{Address: "shop:50051", Connectivity: "READY", LastConnect: minute(3).Time, Err: errors.New("broken")},
		want: operatorsv1alpha1.CatalogSourceStatus{
			Reason: "RegistryServerError", Message: "the catalog's content could not be read: broken",
			RegistryServiceStatus: newService, GRPCConnectionState: connectionState("READY", minute(3)),
		},
	},
	{
		reason: "cannot be read any more", spec: shopSpec, followed: true,
		state: catalogs.State{Address: "shop:50051", Connectivity: "READY", LastConnect: minute(3).Time, Err: errors.New("broken"), Snapshot: &catalogs.Snapshot{}},
		want: operatorsv1alpha1.CatalogSourceStatus{
			Reason: "RegistryServerError", Message: "the catalog's content could not be read: broken; using the last known content",
			RegistryServiceStatus: newService, GRPCConnectionState: connectionState("READY", minute(3)),
		},
	},
	{
		reason: "cannot be reached, and never could", spec: shopSpec, followed: true,
		state: catalogs.State{Address: "shop:50051", Connectivity: "TRANSIENT_FAILURE", Err: errors.New("refused")},
		want: operatorsv1alpha1.CatalogSourceStatus{
			Reason: "RegistryServerError", Message: "the catalog's content could not be read: refused; check spec.address shop:50051 and that the catalog serves there",
			RegistryServiceStatus: newService, GRPCConnectionState: connectionState("TRANSIENT_FAILURE", metav1.Time{}),
		},
	},
}

// changedConnectionTests are about a connection or a CatalogSource that has changed.
var changedConnectionTests = []deriveTest{
	{
		reason: "the time of another leader is later", spec: shopSpec, followed: true, state: readyState,
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(4))},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(4))},
	},
	{
		reason: "this supervisor connected later", spec: shopSpec, followed: true, state: readyState,
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(1))},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
	},
	{
		reason: "the shown time is in the future", spec: shopSpec, followed: true, state: readyState,
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(20))},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
	},
	{
		reason: "connected again", spec: shopSpec, followed: true, state: readyState,
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("CONNECTING", minute(1))},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
	},
	{
		reason: "another address, of which the store does not know yet: the old connection goes", spec: stallSpec, followed: true, state: readyState,
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService},
	},
	{
		reason: "another address: the time of the old connection goes", spec: shopSpec, followed: true, state: catalogs.State{Address: "shop:50051", Connectivity: "CONNECTING"},
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: &operatorsv1alpha1.GRPCConnectionState{Address: "stall:50051", LastObservedState: "READY", LastConnectTime: minute(1)}},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("CONNECTING", metav1.Time{})},
	},
	{
		reason: "well again: reason and message go", spec: shopSpec, followed: true, state: readyState,
		before: operatorsv1alpha1.CatalogSourceStatus{Reason: "RegistryServerError", Message: "old", RegistryServiceStatus: oldService},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
	},
	{
		reason: "cannot be used: what was known of a connection goes", spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "odd"},
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, GRPCConnectionState: connectionState("READY", minute(3))},
		want:   operatorsv1alpha1.CatalogSourceStatus{Reason: "SpecInvalidError", Message: "unknown sourcetype: odd"},
	},
	{
		reason: "fields that are not ours stay", spec: shopSpec,
		before: operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, Conditions: []metav1.Condition{{Type: "Foreign"}}},
		want:   operatorsv1alpha1.CatalogSourceStatus{RegistryServiceStatus: oldService, Conditions: []metav1.Condition{{Type: "Foreign"}}},
	},
}

func TestDerive(t *testing.T) {
	for _, tt := range slices.Concat(connectionTests, changedConnectionTests) {
		t.Run(tt.reason, func(t *testing.T) {
			source := &operatorsv1alpha1.CatalogSource{Spec: tt.spec, Status: tt.before}
			got := deriveStatus(source, tt.state, tt.followed, &reconcileResult{}, minute(9))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			source.Status = got
			if diff := cmp.Diff(got, deriveStatus(source, tt.state, tt.followed, &reconcileResult{}, minute(15))); diff != "" {
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

// TestImageSettingsInvalid checks that the condition is shown with one Event, and removed with its cause.
func TestImageSettingsInvalid(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	w := &statusWriter{recorder: recorder}
	available := metav1.Condition{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, Reason: api.ReasonReplicasServe}
	invalid := metav1.Condition{Type: api.ConditionImageSettingsInvalid, Status: metav1.ConditionTrue, Reason: api.ReasonInvalidFiles, Message: "registries.conf, line 3: x"}
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"}, Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Image: "shop:1"},
	}
	u := catalogs.NewObject()
	for i, step := range []struct {
		conditions []metav1.Condition
		shown      bool
		events     int
	}{
		{conditions: []metav1.Condition{available, invalid}, shown: true, events: 2},
		{conditions: []metav1.Condition{available, invalid}, shown: true},
		{conditions: []metav1.Condition{available}},
	} {
		after := deriveStatus(source, catalogs.State{}, false, &reconcileResult{conditions: step.conditions}, minute(i))
		w.emitEvents(u, source.Status, after, false)
		if shown := apimeta.FindStatusCondition(after.Conditions, api.ConditionImageSettingsInvalid) != nil; shown != step.shown || len(recorder.Events) != step.events {
			t.Errorf("%d: shown %v, %d Events", i, shown, len(recorder.Events))
		}
		for len(recorder.Events) > 0 {
			<-recorder.Events
		}
		source.Status = after
	}
}

// TestConditionsOfHostedCatalog moves a catalog to an address while the settings for its images are invalid. The conditions
// about replicas are removed.
func TestConditionsOfHostedCatalog(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "shop"}, Spec: operatorsv1alpha1.CatalogSourceSpec{SourceType: "grpc", Address: "shop.test:50051"},
	}
	invalid := metav1.Condition{Type: api.ConditionImageSettingsInvalid, Status: metav1.ConditionTrue, Reason: api.ReasonInvalidFiles, Message: "x"}
	source.Status.Conditions = []metav1.Condition{
		{Type: api.ConditionAvailable, Status: metav1.ConditionTrue}, {Type: api.ConditionProgressing, Status: metav1.ConditionFalse}, invalid,
	}
	after := deriveStatus(source, catalogs.State{}, false, &reconcileResult{conditions: []metav1.Condition{invalid}}, minute(0)).Conditions
	if len(after) != 1 || after[0].Type != invalid.Type {
		t.Errorf("%+v", after)
	}
}

func TestNextConnectionState(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	shows := func(state string, second int) *operatorsv1alpha1.GRPCConnectionState {
		return &operatorsv1alpha1.GRPCConnectionState{Address: "shop:50051", LastObservedState: state, LastConnectTime: metav1.NewTime(at(float64(second)))}
	}
	for name, tt := range map[string]struct {
		shown, current *operatorsv1alpha1.GRPCConnectionState
		lost           time.Time
		want           *operatorsv1alpha1.GRPCConnectionState
	}{
		"NeverLost":         {shows("READY", 5), shows("READY", 10), time.Time{}, shows("READY", 10)},
		"LostAndBack":       {shows("READY", 5), shows("READY", 9), at(8.7), shows("CONNECTING", 5)},
		"BackInThatSecond":  {shows("READY", 5), shows("READY", 8), at(8.2), shows("CONNECTING", 5)},
		"PassedStateShown":  {shows("CONNECTING", 5), shows("READY", 9), at(8.7), shows("READY", 9)},
		"BackAndShown":      {shows("READY", 9), shows("READY", 9), at(8.7), shows("READY", 9)},
		"StillLost":         {shows("READY", 5), shows("TRANSIENT_FAILURE", 5), at(8.7), shows("TRANSIENT_FAILURE", 5)},
		"ContentNotRead":    {shows("READY", 5), shows("READY", 5), at(8.7), shows("READY", 5)},
		"LostBeforeIt":      {shows("READY", 9), shows("READY", 12), at(8.7), shows("READY", 12)},
		"NothingShown":      {nil, shows("READY", 9), at(8.7), shows("READY", 9)},
		"TimeNotYetCurrent": {shows("READY", 5), shows("READY", 7), at(8.7), shows("READY", 7)},
	} {
		t.Run(name, func(t *testing.T) {
			got := nextConnectionState(tt.shown, tt.current, catalogs.State{Lost: tt.lost, LostTo: "CONNECTING"})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
