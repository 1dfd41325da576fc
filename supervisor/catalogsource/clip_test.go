package catalogsource

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClip(t *testing.T) {
	if got := clip("short"); got != "short" {
		t.Errorf("%q", got)
	}
	if whole := strings.Repeat("x", maxMessage); clip(whole) != whole {
		t.Error("a message that just fits is cut")
	}
	for shift := range 4 {
		got := clip(strings.Repeat("x", shift) + strings.Repeat("ü€", maxMessage))
		if len(got) > maxMessage || len(got) < maxMessage-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-8:])
		}
	}
	var conditions []metav1.Condition
	setCondition(&conditions, metav1.Condition{Type: conditionAvailable, Message: strings.Repeat("x", 1<<20)}, metav1.Now())
	if got := len(conditions[0].Message); got != maxMessage {
		t.Errorf("the condition has %d bytes", got)
	}
}
