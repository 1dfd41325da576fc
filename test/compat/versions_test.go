package compat_test

import (
	"strings"
	"sync"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
)

// mergePatch patches an object.
func mergePatch(t *testing.T, c *compattest.Cluster, o client.Object, patch string) {
	t.Helper()
	if err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patching %T %s: %v", o, o.GetName(), err)
	}
}

// mergeStatus patches the status of an object.
func mergeStatus(t *testing.T, c *compattest.Cluster, o client.Object, patch string) {
	t.Helper()
	if err := c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patching the status of %T %s: %v", o, o.GetName(), err)
	}
}

// replaceContent replaces the content of a catalog, as a new pod does. OLM reads it when it has connected again.
func replaceContent(server *fakecatalog.Server, packages ...fakecatalog.Package) {
	server.Stop()
	server.Serve(packages...)
	server.Restart()
}

// reaches waits until a version has a phase and a reason. An empty reason stands for any.
func reaches(c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion,
	phase operatorsv1alpha1.ClusterServiceVersionPhase, reason operatorsv1alpha1.ConditionReason,
) {
	c.Eventually(compattest.Patience, func() string {
		if left := c.Read(csv); left != "" {
			return left
		}
		if s := csv.Status; s.Phase != phase || reason != "" && s.Reason != reason {
			return "phase " + string(s.Phase) + ", reason " + string(s.Reason) + ", message " + s.Message
		}
		return ""
	})
}

// operatorGroup returns an OperatorGroup with targets.
func operatorGroup(namespace, name string, targets ...string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	}
}

// targetNamespaces sets the targets of an OperatorGroup.
func targetNamespaces(t *testing.T, c *compattest.Cluster, namespace, name string, targets ...string) {
	t.Helper()
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	mergePatch(t, c, group, `{"spec":{"targetNamespaces":`+c.Manifest(targets)+`}}`)
}

// versionLog records the versions of a namespace from a watch.
type versionLog struct {
	mu   sync.Mutex
	seen []operatorsv1alpha1.ClusterServiceVersion
}

// logVersions watches the versions of a namespace until the case ends.
func logVersions(t *testing.T, c *compattest.Cluster, namespace string) *versionLog {
	t.Helper()
	w, err := c.Watch(t.Context(), &operatorsv1alpha1.ClusterServiceVersionList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	l := &versionLog{}
	go func() {
		for e := range w.ResultChan() {
			if csv, is := e.Object.(*operatorsv1alpha1.ClusterServiceVersion); is && e.Type != watch.Deleted {
				l.mu.Lock()
				l.seen = append(l.seen, *csv)
				l.mu.Unlock()
			}
		}
	}()
	return l
}

// phases returns the phases of a version in order, without repetitions, separated by spaces.
func (l *versionLog) phases(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var phases []string
	for i := range l.seen {
		p := string(l.seen[i].Status.Phase)
		if p != "" && l.seen[i].Name == name && (len(phases) == 0 || phases[len(phases)-1] != p) {
			phases = append(phases, p)
		}
	}
	return strings.Join(phases, " ")
}

// last returns the last state of a version.
func (l *versionLog) last(name string) operatorsv1alpha1.ClusterServiceVersion {
	l.mu.Lock()
	defer l.mu.Unlock()
	var last operatorsv1alpha1.ClusterServiceVersion
	for i := range l.seen {
		if l.seen[i].Name == name {
			last = l.seen[i]
		}
	}
	return last
}

// has reports whether a version was seen.
func (l *versionLog) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.seen {
		if l.seen[i].Name == name {
			return true
		}
	}
	return false
}
