package catalogs

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/connectivity"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/chandlery/chandlery/supervisor/catalogs/replicas"
)

// TestLost checks since which step, and from which state, a catalog counts as lost.
func TestLost(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakePassiveClock(begin)
	tr := &tracker{clock: clk, settings: &settings{}, pool: newSnapshotPool()}
	for i, tt := range []struct {
		observed connectivity.State
		lost     int // the step of the loss, from 1; 0 for none
		to       string
	}{
		{connectivity.Connecting, 0, ""},
		{connectivity.Ready, 0, ""},
		{connectivity.Connecting, 3, "CONNECTING"},
		{connectivity.TransientFailure, 3, "CONNECTING"},
		{connectivity.Ready, 3, "CONNECTING"},
		{connectivity.Ready, 3, "CONNECTING"},
		{connectivity.Idle, 7, "IDLE"},
	} {
		clk.SetTime(begin.Add(time.Duration(i+1) * time.Second))
		tr.connected(replicas.Summary{Connectivity: tt.observed})
		var want time.Time
		if tt.lost > 0 {
			want = begin.Add(time.Duration(tt.lost) * time.Second)
		}
		if got := tr.current(); !got.Lost.Equal(want) || got.LostTo != tt.to {
			t.Errorf("step %d: lost at %s to %q, want %s and %q", i+1, got.Lost, got.LostTo, want, tt.to)
		}
	}
}

func TestLastConnect(t *testing.T) {
	begin := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	old, other := &Snapshot{Digest: "old", announced: "old"}, &Snapshot{Digest: "other", announced: "other"}
	connected := func(second int) func(*tracker) {
		return func(tr *tracker) { tr.connected(replicas.Summary{Connectivity: connectivity.Ready, Since: at(second)}) }
	}
	confirmed := func(revision string, next *Snapshot, err error) func(*tracker) {
		return func(tr *tracker) {
			from := server{replica: replicas.Endpoint{Revision: revision}}
			announced := ""
			if next != nil {
				announced = next.announced
			}
			tr.record(from, announced, next, err)
		}
	}
	lost := func(tr *tracker) {
		tr.connected(replicas.Summary{Connectivity: connectivity.TransientFailure, Err: errors.New("refused"), Since: at(1)})
	}
	for _, tt := range []struct {
		reason string
		steps  []func(*tracker) // one each second, from second 1
		want   time.Time
	}{
		{"never connected", []func(*tracker){lost}, time.Time{}},
		{"connected for the first time", []func(*tracker){connected(1)}, at(1)},
		{"content read later", []func(*tracker){connected(1), confirmed("r", old, nil)}, at(1)},
		{"lost", []func(*tracker){connected(1), confirmed("r", old, nil), lost}, at(1)},
		{"connected again, content not confirmed", []func(*tracker){connected(1), confirmed("r", old, nil), lost, connected(4)}, at(1)},
		{"connected again, still another content expected", []func(*tracker){connected(1), confirmed("r", old, nil), lost, connected(4), confirmed("r", nil, nil)}, at(1)},
		{"connected again, content confirmed", []func(*tracker){connected(1), confirmed("r", old, nil), lost, connected(4), confirmed("r", old, nil)}, at(4)},
		{"connected again, content not readable", []func(*tracker){connected(1), confirmed("r", old, nil), lost, connected(4), confirmed("r", nil, errors.New("odd"))}, at(4)},
		{"a connection that was not seen to end", []func(*tracker){connected(1), confirmed("r", old, nil), connected(3), confirmed("r", old, nil)}, at(3)},
		{"nothing happens", []func(*tracker){connected(1), confirmed("r", old, nil), connected(1), confirmed("r", old, nil)}, at(1)},
		{"other content", []func(*tracker){connected(1), confirmed("r", old, nil), confirmed("r", other, nil)}, at(3)},
		{"the same content from other replicas", []func(*tracker){connected(1), confirmed("r", old, nil), confirmed("s", old, nil)}, at(3)},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			clk := clocktesting.NewFakePassiveClock(begin)
			tr := &tracker{clock: clk, settings: &settings{}, pool: newSnapshotPool()}
			for i, step := range tt.steps {
				clk.SetTime(at(i + 1))
				step(tr)
			}
			if got := tr.current().LastConnect; !got.Equal(tt.want) {
				t.Errorf("connected at %s, want %s", got, tt.want)
			}
		})
	}
}

// TestBrokenChannelsOfSnapshots replaces a snapshot, and checks which broken channels the state has.
func TestBrokenChannelsOfSnapshots(t *testing.T) {
	broken := []string{"lamp/beta"}
	first := &Snapshot{Digest: "one", announced: "x"}
	for name, test := range map[string]struct {
		next *Snapshot
		want []string
	}{
		"same content":  {&Snapshot{Digest: "one", announced: "y"}, broken},
		"other content": {&Snapshot{Digest: "two", announced: "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &tracker{}
			tr.state.Snapshot = first
			if !tr.setBrokenChannels(first, broken) || tr.setBrokenChannels(&Snapshot{}, nil) {
				t.Error("broken channels of another snapshot count, or those of this one do not")
			}
			tr.setSnapshot(test.next, time.Unix(1, 0))
			if diff := cmp.Diff(test.want, tr.current().BrokenChannels); diff != "" {
				t.Errorf("broken channels (-want +got):\n%s", diff)
			}
		})
	}
}
