package catalogsource

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/catalogsource/deployment"
	"github.com/chandlery/chandlery/test/listpages"
)

func TestAutoscalerOf(t *testing.T) {
	hpa := func(name, version, kind, target string) autoscalingv2.HorizontalPodAutoscaler {
		return autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: version, Kind: kind, Name: target},
			},
		}
	}
	going := hpa("going", "apps/v1", "Deployment", "shop")
	going.DeletionTimestamp = new(metav1.Now())
	for _, tt := range []struct {
		reason string
		all    []autoscalingv2.HorizontalPodAutoscaler
		want   string
	}{
		{"none", nil, ""},
		{"ours", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "apps/v1", "Deployment", "shop")}, "a"},
		{"another Deployment", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "apps/v1", "Deployment", "other")}, ""},
		{"another kind", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "apps/v1", "StatefulSet", "shop")}, ""},
		{"another group", []autoscalingv2.HorizontalPodAutoscaler{hpa("a", "example.com/v1", "Deployment", "shop")}, ""},
		{"being deleted, and there", []autoscalingv2.HorizontalPodAutoscaler{going}, "going"},
		{"first by name", []autoscalingv2.HorizontalPodAutoscaler{hpa("b", "apps/v1", "Deployment", "shop"), hpa("a", "apps/v1", "Deployment", "shop")}, "a"},
	} {
		if got := autoscalerOf(tt.all, "shop"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}

// TestFewAutoscalersAtOnce checks that an autoscaler is found on a later page, that a page of the
// largest autoscalers, of a tenant, fits into memory, and that the process reads one page at a time.
func TestFewAutoscalersAtOnce(t *testing.T) {
	reader := &listpages.Reader[autoscalingv2.HorizontalPodAutoscaler]{All: make([]autoscalingv2.HorizontalPodAutoscaler, 100)}
	ours := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "z"}}
	ours.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"}
	reader.All = append(reader.All, ours)
	o, d := &observer{live: reader}, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	reader.Again = func(ctx context.Context) error {
		_, _, err := o.autoscaler(ctx, d)
		return err
	}
	if name, hidden, err := o.autoscaler(t.Context(), d); err != nil || hidden || name != "z" {
		t.Errorf("found %q, %t, %v", name, hidden, err)
	}
	reader.Check(t, listpages.WholeObject)
}

func scaledTo(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "olm", UID: "u-2", ResourceVersion: "7"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

func TestWithAutoscaler(t *testing.T) {
	const sets = "; HorizontalPodAutoscaler a sets the number of replicas"
	for _, tt := range []struct {
		reason, autoscaler, asked string
		live                      *appsv1.Deployment
		want                      string
		next                      time.Duration
	}{
		{"an autoscaler", "a", "", scaledTo(7), sets, autoscalerInterval},
		{"what is asked for has no effect", "a", "3", scaledTo(7), sets + ", and annotation chandlery.dev/replicas has no effect", autoscalerInterval},
		{"no autoscaler", "", "3", scaledTo(7), "", 0},
		{"an autoscaler does nothing at 0", "a", "", scaledTo(0), "", 0},
		{"no Deployment yet", "a", "", nil, "", 0},
	} {
		in := deployment.Input{Source: shop(), Deployment: tt.live, Autoscaler: tt.autoscaler}
		if tt.asked != "" {
			annotated(api.AnnotationReplicas, tt.asked)(in.Source)
		}
		before := reconcileResult{conditions: []metav1.Condition{{Type: api.ConditionAvailable, Message: "7 of 7"}, {Type: api.ConditionProgressing, Message: "done"}}}
		h := before.withAutoscaler(&in)
		if got, want := h.conditions[0].Message, "7 of 7"+tt.want; got != want || h.conditions[1].Message != "done" || h.next != tt.next {
			t.Errorf("%s: %q, %q, again after %v; want %q after %v", tt.reason, got, h.conditions[1].Message, h.next, want, tt.next)
		}
	}
}

func TestIsCurrent(t *testing.T) {
	changed, another := scaledTo(4), scaledTo(2)
	changed.ResourceVersion, another.UID = "8", "u-3"
	for _, tt := range []struct {
		reason   string
		observed *appsv1.Deployment
		live     client.Object
		want     bool
	}{
		{"as it was observed", scaledTo(2), scaledTo(2), true},
		{"changed since", scaledTo(2), changed, false},
		{"made again since", scaledTo(2), another, false},
		{"not there when it was observed", nil, scaledTo(2), false},
		{"of another kind: what is wanted does not follow from it", scaledTo(2), &corev1.Service{}, true},
	} {
		err := isCurrent(tt.observed, tt.live)
		if (err == nil) != tt.want || (err != nil && !apierrors.IsConflict(err)) {
			t.Errorf("%s: %v", tt.reason, err)
		}
	}
}
