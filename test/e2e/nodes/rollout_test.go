package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/test/caller"
	"github.com/chandlery/chandlery/test/failover"
)

// rolled is the name of the catalog that is rolled out.
const rolled = "rolled"

// pollInterval is the poll interval of the catalogs that are rolled out.
const pollInterval = 5 * time.Second

// polled returns that catalog, whose tag is polled.
func polled(image string) *operatorsv1alpha1.CatalogSource {
	source := failover.NewCatalog(rolled, image, replicas)
	source.Spec.UpdateStrategy = &operatorsv1alpha1.UpdateStrategy{
		RegistryPoll: &operatorsv1alpha1.RegistryPoll{
			RawInterval: pollInterval.String(),
			Interval:    &metav1.Duration{Duration: pollInterval},
		},
	}
	return source
}

// TestRollOut pushes another catalog to the tag that a CatalogSource names. It must be rolled out
// without a failed call, and every list of PackageManifests must have one of the two contents. Then
// content that cannot be served is pushed: the old replicas must keep serving, the status must state
// the problem, and no call may fail. Correct content must be rolled out afterwards.
func TestRollOut(t *testing.T) {
	s := scene(t)
	image := pushCatalog(t, s, "rolled:latest", ownServer)
	create(t, s, polled(image))
	must(t, s.Ready(t.Context(), rolled))
	must(t, s.Strong(t.Context(), failover.Hosted(rolled, replicas)))
	calls, err := s.Call(t.Context(), failover.Hosted(rolled, replicas))
	must(t, err)
	defer func() { must(t, calls.Stop()) }()
	begun := time.Now()

	packages, all := listsOf(t, s, rolled), samplePackages(t)
	packages.show(t, all, "")
	first := served(t.Context(), t, s)
	pushCatalog(t, s, "rolled:latest", otherContent)
	packages.show(t, samplePackage, all)
	must(t, failover.Eventually(t.Context(), "other content to be rolled out", func(ctx context.Context) string {
		if now := served(ctx, t, s); now == first || strings.Contains(now, ",") {
			return "served are " + now
		}
		return ""
	}))
	must(t, s.Strong(t.Context(), failover.Hosted(rolled, replicas)))
	noneFailed(t, calls, begun)

	second := served(t.Context(), t, s)
	pushCatalog(t, s, "rolled:latest", brokenContent)
	must(t, failover.Eventually(t.Context(), "the status to tell of the image that cannot serve", func(ctx context.Context) string {
		source, err := s.Source(ctx, rolled)
		if err != nil {
			return err.Error()
		}
		if !apimeta.IsStatusConditionFalse(source.Status.Conditions, "Progressing") || source.Status.Message == "" {
			return fmt.Sprintf("reason %q, message %q, conditions %+v", source.Status.Reason, source.Status.Message, source.Status.Conditions)
		}
		if source.Status.GRPCConnectionState.LastObservedState != "READY" {
			return "the catalog is " + source.Status.GRPCConnectionState.LastObservedState
		}
		t.Logf("status: %s: %s", source.Status.Reason, source.Status.Message)
		return ""
	}))
	noneFailed(t, calls, begun)
	if now := served(t.Context(), t, s); !strings.Contains(now, second) {
		t.Errorf("served are %s, what served before was %s", now, second)
	}
	packages.show(t, samplePackage)

	pushCatalog(t, s, "rolled:latest", ownServer)
	must(t, failover.Eventually(t.Context(), "the image that serves to be rolled out", func(ctx context.Context) string {
		source, err := s.Source(ctx, rolled)
		if err != nil {
			return err.Error()
		}
		if now := served(ctx, t, s); now != first || source.Status.Message != "" {
			return fmt.Sprintf("served are %s; message %q", now, source.Status.Message)
		}
		return ""
	}))
	packages.show(t, all, samplePackage)
	must(t, s.Strong(t.Context(), failover.Hosted(rolled, replicas)))
	noneFailed(t, calls, begun)
}

// served returns the images of the ready replicas.
func served(ctx context.Context, t *testing.T, s *failover.Scene) string {
	t.Helper()
	running, err := s.Images(ctx, failover.Hosted(rolled, replicas))
	must(t, err)
	return strings.Join(running, ",")
}

func noneFailed(t *testing.T, calls *failover.Calls, since time.Time) {
	t.Helper()
	for _, style := range caller.Styles() {
		seen := calls.Summary(style, since)
		if seen.Calls == 0 {
			t.Errorf("%s: no calls", style)
		}
		undisturbed(t, style, seen)
	}
}
