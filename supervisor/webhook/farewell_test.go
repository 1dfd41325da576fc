package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
)

// TestAddLinger checks that the termination of pods without their own preStop hook is delayed.
func TestAddLinger(t *testing.T) {
	sleep := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 15}}}
	own := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"leave"}}}}
	begun := &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"enter"}}}}
	both := &corev1.Lifecycle{PostStart: begun.PostStart, PreStop: sleep.PreStop}
	recreate := appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	for name, tt := range map[string]struct {
		strategy   appsv1.DeploymentStrategy
		has, want  []*corev1.Lifecycle // by container
		grace, got *int64
	}{
		"Nothing":        {has: []*corev1.Lifecycle{nil, nil}, want: []*corev1.Lifecycle{sleep, sleep}, got: new(int64(45))},
		"Grace":          {has: []*corev1.Lifecycle{nil}, want: []*corev1.Lifecycle{sleep}, grace: new(int64(10)), got: new(int64(25))},
		"AnotherHook":    {has: []*corev1.Lifecycle{begun}, want: []*corev1.Lifecycle{both}, got: new(int64(45))},
		"ItsOwn":         {has: []*corev1.Lifecycle{own}, want: []*corev1.Lifecycle{own}},
		"ItsOwnAndNone":  {has: []*corev1.Lifecycle{own, nil}, want: []*corev1.Lifecycle{own, sleep}, got: new(int64(45))},
		"OneByOneAtMost": {strategy: recreate, has: []*corev1.Lifecycle{nil}, want: []*corev1.Lifecycle{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := func(lifecycles []*corev1.Lifecycle, grace *int64) *appsv1.Deployment {
				d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Strategy: tt.strategy}}
				d.Spec.Template.Spec.TerminationGracePeriodSeconds = grace
				for _, l := range lifecycles {
					d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Lifecycle: l.DeepCopy()})
				}
				return d
			}
			d := deployment(tt.has, tt.grace)
			AddLinger(d)
			AddLinger(d)
			if diff := cmp.Diff(deployment(tt.want, tt.got), d); diff != "" {
				t.Errorf("Deployment (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLeaving distinguishes terminating pods from those that remain and those that have ended.
func TestLeaving(t *testing.T) {
	endpoint := func(pod string, ready, serving, terminating bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			TargetRef:  &corev1.ObjectReference{Name: pod, UID: types.UID(pod + "-uid")},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		}
	}
	stays, unready := endpoint("a", true, true, false), endpoint("b", false, false, false)
	goes, gone := endpoint("c", false, true, true), endpoint("d", false, false, true)
	nobody := endpoint("e", false, true, true)
	nobody.TargetRef = nil
	for name, tt := range map[string]struct {
		slices [][]discoveryv1.Endpoint
		pods   map[types.UID]string
		stay   bool
	}{
		"None":      {pods: map[types.UID]string{}},
		"AllStay":   {slices: [][]discoveryv1.Endpoint{{stays, unready}}, pods: map[types.UID]string{}, stay: true},
		"Unknown":   {slices: [][]discoveryv1.Endpoint{{{}}}, pods: map[types.UID]string{}, stay: true},
		"OneGoes":   {slices: [][]discoveryv1.Endpoint{{stays, goes}, {goes, gone, nobody}}, pods: map[types.UID]string{"c-uid": "c"}, stay: true},
		"NoneStays": {slices: [][]discoveryv1.Endpoint{{goes, unready}}, pods: map[types.UID]string{"c-uid": "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			var list []discoveryv1.EndpointSlice
			for _, endpoints := range tt.slices {
				list = append(list, discoveryv1.EndpointSlice{Endpoints: endpoints})
			}
			pods, stay := Leaving(list)
			if diff := cmp.Diff(tt.pods, pods); diff != "" || stay != tt.stay {
				t.Errorf("others stay is %t, want %t; pods that leave (-want +got):\n%s", stay, tt.stay, diff)
			}
		})
	}
}

// TestPart checks that the line is changed once for each pod, and nothing else.
func TestPart(t *testing.T) {
	c := converter(t)
	service := types.NamespacedName{Namespace: "ns", Name: "etcd-operator-service"}
	live := definition(c.Want.DeepCopy(), "")
	for name, crd := range map[string]*apiextensionsv1.CustomResourceDefinition{
		"no conversion": definition(none(), ""), "nothing said": definition(nil, ""),
	} {
		if change := Part(crd, service, []string{"a"}); change != nil {
			t.Errorf("%s: change is %v", name, change)
		}
	}
	if change := Part(live, types.NamespacedName{Namespace: "ns", Name: "other"}, []string{"a"}); change != nil {
		t.Errorf("another Service: change is %v", change)
	}
	for _, step := range []struct {
		pods []string
		line string // empty for no change
	}{
		{pods: nil},
		{pods: []string{"b"}, line: "# no connections to b\n"},
		{pods: []string{"b"}},
		{pods: []string{"c", "b"}, line: "# no connections to b c\n"},
		{pods: []string{"c"}},
		{pods: []string{"d"}, line: "# no connections to d\n"},
	} {
		change := Part(live, service, step.pods)
		if step.line == "" {
			if change != nil {
				t.Errorf("%v: change is %v", step.pods, change)
			}
			continue
		}
		want := string(c.Want.Webhook.ClientConfig.CABundle) + step.line
		if diff := cmp.Diff(want, string(change.Conversion.Webhook.ClientConfig.CABundle)); diff != "" {
			t.Errorf("%v: bundle (-want +got):\n%s", step.pods, diff)
		}
		live = patched(t, live, change)
		if again, waits := c.Next(live, Circumstances{Answers: true}); again != nil || waits {
			t.Errorf("%v: the conversion is to be changed: %v", step.pods, again)
		}
		if certs, err := cert.ParseCertsPEM(live.Spec.Conversion.Webhook.ClientConfig.CABundle); err != nil || len(certs) != 1 {
			t.Errorf("%v: the bundle has %d certificates, %v", step.pods, len(certs), err)
		}
	}
}
