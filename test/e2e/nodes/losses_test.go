package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/test/caller"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/sampling"
)

const (
	// defaultRounds is the number of rounds without ROUNDS.
	defaultRounds = 20
	// replicas is the number of replicas of the called catalog.
	replicas = 2
	// failingAtMost bounds the time for which calls through the Service may fail when one of two
	// replicas is lost with its node. strongWithin bounds the time from NotReady to the full number
	// of replicas. bench/failover measures the times. This test only checks that the supervisor
	// acts, on a machine under any load: Kubernetes alone would take a quarter of a minute and five
	// minutes.
	failingAtMost = 12 * time.Second
	strongWithin  = time.Minute
)

// TestLosses stops nodes, leaders and replicas in turn while clients call a catalog and operators
// are installed from it. After each round, the catalog and the supervisors must have all replicas,
// nothing may be Terminating or duplicated, and everything requested must be installed.
func TestLosses(t *testing.T) {
	s := scene(t)
	const catalog = "steady"
	create(t, s, failover.NewCatalog(catalog, pushCatalog(t, s, "steady:v1", ownServer), replicas))
	must(t, s.Ready(t.Context(), catalog))
	must(t, s.Strong(t.Context(), failover.Hosted(catalog, replicas)))
	calls, err := s.Call(t.Context(), failover.Hosted(catalog, replicas))
	must(t, err)
	defer func() { must(t, calls.Stop()) }()
	witness, err := s.Watch(t.Context(), catalog)
	must(t, err)

	var rounds []failover.Round
	for i, kind := range failover.Kinds(sampling.Number(t, "ROUNDS", defaultRounds, 1)) {
		name := fmt.Sprintf("%02d-%s", i+1, strings.ReplaceAll(string(kind), " ", "-"))
		t.Run(name, func(t *testing.T) {
			installed := subscribe(t, s, fmt.Sprintf("round-%d", i+1), catalog)
			round, err := s.Go(t.Context(), kind, failover.Hosted(catalog, replicas), calls)
			must(t, err)
			rounds = append(rounds, round)
			installed(t)
			judge(t, round)
		})
		if t.Failed() {
			break
		}
	}
	for _, said := range witness.Stop() {
		t.Errorf("CatalogSource %s was not well: %s", catalog, said)
	}
	nothingTerminating(t, s)
	var table strings.Builder
	must(t, failover.Table(&table, rounds))
	t.Logf("node monitor grace period %s\n%s", gracePeriod, table.String())
}

// judge checks a round against the targets.
func judge(t *testing.T, round failover.Round) {
	t.Helper()
	for _, style := range caller.Styles() {
		seen := round.Seen[style]
		if seen.Calls == 0 {
			t.Errorf("%s: no calls", style)
		}
		if (round.Kind == failover.LostNode || round.Kind == failover.LostNodeLeader) && seen.Failing > failingAtMost {
			t.Errorf("%s: calls failed for %s, at most %s are promised; %v", style, seen.Failing, failingAtMost, seen.Errors)
		}
		if round.Kind == failover.KilledLeader || round.Kind == failover.StoppedLeader || round.Kind == failover.DeletedReplica {
			undisturbed(t, style, seen)
		}
	}
	if !round.Loss.NotReady.IsZero() && round.Loss.Restored.Sub(round.Loss.NotReady) > strongWithin {
		t.Errorf("full strength %s after NotReady, %s are promised", round.Loss.Restored.Sub(round.Loss.NotReady), strongWithin)
	}
}

// undisturbed fails if calls failed though no replica was lost without notice. If many calls are
// late, the cause is a busy machine and not an unreachable catalog.
func undisturbed(t *testing.T, style caller.Style, seen caller.Summary) {
	t.Helper()
	late := seen.Errors[codes.DeadlineExceeded.String()]
	if seen.Failed > late || late > seen.Calls/20 {
		t.Errorf("%s: %d of %d calls failed though no replica was lost unannounced: %v", style, seen.Failed, seen.Calls, seen.Errors)
	}
}

// nothingTerminating fails for each pod and namespace whose deletion does not complete, except discarded namespaces.
func nothingTerminating(t *testing.T, s *failover.Scene) {
	t.Helper()
	must(t, failover.Eventually(t.Context(), "nothing to be Terminating", func(ctx context.Context) string {
		var left []string
		pods, namespaces := &corev1.PodList{}, &corev1.NamespaceList{}
		if err := errors.Join(s.Client.List(ctx, pods), s.Client.List(ctx, namespaces)); err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				left = append(left, "pod "+pods.Items[i].Namespace+"/"+pods.Items[i].Name)
			}
		}
		for i := range namespaces.Items {
			if namespaces.Items[i].DeletionTimestamp != nil && !controlplane.IsDiscarded(&namespaces.Items[i]) {
				left = append(left, "namespace "+namespaces.Items[i].Name)
			}
		}
		return strings.Join(left, ", ")
	}))
}
