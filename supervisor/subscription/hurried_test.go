package subscription

import (
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTooSoon(t *testing.T) {
	sub := func(change func(*operatorsv1alpha1.Subscription)) *operatorsv1alpha1.Subscription {
		s := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "lamp"}, Spec: &operatorsv1alpha1.SubscriptionSpec{Package: "lamp"}}
		s.Annotations = map[string]string{annotationOnDelete: onDeleteUninstall}
		change(s)
		return s
	}
	for name, tt := range map[string]struct {
		sub  *operatorsv1alpha1.Subscription
		want bool
	}{
		"asked and gone":  {sub(func(*operatorsv1alpha1.Subscription) {}), true},
		"nobody asked":    {sub(func(s *operatorsv1alpha1.Subscription) { s.Annotations = nil }), false},
		"it was kept":     {sub(func(s *operatorsv1alpha1.Subscription) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} }), false},
		"kept too late":   {sub(func(s *operatorsv1alpha1.Subscription) { s.Finalizers = []string{finalizerUninstall} }), true},
		"without content": {sub(func(s *operatorsv1alpha1.Subscription) { s.Spec = nil }), false},
	} {
		if got := tooSoon(tt.sub); got != tt.want {
			t.Errorf("%s: tooSoon is %t, want %t", name, got, tt.want)
		}
	}
}

// TestHurriedIsForgotten leaves to the process that led then what went long ago.
func TestHurriedIsForgotten(t *testing.T) {
	var h hurried
	now := time.Now()
	for _, name := range []string{"early", "late"} {
		h.note(&operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name}}, now)
		now = now.Add(hurry + time.Second)
	}
	if got := h.take("other", now); len(got) > 0 {
		t.Errorf("another namespace has %v", got)
	}
	got := h.take("ops", now.Add(-time.Second))
	if len(got) != 1 || got[0].subscription.Name != "late" {
		t.Fatalf("taken is %v, want late alone", got)
	}
	if again := h.take("ops", now); len(again) > 0 {
		t.Errorf("%v is taken twice", again)
	}
	h.again(got[0])
	if again := h.take("ops", now); len(again) > 0 && now.Sub(again[0].at) > hurry {
		t.Errorf("%v is taken too late", again)
	}
}
