package caller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// start is the start of the table's time. at returns a time after it.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(millis int) time.Time { return start.Add(time.Duration(millis) * time.Millisecond) }

func call(begun, ended int, err string) Call {
	return Call{Style: NewConnection, Begun: at(begun), Ended: at(ended), Err: err}
}

func TestSummarise(t *testing.T) {
	for _, tt := range []struct {
		name  string
		calls []Call
		want  Summary
	}{
		{name: "nothing", want: Summary{Errors: map[string]int{}}},
		{
			name:  "all well",
			calls: []Call{call(0, 5, ""), call(50, 55, "")},
			want:  Summary{Calls: 2, Errors: map[string]int{}},
		},
		{
			name:  "failures that overlap count once",
			calls: []Call{call(0, 1000, "x"), call(50, 1050, "x"), call(100, 101, ""), call(150, 200, "y")},
			want:  Summary{Calls: 4, Failed: 3, Failing: 1050 * time.Millisecond, Longest: 1050 * time.Millisecond, Errors: map[string]int{"x": 2, "y": 1}},
		},
		{
			name:  "stretches add up, in whatever order calls ended",
			calls: []Call{call(2000, 2500, "x"), call(0, 1000, "x")},
			want:  Summary{Calls: 2, Failed: 2, Failing: 1500 * time.Millisecond, Longest: time.Second, Errors: map[string]int{"x": 2}},
		},
		{
			name:  "what fails at once fails until the next call",
			calls: []Call{call(0, 1, "x"), call(50, 51, "x"), call(100, 101, ""), call(150, 151, "x")},
			want:  Summary{Calls: 4, Failed: 3, Failing: 150 * time.Millisecond, Longest: 100 * time.Millisecond, Errors: map[string]int{"x": 3}},
		},
		{
			name:  "only what began in the span",
			calls: []Call{call(-1, 5, "x"), call(10_000, 10_001, "x"), {Style: LongLived, Begun: at(1), Ended: at(2), Err: "x"}},
			want:  Summary{Errors: map[string]int{}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Summarise(tt.calls, NewConnection, start, at(10_000))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
