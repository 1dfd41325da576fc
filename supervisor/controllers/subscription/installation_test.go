package subscription

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandlery/chandlery/supervisor/api"
)

const (
	succeeded  = operatorsv1alpha1.CSVPhaseSucceeded
	pending    = operatorsv1alpha1.CSVPhasePending
	installing = operatorsv1alpha1.CSVPhaseInstalling
	replacing  = operatorsv1alpha1.CSVPhaseReplacing
	failed     = operatorsv1alpha1.CSVPhaseFailed
)

// start is the creation time of the first objects.
var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) metav1.Time {
	return metav1.NewTime(start.Add(time.Duration(minutes) * time.Minute))
}

func subscription(name, pkg string, changes ...func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, UID: types.UID("uid-" + name)},
		Spec:       &operatorsv1alpha1.SubscriptionSpec{CatalogSource: "shop", CatalogSourceNamespace: "olm", Package: pkg, Channel: "stable"},
	}
	for _, change := range changes {
		change(sub)
	}
	return sub
}

func manual(sub *operatorsv1alpha1.Subscription) {
	sub.Spec.InstallPlanApproval = operatorsv1alpha1.ApprovalManual
}

func knows(current, installed string) func(*operatorsv1alpha1.Subscription) {
	return func(sub *operatorsv1alpha1.Subscription) {
		sub.Status.CurrentCSV, sub.Status.InstalledCSV, sub.Status.LastUpdated = current, installed, at(1)
	}
}

func version(name, pkg string, phase operatorsv1alpha1.ClusterServiceVersionPhase, changes ...func(*operatorsv1alpha1.ClusterServiceVersion)) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: name, CreationTimestamp: at(0)}}
	if pkg != "" {
		csv.Annotations = map[string]string{api.AnnotationProperties: `{"properties":[{"type":"other","value":1},{"type":"olm.package","value":{"packageName":"` + pkg + `","version":"1.0.0"}}]}`}
	}
	csv.Status.Phase = phase
	for _, change := range changes {
		change(csv)
	}
	return csv
}

func replaces(name string) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Spec.Replaces = name }
}

func made(minute int) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.CreationTimestamp = at(minute) }
}

func once(phase operatorsv1alpha1.ClusterServiceVersionPhase) func(*operatorsv1alpha1.ClusterServiceVersion) {
	return func(csv *operatorsv1alpha1.ClusterServiceVersion) {
		csv.Status.Conditions = append(csv.Status.Conditions, operatorsv1alpha1.ClusterServiceVersionCondition{Phase: phase})
	}
}

func TestInstallationOf(t *testing.T) {
	type list = []*operatorsv1alpha1.ClusterServiceVersion
	for _, tt := range []struct {
		reason             string
		sub                *operatorsv1alpha1.Subscription
		csvs               list
		current, installed string
		settled            bool
	}{
		{reason: "nothing is there", sub: subscription("my", "lamp"), settled: true},
		{reason: "a status that was lost is found again", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", succeeded)}, current: "lamp.v1", installed: "lamp.v1", settled: true},
		{reason: "other packages do not count", sub: subscription("my", "lamp"), csvs: list{version("fan.v1", "fan", succeeded)}, settled: true},
		{reason: "the status serves versions without record", sub: subscription("my", "lamp", knows("lamp.v1", "")), csvs: list{version("lamp.v1", "", succeeded)}, current: "lamp.v1", installed: "lamp.v1", settled: true},
		{reason: "the record wins over the status", sub: subscription("my", "lamp", knows("fan.v1", "fan.v1")), csvs: list{version("fan.v1", "fan", succeeded)}, settled: true},
		{reason: "a first install is under way", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", installing)}, current: "lamp.v1"},
		{reason: "an update is under way", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", pending, replaces("lamp.v1"))}, current: "lamp.v2", installed: "lamp.v1"},
		{reason: "the update is done, what it replaced not yet gone", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", replacing), version("lamp.v2", "lamp", succeeded, replaces("lamp.v1"))}, current: "lamp.v2", installed: "lamp.v2", settled: true},
		{reason: "failed after success is still installed", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", failed, once(succeeded), once(failed))}, current: "lamp.v1", installed: "lamp.v1"},
		{reason: "failed without success is not", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", failed, once(failed))}, current: "lamp.v1"},
		{reason: "of two unreplaced versions the one that was worked on counts", sub: subscription("my", "lamp", knows("lamp.v1", "")), csvs: list{version("lamp.v1", "lamp", succeeded), version("lamp.v2", "lamp", succeeded, made(1))}, current: "lamp.v1", installed: "lamp.v1", settled: true},
		{reason: "of two unreplaced versions the newest counts", sub: subscription("my", "lamp"), csvs: list{version("lamp.v2", "lamp", succeeded), version("lamp.v1", "lamp", succeeded, made(1))}, current: "lamp.v1", installed: "lamp.v1", settled: true},
		{reason: "of two unreplaced versions of one age the last by name", sub: subscription("my", "lamp"), csvs: list{version("lamp.v2", "lamp", succeeded), version("lamp.v1", "lamp", succeeded)}, current: "lamp.v2", installed: "lamp.v2", settled: true},
		{reason: "versions that replace each other are replaced", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", succeeded, replaces("lamp.v2")), version("lamp.v2", "lamp", succeeded, replaces("lamp.v1"))}, settled: true},
		{reason: "a version that names itself is not replaced", sub: subscription("my", "lamp"), csvs: list{version("lamp.v1", "lamp", pending, replaces("lamp.v1"))}, current: "lamp.v1"},
	} {
		got := present(tt.sub, tt.csvs)
		if nameOf(got.current) != tt.current || nameOf(got.installed) != tt.installed || got.settled() != tt.settled {
			t.Errorf("current %q, installed %q, settled %v; want %q, %q, %v: %s", nameOf(got.current), nameOf(got.installed), got.settled(), tt.current, tt.installed, tt.settled, tt.reason)
		}
	}
}

// present returns the versions that a Subscription has.
func present(sub *operatorsv1alpha1.Subscription, csvs []*operatorsv1alpha1.ClusterServiceVersion) installation {
	c := newPackageIndex(&namespaceState{subscriptions: []*operatorsv1alpha1.Subscription{sub}, versions: csvs, properties: &propertyCache{}})
	return installationOf(sub, c.versionsOf(csvs, sub.Spec.Package))
}

func nameOf(csv *operatorsv1alpha1.ClusterServiceVersion) string {
	if csv == nil {
		return ""
	}
	return csv.Name
}

// FuzzReadProperties reads an annotation that any client may write.
func FuzzReadProperties(f *testing.F) {
	for _, text := range []string{"", "null", "[]", `{"properties":null}`, `{"properties":[{"type":"olm.package","value":7}]}`, `{"properties":[{"type":"olm.package","value":{"packageName":"lamp"}}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		csv := version("lamp.v1", "", succeeded)
		csv.Annotations = map[string]string{api.AnnotationProperties: text}
		readProperties(csv)
	})
}
