package catalogsource

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestConfigMapReference(t *testing.T) {
	before := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	now := before.Add(time.Minute)
	reference := func(version string, updated time.Time) *operatorsv1alpha1.ConfigMapResourceReference {
		return &operatorsv1alpha1.ConfigMapResourceReference{
			Namespace: "olm", Name: "goods", UID: "u", ResourceVersion: version, LastUpdateTime: metav1.NewTime(updated),
		}
	}
	found := func(version string) *metav1.PartialObjectMetadata {
		o := configMapMetadata()
		o.Namespace, o.Name, o.UID, o.ResourceVersion = "olm", "goods", "u", version
		return o
	}
	other := reference("10", before)
	other.UID = "former"
	for name, tt := range map[string]struct {
		old     *operatorsv1alpha1.ConfigMapResourceReference
		found   string
		rollout string
		want    *operatorsv1alpha1.ConfigMapResourceReference
	}{
		"First":                      {nil, "10", "", reference("10", now)},
		"Recorded":                   {reference("10", before), "10", "10", reference("10", before)},
		"OtherContent":               {reference("10", before), "11", "", reference("11", now)},
		"SameContent":                {reference("10", before), "11", "10", reference("11", before)},
		"SameContentAgain":           {reference("11", before), "12", "10", reference("12", before)},
		"RolloutNotRecorded":         {reference("10", before), "11", "11", reference("11", now)},
		"RolloutNotRecordedThenSame": {reference("10", before), "12", "11", reference("12", now)},
		"RolloutOfMoreDigits":        {reference("99", before), "100", "100", reference("100", now)},
		"UnknownRollout":             {reference("10", before), "11", "v1", reference("11", now)},
		"OtherConfigMap":             {other, "11", "10", reference("11", now)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := configMapReference(tt.old, found(tt.found), tt.rollout, now); *got != *tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
