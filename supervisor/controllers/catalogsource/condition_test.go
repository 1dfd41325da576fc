package catalogsource

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestSetConditionBoundsItsMessage(t *testing.T) {
	var conditions []metav1.Condition
	setCondition(&conditions, metav1.Condition{Type: api.ConditionAvailable, Message: strings.Repeat("x", 1<<20)}, metav1.Now())
	if got := len(conditions[0].Message); got != maxMessage {
		t.Errorf("the condition has %d bytes", got)
	}
}
