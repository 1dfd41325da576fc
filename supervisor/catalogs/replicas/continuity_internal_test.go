package replicas

import (
	"testing"
	"time"
)

// TestContinuity checks which changes of the replicas begin a new connection of the catalog.
func TestContinuity(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	serving := func(second int) *replica { return &replica{state: State{Health: Serving, Since: at(second)}} }
	down := &replica{state: State{Health: Unreachable, Since: at(0)}}
	a, b, c, d := serving(1), serving(1), serving(5), serving(6)
	for _, tt := range []struct {
		reason string
		steps  [][]*replica // one each second, from second 1
		want   time.Time
	}{
		{"no replica serves", [][]*replica{{}, {down}}, time.Time{}},
		{"the first replicas", [][]*replica{{a, b}}, at(1)},
		{"nothing happens", [][]*replica{{a, b}, {a, b}, {b, a}}, at(1)},
		{"one of two is replaced", [][]*replica{{a, b}, {b}, {b, c}}, at(1)},
		{"both are replaced, one by one", [][]*replica{{a, b}, {b}, {b, c}, {c}, {c, d}}, at(4)},
		{"both are replaced at once", [][]*replica{{a, b}, {c, d}}, at(2)},
		{"none serves in between", [][]*replica{{a}, {}, {}, {c}}, at(4)},
		{"none serves at the end", [][]*replica{{a}, {down}}, at(1)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			var state continuity
			for i, step := range tt.steps {
				state = state.next(step, at(i+1))
			}
			if !state.since.Equal(tt.want) {
				t.Errorf("connected since %s, want %s", state.since, tt.want)
			}
		})
	}
	t.Run("a replica connects again", func(t *testing.T) {
		r := serving(1)
		state := continuity{}.next([]*replica{r}, at(1))
		r.state.Since = at(2)
		if state = state.next([]*replica{r}, at(2)); !state.since.Equal(at(2)) {
			t.Errorf("connected since %s", state.since)
		}
	})
}
