package compat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/pause"
)

// TestTakeover checks what the supervisor changes in statuses that OLM wrote.
func TestTakeover(t *testing.T) { //nolint:paralleltest // no other case may run beside it
	compattest.CheckAlone(t, "F13", testTakeover)
}

// testTakeover lets OLM write statuses of several kinds, and checks what the supervisor changes in them.
func testTakeover(t *testing.T, c *compattest.Cluster) {
	t.Helper()
	var seen *writeLog
	compattest.AfterOLM(t, func() {
		// Versions without a Subscription, and unresolved Subscriptions, prevent resolution in their namespace.
		installed, others, global, unresolved := c.Namespace, c.NewNamespace(), c.NewNamespace(), c.NewNamespace()
		c.Make(operatorGroup(others, "group", others), operatorGroup(unresolved, "group", unresolved), operatorGroup(global, "group"))
		sub := subscribeToLamp(c, "lamp")
		c.Namespace = unresolved
		missing := subscribeToLamp(c, "torch")
		subscriptionStatus(c, sub, "lamp.v1", "lamp.v1", operatorsv1alpha1.SubscriptionStateAtLatest)
		waitForCondition(c, missing, operatorsv1alpha1.SubscriptionResolutionFailed, "True", "ConstraintsNotSatisfiable", containing("package torch"))
		for _, v := range []struct {
			namespace string
			csv       *operatorsv1alpha1.ClusterServiceVersion
			phase     operatorsv1alpha1.ClusterServiceVersionPhase
			reason    operatorsv1alpha1.ConditionReason
		}{
			{others, c.CSV("pending.v1", requiring("gears.missing.example")), operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsNotMet},
			{others, c.CSV("failing.v1", supporting("AllNamespaces")), failedPhase, operatorsv1alpha1.CSVReasonUnsupportedOperatorGroup},
			{global, c.CSV("global.v1"), operatorsv1alpha1.CSVPhaseSucceeded, ""},
		} {
			v.csv.Namespace = v.namespace
			c.Make(v.csv)
			reaches(c, v.csv, v.phase, v.reason)
			if v.phase == operatorsv1alpha1.CSVPhaseSucceeded {
				changeObject(c, deploymentOf(v.csv), map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"changed": "by hand"}}}}})
			}
		}
		pause.For(t.Context(), restTime)
		seen = logWrites(t, c, installed, others, global, unresolved)
	})
	pause.For(t.Context(), 2*restTime)
	seen.check(t)
}

// subscribeToLamp creates a catalog with one version of lamp, and a Subscription of a package.
func subscribeToLamp(c *compattest.Cluster, pkg string) *operatorsv1alpha1.Subscription {
	c.Catalog("shelf", fakecatalog.Simple("lamp", lampEntry(c, c.CSV("lamp.v1"), "1.0.0")))
	return c.Subscribe("shelf", pkg, onStable)
}

// writeLog records, from watches, the texts in the statuses of objects and the writes of the objects.
type writeLog struct {
	mu sync.Mutex
	// before and after have the reason and the message of each condition, and the status alone for "status".
	before, after map[string]map[string]string
	// writes are the manifests after each write.
	writes map[string][]string
}

// logWrites watches the objects in namespaces until the case ends.
func logWrites(t *testing.T, c *compattest.Cluster, namespaces ...string) *writeLog {
	t.Helper()
	l := &writeLog{before: map[string]map[string]string{}, after: map[string]map[string]string{}, writes: map[string][]string{}}
	for _, namespace := range namespaces {
		l.watch(t, c, namespace)
	}
	// The watches begin with the existing objects.
	pause.For(t.Context(), time.Second)
	return l
}

func (l *writeLog) watch(t *testing.T, c *compattest.Cluster, namespace string) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&operatorsv1alpha1.ClusterServiceVersionList{}, &operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.InstallPlanList{},
		&operatorsv1alpha1.CatalogSourceList{}, &operatorsv1.OperatorGroupList{}, &operatorsv2.OperatorConditionList{}, &appsv1.DeploymentList{},
	} {
		w, err := c.Watch(t.Context(), list, client.InNamespace(namespace))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go func() {
			for e := range w.ResultChan() {
				if o, is := e.Object.(client.Object); is {
					o.SetManagedFields(nil)
					l.record(fmt.Sprintf("%T %s", o, client.ObjectKeyFromObject(o)), e.Type, c.Manifest(o))
				}
			}
		}()
	}
}

func (l *writeLog) record(object string, event watch.EventType, manifest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts := textsOf(manifest)
	if event == watch.Added {
		l.before[object] = texts
	} else {
		l.writes[object] = append(l.writes[object], manifest)
	}
	l.after[object] = texts
}

// check fails if a Deployment was written, if an object other than a CatalogSource was written more than once, or if a
// text is now another one.
func (l *writeLog) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.before) < 15 {
		t.Errorf("only %d objects were seen", len(l.before))
	}
	for object, texts := range l.before {
		// A new process connects to catalogs, and writes each state of the connection.
		allowed := 1
		if strings.Contains(object, "Deployment") {
			allowed = 0
		}
		if manifests := l.writes[object]; len(manifests) > allowed && !strings.Contains(object, "CatalogSource") {
			t.Errorf("%s was written %d times:\n%s", object, len(manifests), strings.Join(manifests, "\n"))
		}
		for key, text := range texts {
			if after := l.after[object][key]; after != text {
				t.Errorf("%s, %s: %q was %q", object, key, after, text)
			}
		}
	}
}

// textsOf returns the texts in the status of an object, without a history.
func textsOf(manifest string) map[string]string {
	var o struct {
		Status struct {
			Phase, Reason, Message string
			Conditions             []struct{ Type, Reason, Message string }
		}
	}
	if err := json.Unmarshal([]byte(manifest), &o); err != nil {
		return nil
	}
	texts := map[string]string{"status": o.Status.Phase + " " + o.Status.Reason + ": " + o.Status.Message}
	for _, condition := range o.Status.Conditions {
		if condition.Type != "" {
			texts[condition.Type] = condition.Reason + ": " + condition.Message
		}
	}
	return texts
}
