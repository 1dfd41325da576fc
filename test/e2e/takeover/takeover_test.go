package takeover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/testenv"
)

// TestTakeOver performs the steps of an administrator. A supervisor waits, a dry run shows the
// changes, the command takes over, and handing back undoes it. Then a supervisor takes over while
// it is killed repeatedly, and updates work. The cluster is handed back and taken over once more.
// Supervisors must not compete. Finally, OLM is removed.
func TestTakeOver(t *testing.T) {
	s := newScene(t)
	before := take(t, s.plane)

	running := s.supervise("first")
	s.stands(running, "Deployment olm/catalog-operator (1 of 1 replicas ready", "Deployment olm/olm-operator", "kubectl chandlery migrate --dry-run",
		"kubectl -n olm scale deployment catalog-operator olm-operator --replicas=0")
	s.shows("takeover", "Deployment olm/olm-operator from 1 to 0")
	unchanged(s, "a supervisor that waits and a dry run", before, nil)

	s.command("takeover", "--yes")
	s.leads(running)
	s.settled()
	after := take(t, s.plane)
	untouched(t, before, after)
	s.truthful(before)
	nothingMore(t, before, after)
	locksReplicas(s, true)
	t.Log("after taking over:\n" + strings.Join(differences(t, before, after, passes), "\n"))

	s.shows("handback", "Deployment olm/olm-operator to 1 replica")
	s.command("handback", "--yes")
	s.stepsDown(running, "is being handed back")
	s.runs()
	s.handedBack(before)
	locksReplicas(s, false)

	last := s.crashes()
	after = take(t, s.plane)
	untouched(t, before, after)
	s.truthful(before)
	nothingMore(t, before, after)

	s.publish("lamp", "1.0.0", "1.1.0")
	s.installed("lamps", "lamp.v1.1.0")
	s.publish("buoy", "1.0.0", "1.1.0")
	s.installed("buoys", "buoy.v1.1.0")
	// With --takeover it would take over again.
	if err := last.Stop(patience); err != nil {
		t.Fatal(err)
	}
	s.command("migrate", "--back", "--yes")
	s.runs()
	s.updated(before)
	running = s.proposes()

	s.permitLease("default")
	elsewhere := s.supervise("elsewhere", "--leader-election-namespace", "default", "--manager-namespaces", home)
	s.stands(elsewhere, "another supervisor (again_", "Lease chandlery-system/chandlery-supervisor")
	if err := elsewhere.Kill(); err != nil {
		t.Fatal(err)
	}
	s.startsAgain("olm-operator")
	s.stands(running, "scaled up again since it was taken over from", "Stepping down", "Deployment olm/olm-operator")
	again := s.supervise("stubborn", "--takeover")
	s.stands(again, "was scaled up again after the takeover")
	if err := again.Kill(); err != nil {
		t.Fatal(err)
	}
	migrates(s)
	s.leads(running)
	s.publish("lamp", "1.0.0", "1.1.0", "1.2.0")
	s.installed("lamps", "lamp.v1.2.0")
	finishes(s)
}

// startsAgain scales a Deployment of OLM up, as an uninformed user might.
func (s *scene) startsAgain(name string) {
	s.t.Helper()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = "olm", name
	if err := s.Patch(s.t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))); err != nil {
		s.t.Fatal(err)
	}
}

// stands waits until a supervisor has logged that it waits, with all texts, and has created an Event. It must not
// end.
func (s *scene) stands(p *process.Process, says ...string) {
	s.t.Helper()
	testenv.Until(s.t, patience, p.Name()+" to wait", func(ctx context.Context) string {
		select {
		case <-p.Done():
			s.t.Fatalf("the supervisor ended by itself:\n%s", process.Tail(p.Log()))
		default:
		}
		text, err := os.ReadFile(p.Log())
		if err != nil {
			return err.Error()
		}
		for _, part := range append([]string{"Waiting until this process may lead"}, says...) {
			if !bytes.Contains(text, []byte(part)) {
				return fmt.Sprintf("it did not say %q but: %s", part, text)
			}
		}
		var events eventsv1.EventList
		if err := s.List(ctx, &events); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Reason == api.ReasonWaitingToLead && e.ReportingInstance == p.Name() && strings.Contains(e.Note, says[0])
		}) {
			return "there is no Event"
		}
		return ""
	})
}

// permitLease permits the supervisor's account to use a Lease in a namespace.
func (s *scene) permitLease(namespace string) {
	s.t.Helper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: "lease"}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: "chandlery-supervisor"}},
		},
	} {
		if err := s.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

// leads waits until a supervisor leads.
func (s *scene) leads(p *process.Process) {
	s.t.Helper()
	begun := time.Now()
	testenv.Until(s.t, patience, p.Name()+" to lead", func(ctx context.Context) string {
		lease := &coordinationv1.Lease{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
			return err.Error()
		}
		if holder := supervisor.IdentityOf(ptr.Deref(lease.Spec.HolderIdentity, "")); holder != p.Name() {
			return fmt.Sprintf("%q leads", holder)
		}
		return ""
	})
	s.t.Logf("%s leads after %s", p.Name(), time.Since(begun).Round(time.Millisecond))
}

// stepsDown waits until a supervisor that led waits, with all texts in its log, and stops it.
func (s *scene) stepsDown(p *process.Process, says ...string) {
	s.t.Helper()
	s.stands(p, append(says, "Stepping down")...)
	if err := p.Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// output runs a command and returns its output and its exit code.
func (s *scene) output(args ...string) (out string, code int) {
	s.t.Helper()
	return s.outputVia(s.plane.Kubeconfig(), args...)
}

// outputVia runs a command with a kubeconfig and returns its output and its exit code.
func (s *scene) outputVia(kubeconfig string, args ...string) (out string, code int) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(bin, "supervisor"), append(args, "--kubeconfig", kubeconfig)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	s.t.Logf("$ supervisor %s\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// command runs a command that must succeed.
func (s *scene) command(args ...string) {
	s.t.Helper()
	if _, code := s.output(args...); code != 0 {
		s.t.Fatalf("exit code %d", code)
	}
}

// shows runs a command that changes nothing.
func (s *scene) shows(command, says string) {
	s.t.Helper()
	out, code := s.output(command, "--dry-run")
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), says) {
		s.t.Errorf("exit code %d, and it does not say %q", code, says)
	}
	out, code = s.output(command, "--dry-run", "-o", "json")
	var plan migration.Plan
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != 0 || plan.Verdict != migration.Possible || len(plan.Steps) == 0 {
		s.t.Errorf("exit code %d, error %v, plan %+v", code, err, plan)
	}
}

// unchanged checks that only expected changes were made.
func unchanged(s *scene, by string, before snapshot, expected func(string) bool) {
	s.t.Helper()
	if lines := differences(s.t, before, take(s.t, s.plane), expected); len(lines) > 0 {
		s.t.Errorf("changed by %s:\n%s", by, strings.Join(lines, "\n"))
	}
}

// settled waits until supervisors have taken over and are idle.
func (s *scene) settled() {
	s.t.Helper()
	testenv.Until(s.t, patience, "the catalog to be served by replicas alone", func(ctx context.Context) string {
		var pods corev1.PodList
		if err := s.List(ctx, &pods, client.InNamespace("olm"), client.MatchingLabels{"olm.catalogSource": "hosted.catalog"}); err != nil {
			return err.Error()
		}
		ours := 0
		for _, pod := range pods.Items {
			if pod.Labels["app.kubernetes.io/managed-by"] != "chandlery-supervisor" {
				return "pod " + pod.Name
			}
			ours++
		}
		if ours == 0 {
			return "no replicas"
		}
		return ""
	})
	s.still()
}

// still waits until nothing changes any more.
func (s *scene) still() {
	s.t.Helper()
	const looks = 3
	last, same := revisions(s.t, s.plane), 0
	testenv.Until(s.t, patience, "nothing to change", func(context.Context) string {
		now := revisions(s.t, s.plane) //nolint:contextcheck // it has the test's own
		lines := cmp.Diff(last, now)
		last = now
		if lines != "" {
			same = 0
			return lines
		}
		same++
		if same < looks {
			return "a moment of rest"
		}
		return ""
	})
}

// passes reports whether a difference is irrelevant: in OLM's own Deployments, which are scaled.
func passes(line string) bool {
	for _, part := range []string{"Deployment olm/olm-operator ", "Deployment olm/catalog-operator ", "ReplicaSet olm/olm-operator-", "ReplicaSet olm/catalog-operator-", "Pod olm/olm-operator-", "Pod olm/catalog-operator-"} {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// untouched checks that everything that OLM has installed runs unchanged: Deployments of operators
// with their generation, their pods, and everything that the pods depend on.
func untouched(t *testing.T, before, after snapshot) {
	t.Helper()
	seen := 0
	for key, was := range before {
		namespace := was.GetNamespace()
		if namespace != "lamps" && namespace != "buoys" && key != "Deployment olm/packageserver" {
			continue
		}
		if kind := was.GetKind(); kind != "Deployment" && kind != "ReplicaSet" && kind != "Pod" && kind != "Secret" && kind != "InstallPlan" {
			continue
		}
		is := after[key]
		switch {
		case is == nil:
			t.Errorf("%s is gone", key)
			continue
		case is.GetUID() != was.GetUID() || is.GetGeneration() != was.GetGeneration():
			t.Errorf("%s: generation %d, was %d; UID %s, was %s", key, is.GetGeneration(), was.GetGeneration(), is.GetUID(), was.GetUID())
		}
		seen++
		if was.GetKind() == "Secret" {
			// The metadata records how the object was applied.
			if text(t, is.Object["data"]) != text(t, was.Object["data"]) {
				t.Errorf("%s: its certificates changed", key)
			}
			continue
		}
		if lines := compare(t, key, content(was), content(is)); len(lines) > 0 {
			t.Errorf("changed:\n%s", strings.Join(lines, "\n"))
		}
	}
	const least = 10
	if seen < least {
		t.Errorf("only %d objects were compared", seen)
	}
}

// truthful checks that statuses describe the actual state.
func (s *scene) truthful(before snapshot) {
	s.t.Helper()
	for _, o := range operators {
		sub := &operatorsv1alpha1.Subscription{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: o.namespace, Name: o.pkg}, sub); err != nil {
			s.t.Fatal(err)
		}
		version := o.pkg + ".v1.0.0"
		if sub.Status.InstalledCSV != version || sub.Status.CurrentCSV != version || sub.Status.State != operatorsv1alpha1.SubscriptionStateAtLatest {
			s.t.Errorf("Subscription %s: %+v", sub.Name, sub.Status)
		}
		if len(sub.Status.CatalogHealth) == 0 {
			s.t.Errorf("Subscription %s does not tell of the catalogs", sub.Name)
		}
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: o.namespace, Name: version}, csv); err != nil {
			s.t.Fatal(err)
		}
		was := before["ClusterServiceVersion "+o.namespace+"/"+version]
		since, _, err := unstructured.NestedString(was.Object, "status", "lastTransitionTime")
		if err != nil {
			s.t.Fatal(err)
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded || csv.Status.LastTransitionTime.UTC().Format(time.RFC3339) != since {
			s.t.Errorf("ClusterServiceVersion %s is %s since %s, was since %s", csv.Name, csv.Status.Phase, csv.Status.LastTransitionTime, since)
		}
	}
	shop := &operatorsv1alpha1.CatalogSource{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "olm", Name: "shop"}, shop); err != nil {
		s.t.Fatal(err)
	}
	if shop.Status.GRPCConnectionState == nil || shop.Status.GRPCConnectionState.LastObservedState != "READY" {
		s.t.Errorf("CatalogSource shop: %+v", shop.Status)
	}
}

// nothingMore checks that nothing was created again under another name: no InstallPlan, role,
// version or ServiceAccount.
func nothingMore(t *testing.T, before, after snapshot) {
	t.Helper()
	for key := range after {
		kind, _, _ := strings.Cut(key, " ")
		if before[key] != nil || !slices.Contains([]string{"InstallPlan", "ClusterServiceVersion", "Subscription", "OperatorGroup", "Operator", "OperatorCondition", "Role", "ClusterRole", "ServiceAccount", "Secret", "Service"}, kind) {
			continue
		}
		t.Errorf("there is now also %s", key)
	}
}

// handedBack compares the cluster with its state before the takeover.
func (s *scene) handedBack(before snapshot) {
	s.t.Helper()
	s.still()
	unchanged(s, "taking over and handing back", before, func(line string) bool { return passes(line) || afterwards(line) })
}

// afterwards reports whether a difference may remain after handing back.
func afterwards(line string) bool {
	subject, rest, _ := strings.Cut(strings.TrimPrefix(line, "new: "), " ")
	name, field, _ := strings.Cut(rest, " ")
	name = strings.TrimSuffix(name, ":")
	switch {
	// OLM removes no conditions that it does not know.
	case subject == "CatalogSource" && strings.HasPrefix(field, "status conditions"):
		return false
	// OLM writes the status again when it starts.
	case strings.HasPrefix(field, "status "), strings.HasPrefix(field, "status:"):
		return slices.Contains([]string{"CatalogSource", "ClusterServiceVersion", "Subscription", "Operator", "OperatorCondition", "NetworkPolicy"}, subject) || remade(subject, name)
	// The generation increases with each write.
	case strings.HasPrefix(field, "metadata generation:"):
		return slices.Contains([]string{"NetworkPolicy", "ValidatingWebhookConfiguration"}, subject)
	// A recreated object has a new UID and time.
	case strings.HasPrefix(field, "metadata uid:"), strings.HasPrefix(field, "metadata creationTimestamp:"):
		return remade(subject, name)
	// The pod of a catalog has another node and another token.
	case subject == "Pod" && strings.HasPrefix(name, "olm/hosted.catalog-") && (strings.HasPrefix(field, "spec nodeName:") || strings.HasPrefix(field, "metadata labels topology.kubernetes.io/") || strings.HasPrefix(field, "spec volumes:") || strings.HasPrefix(field, "spec containers:")):
		return true
	default:
		return false
	}
}

// remade reports whether an object was deleted and recreated by supervisors.
func remade(kind, name string) bool {
	switch kind {
	case "NetworkPolicy":
		return name == "olm/hosted.catalog-unpack-bundles"
	case "Pod":
		return strings.HasPrefix(name, "olm/hosted.catalog-")
	case "ClusterRoleBinding":
		return name == "lamp-operator-service-system:auth-delegator"
	case "RoleBinding":
		return name == "kube-system/lamp-operator-service-auth-reader"
	default:
		return false
	}
}

// crashes takes over with supervisors that are killed, each later than the previous one, and then with one that is not,
// which it returns. Three of twelve times are sampled for each of $KILLS, or all with 0.
func (s *scene) crashes() *process.Process {
	s.t.Helper()
	const all, sampled, step = 12, 3, 100 * time.Millisecond
	times := min(sampled*kills(s.t), all)
	if times == 0 {
		times = all
	}
	for i := range times {
		p := s.supervise(fmt.Sprintf("killed-%d", i), "--takeover")
		after := time.Duration(spread(i, times, all)+3) * step
		select {
		case <-time.After(after):
		case <-p.Done():
			s.t.Fatalf("the supervisor ended by itself:\n%s", process.Tail(p.Log()))
		}
		if err := p.Kill(); err != nil {
			s.t.Fatal(err)
		}
		s.t.Logf("killed after %s: %s", after, s.phase())
	}
	last := s.supervise("last", "--takeover")
	s.settled()
	return last
}

// phase returns the phase of the takeover, and releases the Lease of a killed supervisor.
func (s *scene) phase() string {
	s.t.Helper()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = home, api.LeaseName
	if err := client.IgnoreNotFound(s.Delete(s.t.Context(), lease)); err != nil {
		s.t.Fatal(err)
	}
	record := &corev1.ConfigMap{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: home, Name: migration.RecordName}, record); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(record.Data["record.json"]), " ")
}

// installed waits until a version is installed and the previous one is deleted.
func (s *scene) installed(namespace, version string) {
	s.t.Helper()
	testenv.Until(s.t, patience, version+" to be installed", func(ctx context.Context) string {
		list := &operatorsv1alpha1.ClusterServiceVersionList{}
		if err := s.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err.Error()
		}
		var states []string
		for _, csv := range list.Items {
			if csv.Labels["olm.copiedFrom"] == "" {
				states = append(states, csv.Name+" is "+string(csv.Status.Phase)+": "+csv.Status.Message)
			}
		}
		if len(states) == 1 && strings.HasPrefix(states[0], version+" is Succeeded") {
			return ""
		}
		return strings.Join(states, "; ")
	})
}

// updated checks that OLM has its replicas and its catalog pod again, that no Deployment and no
// annotations of the supervisor remain, and that the updates remain.
func (s *scene) updated(before snapshot) {
	s.t.Helper()
	s.still()
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := &appsv1.Deployment{}
		if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "olm", Name: name}, d); err != nil {
			s.t.Fatal(err)
		}
		if *d.Spec.Replicas != 1 || d.Labels[api.LabelTakenOver] != "" {
			s.t.Errorf("Deployment %s: %d replicas, labels %v", name, *d.Spec.Replicas, d.Labels)
		}
	}
	s.installed("lamps", "lamp.v1.1.0")
	s.installed("buoys", "buoy.v1.1.0")
	err := s.Get(s.t.Context(), client.ObjectKey{Namespace: "olm", Name: "hosted.catalog"}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		s.t.Errorf("the Deployment of the catalog: %v", err)
	}
	after := take(s.t, s.plane)
	for key := range before {
		if strings.HasPrefix(key, "Pod olm/hosted.catalog-") && after[key] == nil {
			s.t.Errorf("%s is not there again", key)
		}
	}
	for key, o := range after {
		for field := range o.GetAnnotations() {
			if strings.HasPrefix(field, "chandlery.dev/") && o.GetKind() != "ConfigMap" {
				s.t.Errorf("%s has the annotation %s", key, field)
			}
		}
	}
}
