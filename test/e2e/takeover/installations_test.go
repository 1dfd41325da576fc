package takeover_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/audit"
	"github.com/chandlery/chandlery/test/helm"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/pause"
	"github.com/chandlery/chandlery/test/sampling"
	"github.com/chandlery/chandlery/test/testenv"
)

// tool is a program that installs manifests.
type tool string

const (
	byHelm      tool = "Helm"
	byKustomize tool = "kustomize"
)

// installation is where and how OLM is installed, and how supervisors are installed beside it.
type installation struct {
	namespace        string
	olm, supervisors tool
}

// installations has each namespace with each tool.
var installations = []installation{
	{olmpeer.ChartNamespace, byHelm, byKustomize},
	{olmpeer.ChartNamespace, byKustomize, byHelm},
	{olmpeer.Namespace, byHelm, byHelm},
	{olmpeer.Namespace, byKustomize, byKustomize},
}

// TestInstallations takes over from a running OLM, which is then scaled up and down again while a supervisor leads, and hands back
// to it. OLM is in either namespace, and installed with Helm or with kustomize. No operator is rolled out, also not by the OLM
// that starts beside a supervisor. Only one manager writes at a time, and the tool that installed OLM can still change it.
// $INSTALLATIONS is the number of installations, "none", or 0 for all.
func TestInstallations(t *testing.T) {
	for _, one := range sampledInstallations(t) {
		t.Run(fmt.Sprintf("OLM by %s in %s, supervisors by %s", one.olm, one.namespace, one.supervisors), func(t *testing.T) {
			s := newInstalledScene(t, one)
			s.dryRunNamesNamespace()
			s.tools.installSupervisors()
			before, versions, owned := s.rollouts(), s.versions(), s.ownedByHelm()

			supervisor := s.process(api.LeaseName)
			s.stands(supervisor, "Deployment "+one.namespace+"/catalog-operator",
				"kubectl -n "+one.namespace+" scale deployment catalog-operator olm-operator --replicas=0")
			s.migrates("migrate", "--yes")
			s.leads(supervisor)
			s.works("the supervisor")
			s.sameRollouts("taking over", before)
			s.subscribe("buoy", nil, "buoys")
			s.reaches("buoy", "buoy.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
			before = s.rollouts()

			s.startsOLM()
			s.stands(supervisor, "scaled up again since it was taken over from", "Stepping down", "Deployment "+one.namespace+"/olm-operator")
			s.works("OLM")
			s.stopsOLM()
			s.keepsPods("OLM beside the supervisor", before)
			beside := s.rollouts()
			s.leads(supervisor)
			s.works("the supervisor")
			s.sameRollouts("the return of the supervisor", beside)

			s.handsBack()
			s.works("OLM")
			s.sameRollouts("handing back", beside)
			s.sameVersions(versions)
			// OLM, the takeover, OLM that was started again, the supervisor that returned, and OLM after the handback.
			oneWriterAtATime(s.olmScene, 5)
			s.isOriginal(owned)
			s.changesOLM(2)
			s.changesSupervisors()
		})
	}
}

// sampledInstallations returns the first $INSTALLATIONS.
func sampledInstallations(t *testing.T) []installation {
	t.Helper()
	if os.Getenv("INSTALLATIONS") == "none" {
		return nil
	}
	n := sampling.Number(t, "INSTALLATIONS", 1, 0)
	if n > len(installations) {
		t.Fatalf("$INSTALLATIONS is %d; there are %d", n, len(installations))
	}
	if n == 0 {
		return installations
	}
	return installations[:n]
}

// installedScene is a cluster on which tools of administrators have installed OLM.
type installedScene struct {
	*switchScene
	installation

	tools *tools
}

// newInstalledScene installs OLM with its package server, and an operator with a webhook.
func newInstalledScene(t *testing.T, in installation) *installedScene {
	t.Helper()
	s := &installedScene{switchScene: &switchScene{olmScene: newEmptyScene(t, in.namespace)}, installation: in}
	s.tools = &tools{cluster: s.olmScene, installation: in}
	var err error
	if s.tools.chart, err = olmpeer.FindChart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.tools.helmPath, err = helm.Program(); err != nil {
		t.Fatal(err)
	}
	// The catalog of the chart needs its image.
	s.tools.settings = []string{
		"namespace=" + in.namespace, "catalog_namespace=" + in.namespace, "installType=none",
		"package.service.internalPort=" + strconv.Itoa(servesPackages(s.olmScene).Port),
	}
	if in.olm == byHelm {
		s.tools.helm(append([]string{"install", "olm", s.tools.chart.Dir}, set(s.tools.settings...)...)...)
	} else {
		testenv.Until(t, patience, "OLM to be installed", func(context.Context) string {
			// The kinds of the first manifests are served soon after these.
			out, err := s.tools.applyOLM() //nolint:contextcheck // it has the test's own
			if err != nil {
				return out
			}
			return ""
		})
	}
	s.peer, err = olmpeer.New(olmpeer.Options{Programs: s.programs, Logs: t.ArtifactDir(), Plane: s.plane, Namespace: in.namespace})
	if err != nil {
		t.Fatal(err)
	}
	s.switchScene = newSwitchScene(s.olmScene, "installed", "--global-catalog-namespace", in.namespace)
	s.offers()
	s.subscribe("lamp", nil, "lamps")
	s.reaches("lamp", "lamp.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.shown("lamp", "the installation", isAtLatest("lamp.v1.0.0"))
	s.reaches(packageServer, packageServer, operatorsv1alpha1.CSVPhaseSucceeded)
	s.plansEnd()
	return s
}

// dryRunNamesNamespace checks that a takeover finds OLM, and names the flag of supervisors that are not installed yet.
func (s *installedScene) dryRunNamesNamespace() {
	s.t.Helper()
	out, code := s.output("takeover", "--dry-run")
	out = strings.Join(strings.Fields(out), " ")
	flag := "--global-catalog-namespace=" + s.namespace
	if code != 0 || !strings.Contains(out, "Scale Deployment "+s.namespace+"/catalog-operator from 1 to 0") || strings.Contains(out, flag) != (s.namespace != olmpeer.Namespace) {
		s.t.Errorf("exit code %d", code)
	}
}

// keepsPods checks that no Deployment of an operator got other pods. An annotation of a Deployment changes its generation, but
// not its revision.
func (s *installedScene) keepsPods(by string, before snapshot) {
	s.t.Helper()
	const revision = "deployment.kubernetes.io/revision"
	after := s.rollouts()
	for name, was := range before {
		is := after[name]
		if is == nil {
			s.t.Errorf("%s: Deployment %s is gone", by, name)
			continue
		}
		lines := compare(s.t, name, was.Object["spec"], is.Object["spec"])
		if len(lines) > 0 || was.GetAnnotations()[revision] != is.GetAnnotations()[revision] {
			s.t.Errorf("%s: Deployment %s has revision %s, had %s:\n%s", by, name, is.GetAnnotations()[revision], was.GetAnnotations()[revision], strings.Join(lines, "\n"))
		}
	}
}

// handsBack hands back. The dry run names no operator that OLM will roll out.
func (s *installedScene) handsBack() {
	s.t.Helper()
	out, code := s.output("handback", "--dry-run")
	if code != 0 || strings.Contains(strings.Join(strings.Fields(out), " "), "OLM will roll out") {
		s.t.Fatalf("exit code %d", code)
	}
	s.migrates("handback", "--yes")
}

// migrates runs a command that must succeed. Pods of a Deployment exist until their process has ended.
func (s *installedScene) migrates(args ...string) {
	s.t.Helper()
	s.awaitsPods()
	if _, code := s.outputVia(s.kubeconfig, args...); code != 0 {
		s.t.Fatalf("exit code %d", code)
	}
}

// startsOLM starts OLM again although a supervisor leads. The tools that apply manifests refuse to, unless they are forced.
func (s *installedScene) startsOLM() {
	s.t.Helper()
	out, err := s.tools.applyOLM()
	if err == nil || !strings.Contains(out, `conflict with "chandlery-takeover"`) {
		s.t.Errorf("%s starts OLM beside a supervisor", s.olm)
	}
	if s.olm == byHelm {
		s.tools.helm(append([]string{"upgrade", "olm", s.tools.chart.Dir, "--force-conflicts"}, set(s.tools.settings...)...)...)
		return
	}
	s.tools.kubectl("scale", "deployment", "--namespace", s.namespace, "--replicas=1", olmPrograms[0], olmPrograms[1])
}

// stopsOLM scales OLM to 0. Supervisors wait until the last pod has ended.
func (s *installedScene) stopsOLM() {
	s.t.Helper()
	d := &appsv1.Deployment{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: olmPrograms[1]}, d); err != nil {
		s.t.Fatal(err)
	}
	// No node runs this pod. It stands for one that takes long to end.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "ends-late", Labels: d.Spec.Selector.MatchLabels}, Spec: d.Spec.Template.Spec}
	pod.Spec.SchedulerName = "none"
	s.create(pod)
	s.tools.kubectl("scale", "deployment", "--namespace", s.namespace, "--replicas=0", olmPrograms[0], olmPrograms[1])
	s.settle()
	// A supervisor looks every second.
	const wait = 4 * time.Second
	for begun := time.Now(); time.Since(begun) < wait && pause.For(s.t.Context(), testenv.Polling); {
		lease := &coordinationv1.Lease{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
			s.t.Fatal(err)
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
			s.t.Fatalf("%s leads while a pod of OLM has not ended", holder)
		}
	}
	if err := s.Delete(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// versions returns the UIDs of all ClusterServiceVersions.
func (s *installedScene) versions() map[string]types.UID {
	s.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(operatorsv1alpha1.ClusterServiceVersionKind))
	if err := s.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]types.UID{}
	for i := range list.Items {
		all[client.ObjectKeyFromObject(&list.Items[i]).String()] = list.Items[i].UID
	}
	return all
}

// sameVersions checks that no ClusterServiceVersion was recreated.
func (s *installedScene) sameVersions(before map[string]types.UID) {
	s.t.Helper()
	after := s.versions()
	for key, uid := range before {
		if after[key] != uid {
			s.t.Errorf("ClusterServiceVersion %s has the UID %q, had %q", key, after[key], uid)
		}
	}
}

// helmRelease is the annotation of the objects of a release.
const helmRelease = "meta.helm.sh/release-name"

// ownedByHelm returns the objects of OLM's release. OLM copies their annotations to pods of the package server.
func (s *installedScene) ownedByHelm() snapshot {
	s.t.Helper()
	owned := snapshot{}
	for key, o := range take(s.t, s.plane) {
		if o.GetAnnotations()[helmRelease] == "olm" && metav1.GetControllerOf(o) == nil {
			owned[key] = o
		}
	}
	const least = 20
	if s.olm == byHelm && len(owned) < least {
		s.t.Errorf("the release has %d objects", len(owned))
	}
	return owned
}

// isOriginal checks that OLM's Deployments have their replicas, and that its objects have the metadata that they had.
func (s *installedScene) isOriginal(owned snapshot) {
	s.t.Helper()
	for _, name := range olmPrograms {
		d := &appsv1.Deployment{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, d); err != nil {
			s.t.Fatal(err)
		}
		if *d.Spec.Replicas != 1 || d.Labels[api.LabelTakenOver] != "" {
			s.t.Errorf("Deployment %s has %d replicas and the labels %v", name, *d.Spec.Replicas, d.Labels)
		}
	}
	after := take(s.t, s.plane)
	for key, was := range owned {
		is := after[key]
		if is == nil || is.GetUID() != was.GetUID() {
			s.t.Errorf("%s was recreated or is gone", key)
			continue
		}
		for _, line := range slices.Concat(
			compare(s.t, key+" labels", anyMap(was.GetLabels()), anyMap(is.GetLabels())),
			compare(s.t, key+" annotations", anyMap(was.GetAnnotations()), anyMap(is.GetAnnotations())),
		) {
			s.t.Error(line)
		}
	}
}

// anyMap converts labels for comparison.
func anyMap(labels map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range labels {
		all[key] = value
	}
	return all
}

// changesOLM changes the replicas of OLM with the tool that installed it.
func (s *installedScene) changesOLM(replicas int32) {
	s.t.Helper()
	if _, err := s.tools.applyOLM("olm.replicaCount=" + strconv.Itoa(int(replicas))); err != nil {
		s.t.Error(err)
	}
	d := &appsv1.Deployment{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: olmPrograms[0]}, d); err != nil {
		s.t.Fatal(err)
	}
	if *d.Spec.Replicas != replicas {
		s.t.Errorf("Deployment %s has %d replicas after its tool set %d", d.Name, *d.Spec.Replicas, replicas)
	}
}

// changesSupervisors starts the supervisors again with Helm, if Helm installed them. They wait.
func (s *installedScene) changesSupervisors() {
	s.t.Helper()
	if s.supervisors == byHelm {
		s.tools.installSupervisors()
	}
}

// overlap is how long a supervisor may write beside OLM until it has noticed that OLM was started again.
const overlap = time.Second

// oneWriterAtATime checks that OLM and the supervisor wrote in a number of turns.
func oneWriterAtATime(s *olmScene, want int) {
	s.t.Helper()
	requests, err := audit.Open(s.plane.AuditLog()).Next()
	if err != nil {
		s.t.Fatal(err)
	}
	slices.SortStableFunc(requests, func(a, b audit.Request) int { return a.At.Compare(b.At) })
	const supervisor = "system:serviceaccount:" + home + ":chandlery-supervisor"
	var turns []string
	last, begun := "", time.Time{}
	for _, r := range requests {
		isOfManager := r.User == supervisor || r.User == olmpeer.AccountIn(s.namespace)
		// A supervisor that waits reports that.
		reports := strings.HasPrefix(r.Resource, "leases.") || strings.HasPrefix(r.Resource, "events")
		const failed = 400
		if !isOfManager || reports || r.Reads() || r.Code >= failed {
			continue
		}
		if r.User != last && r.At.Sub(begun) < overlap {
			continue
		}
		if r.User != last {
			begun = r.At
			turns = append(turns, fmt.Sprintf("%s %s: %s %s %s/%s", r.At.Format("15:04:05.000"), r.User, r.Verb, r.Resource, r.Namespace, r.Name))
		}
		last = r.User
	}
	if len(turns) != want {
		s.t.Errorf("%d turns, want %d:\n%s", len(turns), want, strings.Join(turns, "\n"))
	}
}
