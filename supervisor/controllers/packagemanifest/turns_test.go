package packagemanifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/chandlery/chandlery/test/fakecatalog"
)

// TestTurns has catalogs of several namespaces that ask for their turn every half second. "+a" asks for namespace a, "-a" ends
// a reading, "." passes half a second, and "!" passes a minute.
func TestTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ steps, want string }{
		"OneNamespace":     {"+a +a +b", "a b"},
		"GlobalNamespace":  {"+g +a +g +g +a", "g a g"},
		"AfterAnEnd":       {"+a +a -a +a", "a a"},
		"Full":             {"+a +b +c +d -a . +d", "a b c d"},
		"LongestFirst":     {"+a +b +c +d . +e . +d +e -a +a +e +d +a +e -b +a +e", "a b c d e"},
		"TwoAreReleased":   {"+a +b +c +d . +e -a -b +e +d", "a b c e d"},
		"NoLongerAsks":     {"+a +b +c +d -a ! +e", "a b c e"},
		"AsksWhileItReads": {"+a +b +c +d . +a . +a -b . +a . +d", "a b c d"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns, now := newTurns("g"), time.Unix(1e9, 0)
			var begun []string
			for step := range strings.FieldsSeq(tt.steps) {
				namespace := step[1:]
				switch step[0] {
				case '+':
					if turns.begin(namespace, now) {
						begun = append(begun, namespace)
					}
				case '-':
					turns.end(namespace)
				case '.':
					now = now.Add(turnInterval)
				case '!':
					now = now.Add(time.Minute)
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(begun, " ")); diff != "" {
				t.Errorf("readings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoTurn has a catalog whose namespace has no turn. It is read later, and the worker does not wait.
func TestNoTurn(t *testing.T) {
	t.Parallel()
	served := fakecatalog.StartExtended(t, fakecatalog.Simple("lamp", version("lamp.v1", "", "")))
	f := follow(t, served.Address())
	for f.turns.begin(f.key.Namespace, time.Unix(1e9, 0)) {
		t.Log("another catalog of the namespace is read")
	}
	f.until("the content", func() bool { state, _ := f.store.State(f.key); return state.Snapshot != nil })
	result, err := f.Reconcile(t.Context(), ctrl.Request{NamespacedName: f.key})
	if err != nil || result.RequeueAfter != turnInterval || len(f.index.List("")) != 0 {
		t.Errorf("without a turn: %+v, %v, %d packages", result, err, len(f.index.List("")))
	}
	f.turns.end(f.key.Namespace)
	f.until("the packages", func() bool { return len(f.index.List("")) == 1 })
	f.turns.end(f.key.Namespace)
	if len(f.turns.reading) != 0 {
		t.Errorf("readings after the end: %v", f.turns.reading)
	}
}
