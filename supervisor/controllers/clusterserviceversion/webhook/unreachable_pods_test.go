package webhook

import (
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnreachablePods counts from the first attempt of an unbroken series.
func TestUnreachablePods(t *testing.T) {
	here, there := podKey{"uid-1", "kettle", "10.0.0.1:9443"}, podKey{"uid-1", "kettle", "10.0.0.2:9443"}
	for name, tc := range map[string]struct {
		at       []int // seconds
		answered bool  // before the last attempt
		want     time.Duration
	}{
		"First":       {at: []int{0}},
		"Row":         {at: []int{0, 20, 40, 61}, want: 61 * time.Second},
		"AnswerAmong": {at: []int{0, 20, 40}, answered: true},
		"LongAgo":     {at: []int{0, 31}},
	} {
		t.Run(name, func(t *testing.T) {
			var o unreachablePods
			var got time.Duration
			for i, second := range tc.at {
				if tc.answered && i == len(tc.at)-1 {
					o.recordReachable(here)
				}
				o.recordUnreachable(there, noon())
				got = o.recordUnreachable(here, noon().Add(time.Duration(second)*time.Second))
			}
			if got != tc.want {
				t.Errorf("the outage lasts %s, want %s", got, tc.want)
			}
		})
	}
}

// TestProbeAcceptsUnreachablePods checks that a probe accepts a pod that is unreachable for a minute. The time of the version in its phase
// does not count.
func TestProbeAcceptsUnreachablePods(t *testing.T) {
	name, port := "443", int32(9443)
	cluster := memory(t, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kitchen", Name: "kettle", Labels: map[string]string{discoveryv1.LabelServiceName: "kettle-service"}},
		Ports:      []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		// The link-local address lacks its link and is unreachable.
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fe80::1"}}},
	})
	c := &conversions{live: cluster}
	for _, tc := range []struct {
		second  int
		answers bool
	}{{0, false}, {25, false}, {50, false}, {75, true}, {200, false}} {
		s := hookedState(t)
		s.version.CSV.Status.LastTransitionTime = new(metav1.NewTime(noon().Add(-time.Hour)))
		s.version.Now = noon().Add(time.Duration(tc.second) * time.Second)
		err := c.probe(t.Context(), s, "kettle")
		if s.answers["kettle"] != tc.answers || (err == nil) != tc.answers {
			t.Errorf("after %d s, answers is %t, error %v", tc.second, s.answers["kettle"], err)
		}
	}
}
