package suite_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/testenv"
)

// TestAnotherProcessGoesOn stops each supervisor after its first change. The next one continues,
// through the same phases, with the same Deployment.
func TestAnotherProcessGoesOn(t *testing.T) {
	w := newWorld(t)
	w.Create(w.group("own", w.Namespace), w.kettle("kettle.v1"))
	var deployment appsv1.Deployment
	key := client.ObjectKey{Namespace: w.Namespace, Name: "kettle"}
	seen := ""
	for deadline := time.Now().Add(testenv.Patience); w.csv("kettle.v1").Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded; {
		if time.Now().After(deadline) {
			t.Fatalf("did not succeed in %s: %+v", testenv.Patience, w.csv("kettle.v1").Status)
		}
		before := w.csv("kettle.v1").ResourceVersion
		stop := w.supervise()
		w.Eventually(func() string { return w.csv("kettle.v1").ResourceVersion }).
			WithPolling(5 * time.Millisecond).ShouldNot(gomega.Equal(before))
		stop()
		if w.Get(t.Context(), key, &deployment) != nil {
			continue
		}
		if uid := string(deployment.UID); seen == "" || seen == uid {
			seen = uid
			continue
		}
		t.Fatal("the Deployment was made twice")
	}
	want := []operatorsv1alpha1.ClusterServiceVersionPhase{
		operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstallReady,
		operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVPhaseSucceeded,
	}
	if diff := cmp.Diff(want, phases(w.csv("kettle.v1"))); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}
