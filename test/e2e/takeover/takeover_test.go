package takeover_test

import (
	"strings"
	"testing"
	"time"
)

func TestExplore(t *testing.T) {
	s := newScene(t)
	before := take(t)
	s.supervise("one", "--takeover")
	time.Sleep(30 * time.Second)
	after := take(t)
	t.Log("\n" + strings.Join(differences(t, before, after, nil), "\n"))
}
