package catalogsource

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/bundles"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

func TestConfigMapOwned(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop-uid"}}
	keeping := source.DeepCopy()
	keeping.Annotations = map[string]string{api.AnnotationKeepConfigMap: "true"}
	foreign := metav1.OwnerReference{Kind: "Secret", Name: "x", UID: "foreign", Controller: new(true)}
	before := metav1.OwnerReference{Kind: "CatalogSource", Name: "shop", UID: "former-uid"}
	ours := metav1.OwnerReference{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: "shop", UID: "shop-uid",
		Controller: new(false), BlockOwnerDeletion: new(false),
	}
	labels := map[string]string{api.LabelManaged: "false"}
	for _, tt := range []struct {
		reason       string
		source       *operatorsv1alpha1.CatalogSource
		found, after metav1.ObjectMeta
		changed      bool
	}{
		{"new", source, metav1.ObjectMeta{}, metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{ours}}, true},
		{"complete", source, metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{ours}}, metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{ours}}, false},
		{
			"the label has another value", source,
			metav1.ObjectMeta{Labels: map[string]string{api.LabelManaged: "true"}, OwnerReferences: []metav1.OwnerReference{ours}},
			metav1.ObjectMeta{Labels: map[string]string{api.LabelManaged: "true"}, OwnerReferences: []metav1.OwnerReference{ours}},
			false,
		},
		{
			"others stay", source,
			metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{foreign, before}},
			metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{foreign, before, ours}},
			true,
		},
		{"kept", keeping, metav1.ObjectMeta{}, metav1.ObjectMeta{Labels: labels}, true},
		{
			"kept from now on", keeping,
			metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{foreign, ours}},
			metav1.ObjectMeta{Labels: labels, OwnerReferences: []metav1.OwnerReference{foreign}},
			true,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			after, changed := owned(&metav1.PartialObjectMetadata{ObjectMeta: tt.found}, tt.source)
			if diff := cmp.Diff(tt.after, after.ObjectMeta); diff != "" || changed != tt.changed {
				t.Errorf("changed %v, want %v, (-want +got):\n%s", changed, tt.changed, diff)
			}
		})
	}
}

func TestOwnerWritesPause(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		reason    string
		writes    ownerWrites
		pause     time.Duration
		exhausted bool
	}{
		{"never written", ownerWrites{}, 0, false},
		{"another ConfigMap of the name", ownerWrites{configMap: "former", count: 20, at: now}, 0, false},
		{"just written", ownerWrites{configMap: "u", count: 1, at: now.Add(-10 * time.Second)}, 50 * time.Second, false},
		{"written long ago", ownerWrites{configMap: "u", count: 10, at: now.Add(-time.Hour)}, 0, false},
		{"written too often", ownerWrites{configMap: "u", count: 11, at: now.Add(-time.Hour)}, time.Minute, true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if pause, exhausted := tt.writes.pause("u", now); pause != tt.pause || exhausted != tt.exhausted {
				t.Errorf("pause %s, exhausted %v", pause, exhausted)
			}
		})
	}
}

func TestAfterUpdate(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(second int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(second) * time.Second)) }
	serves := func(revision string) servedConfigMap {
		return servedConfigMap{current: true, revision: revision, reference: &operatorsv1alpha1.ConfigMapResourceReference{LastUpdateTime: at(10)}}
	}
	ready := catalogs.State{Connectivity: "READY", Revision: "r"}
	for _, tt := range []struct {
		reason         string
		connected, now metav1.Time
		state          catalogs.State
		served         servedConfigMap
		want           metav1.Time
	}{
		{"no ConfigMap", at(5), at(20), ready, servedConfigMap{}, at(5)},
		{"connected later", at(12), at(20), ready, serves("r"), at(12)},
		{"the version is not rolled out", at(5), at(20), ready, serves(""), at(5)},
		{"the version is not read yet", at(5), at(20), ready, serves("s"), at(5)},
		{"not connected", at(5), at(20), catalogs.State{Connectivity: "CONNECTING", Revision: "r"}, serves("r"), at(5)},
		{"served without another connection", at(5), at(20), ready, serves("r"), at(11)},
		{"connected in the same second", at(10), at(20), ready, serves("r"), at(11)},
		{"the next second has not come", at(10), at(10), ready, serves("r"), at(10)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if got := afterUpdate(tt.connected, tt.state, tt.served, tt.now); !got.Equal(&tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestConnectTimeOfConfigMap checks that the time does not tell of a new version while the former content is read.
func TestConnectTimeOfConfigMap(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(second int) metav1.Time { return metav1.NewTime(begin.Add(time.Duration(second) * time.Second)) }
	served := func(current bool, newest string) servedConfigMap {
		return servedConfigMap{current: current, newest: newest, reference: &operatorsv1alpha1.ConfigMapResourceReference{LastUpdateTime: at(10)}}
	}
	for name, tt := range map[string]struct {
		before   int
		revision string
		served   servedConfigMap
		want     int
	}{
		"FormerContent":   {5, "old", served(true, "new"), 5},
		"NoNewReplica":    {5, "old", served(true, ""), 5},
		"NewContent":      {5, "new", served(true, "new"), 12},
		"NothingRead":     {5, "", served(true, "new"), 12},
		"Refused":         {5, "old", served(false, ""), 12},
		"NoConfigMap":     {5, "old", servedConfigMap{}, 12},
		"ConnectedBefore": {11, "old", served(true, ""), 12},
	} {
		t.Run(name, func(t *testing.T) {
			before := &operatorsv1alpha1.GRPCConnectionState{LastConnectTime: at(tt.before)}
			state := catalogs.State{Connectivity: "READY", Revision: tt.revision, LastConnect: at(12).Time}
			if got, want := connectTimeOfConfigMap(before, state, tt.served, at(20)), at(tt.want); !got.Equal(&want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestContentWarnings(t *testing.T) {
	source := &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm"}, Spec: operatorsv1alpha1.CatalogSourceSpec{ConfigMap: "goods"}}
	got := warningsCondition(source, bundles.Problems{{Message: "a"}, {Message: "b"}, {Message: "c"}, {Message: "d"}})
	if want := "ConfigMap olm/goods is served with problems (4): a; b; c; …"; got.Message != want {
		t.Errorf("message %q, want %q", got.Message, want)
	}
	status := func(message string, second int64) operatorsv1alpha1.CatalogSourceStatus {
		s := operatorsv1alpha1.CatalogSourceStatus{ConfigMapResource: &operatorsv1alpha1.ConfigMapResourceReference{LastUpdateTime: metav1.Unix(second, 0)}}
		if message != "" {
			s.Conditions = []metav1.Condition{{Type: api.ConditionContentWarnings, Status: metav1.ConditionTrue, Message: message}}
		}
		return s
	}
	for _, tt := range []struct {
		reason        string
		before, after operatorsv1alpha1.CatalogSourceStatus
		want          bool
	}{
		{"none", status("a", 1), status("", 2), false},
		{"the first", operatorsv1alpha1.CatalogSourceStatus{}, status("a", 1), true},
		{"the same version", status("a", 1), status("a", 1), false},
		{"another version with the same warning", status("a", 1), status("a", 2), true},
		{"another warning", status("a", 1), status("b", 1), true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if got := newWarnings(tt.before, tt.after); (got != nil) != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
