package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/controllers/packagemanifest"
	"github.com/chandlery/chandlery/supervisor/migration"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
)

// uninstalls are the ways to remove a supervisor.
func uninstalls() map[string]func(*world) {
	deployment := func(w *world) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "chandlery-supervisor"}}
	}
	return map[string]func(*world){
		"deleted Deployment": func(w *world) { w.Expect(w.Delete(w.T.Context(), deployment(w))).To(gomega.Succeed()) },
		"no replicas": func(w *world) {
			d := deployment(w)
			w.Modify(d, func() { d.Spec.Replicas = new(int32(0)) })
		},
		"deleted namespace": func(w *world) {
			w.Expect(w.Delete(w.T.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}})).To(gomega.Succeed())
		},
	}
}

// awaitUninstalled waits until there is no APIService, and then deletes a namespace.
func awaitUninstalled(w *world) {
	w.T.Helper()
	bystander := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bystander-"}}
	w.Create(bystander)
	w.Eventually(w.gone).WithContext(w.T.Context()).Should(gomega.Succeed())
	w.Expect(w.Delete(w.T.Context(), bystander)).To(gomega.Succeed())
	w.Eventually(func() bool {
		return apierrors.IsNotFound(w.Get(w.T.Context(), client.ObjectKeyFromObject(bystander), bystander))
	}).WithTimeout(time.Minute).Should(gomega.BeTrue())
}

// TestUninstalling removes the supervisor in each way. The APIService must not remain, and a namespace can be deleted.
func TestUninstalling(t *testing.T) {
	for name, uninstall := range uninstalls() {
		for n := range testenv.Uninstalls(t) {
			t.Run(fmt.Sprintf("%s %d", name, n+1), func(t *testing.T) {
				w := supervise(t)
				w.available()
				uninstall(w)
				awaitUninstalled(w)
			})
		}
	}
}

// TestUninstallingWithoutLeader stops the leader, which leaves the APIService to its successor. It then removes the supervisor
// in each way, while a process runs that does not get the Lease, and stops that process.
func TestUninstallingWithoutLeader(t *testing.T) {
	for name, uninstall := range uninstalls() {
		for n := range testenv.Uninstalls(t) {
			t.Run(fmt.Sprintf("%s %d", name, n+1), func(t *testing.T) {
				w := supervise(t)
				w.available()
				w.stop()
				w.Expect(w.gone(t.Context())).NotTo(gomega.Succeed(), "the process is restarted")
				w.Create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "supervisor"}, Spec: coordinationv1.LeaseSpec{
					HolderIdentity: new("killed"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro()),
				}})
				w.start(packagemanifest.Auto, ctrl.Options{
					LeaderElection: true, LeaderElectionID: "supervisor", LeaderElectionNamespace: w.Namespace, LeaseDuration: new(time.Hour),
				})
				awaitAnswer(w)
				w.Expect(w.Requests.Writes(testenv.Containing("/leases"))).To(gomega.BeEmpty(), "the process leads")
				uninstall(w)
				if name == "no replicas" {
					w.stop()
				}
				awaitUninstalled(w)
			})
		}
	}
}

// TestOwner deletes the ClusterRole of a supervisor that does not run. The garbage collector then deletes the APIService.
func TestOwner(t *testing.T) {
	w := testenv.New(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "chandlery-supervisor"}}
	w.Create(role)
	s := supervise(t)
	s.available()
	live := apiService()
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(gomega.Succeed())
	w.Expect(live.GetOwnerReferences()).To(gomega.HaveLen(1))
	w.Expect(live.GetOwnerReferences()[0].UID).To(gomega.Equal(role.UID))
	s.stop()
	w.Expect(w.Delete(t.Context(), role)).To(gomega.Succeed())
	s.Eventually(s.gone).WithContext(t.Context()).Should(gomega.Succeed())
}

// TestDisabling starts a supervisor that does not serve the API where another one did.
func TestDisabling(t *testing.T) {
	w := &world{World: testenv.New(t), global: controlplane.Namespace(t)}
	u := apiServiceFor(w.Namespace, "chandlery-packagemanifests-service")
	w.Create(u)
	w.start(packagemanifest.Disabled, ctrl.Options{})
	w.Eventually(w.gone).WithContext(t.Context()).Should(gomega.Succeed())
}

// TestTakeover starts a supervisor after a takeover from OLM, with the APIService of OLM's package server. It then begins a
// handback, which returns the APIService itself.
func TestTakeover(t *testing.T) {
	w := &world{World: testenv.New(t), global: controlplane.Namespace(t), unready: true}
	theirs := apiServiceFor("olm", "packageserver-service")
	theirs.SetLabels(map[string]string{"olm.owner": "packageserver", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "olm"})
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: migration.RecordName}, Data: map[string]string{"record.json": `{"phase":"TakenOver"}`},
	}
	w.Create(theirs, record)
	w.serve()
	live := apiService()
	w.Consistently(func(g gomega.Gomega) {
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(gomega.Succeed())
		g.Expect(live.GetLabels()).To(gomega.HaveKey("olm.owner"), "no endpoint of the supervisor is ready")
	}).Should(gomega.Succeed())
	endpoints := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "supervisor"}}
	w.Modify(endpoints, func() { endpoints.Endpoints[0].Conditions.Ready = new(true) })
	w.available()
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(gomega.Succeed())
	if live.GetUID() != theirs.GetUID() || live.GetLabels()["olm.owner"] != "" {
		t.Errorf("the APIService has UID %s, before %s, and labels %v", live.GetUID(), theirs.GetUID(), live.GetLabels())
	}
	if _, insecure, _ := unstructured.NestedBool(live.Object, "spec", "insecureSkipTLSVerify"); insecure {
		t.Error("the certificate is not checked")
	}
	writes := w.Requests.Writes(testenv.Containing("/apiservices/"))
	if len(writes) != 1 || !strings.HasPrefix(writes[0], "PUT ") {
		t.Errorf("writes %v, want one update", writes)
	}

	w.Modify(record, func() { record.Data["record.json"] = `{"phase":"HandingBack"}` })
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "chandlery-supervisor"}}
	w.Modify(deployment, func() { deployment.Spec.Replicas = new(int32(0)) })
	w.Consistently(func() error { return w.Get(t.Context(), client.ObjectKeyFromObject(live), live) }).Should(gomega.Succeed())
	w.Modify(record, func() { record.Data["record.json"] = `{"phase":"TakenOver"}` })
	w.Eventually(w.gone).WithContext(t.Context()).Should(gomega.Succeed())
}

// TestFirstEndpoint starts a supervisor whose Service has no ready endpoint. It must not register an API without a server.
func TestFirstEndpoint(t *testing.T) {
	w := &world{World: testenv.New(t), global: controlplane.Namespace(t), unready: true}
	w.serve()
	w.Consistently(w.gone).WithContext(t.Context()).Should(gomega.Succeed())
	endpoints := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "supervisor"}}
	w.Modify(endpoints, func() { endpoints.Endpoints[0].Conditions.Ready = new(true) })
	w.available()
}

// TestWithdraw deletes only the APIService of the own supervisors, and none during a handback.
func TestWithdraw(t *testing.T) {
	w := testenv.New(t)
	live := apiServiceFor(w.Namespace, "chandlery-packagemanifests-service")
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: migration.RecordName}, Data: map[string]string{"record.json": `{"phase":"HandingBack"}`},
	}
	w.Create(live, record)
	withdraw := func(namespace string) error {
		t.Helper()
		w.Expect(packagemanifest.Withdraw(t.Context(), w.Client, namespace)).To(gomega.Succeed())
		return w.Get(t.Context(), client.ObjectKeyFromObject(live), live)
	}
	w.Expect(withdraw("elsewhere")).To(gomega.Succeed(), "another installation has the APIService")
	w.Expect(withdraw("")).To(gomega.Succeed(), "the process runs outside of a cluster")
	w.Expect(withdraw(w.Namespace)).To(gomega.Succeed(), "a handback returns the APIService")
	w.Modify(record, func() { record.Data["record.json"] = `{"phase":"TakenOver"}` })
	w.Expect(apierrors.IsNotFound(withdraw(w.Namespace))).To(gomega.BeTrue())
	w.Expect(packagemanifest.Withdraw(t.Context(), w.Client, w.Namespace)).To(gomega.Succeed(), "there is none")
}

// TestForeignAPIService starts a supervisor beside another package server. It logs the owner of the APIService once, and
// registers its own one when the other one is gone.
func TestForeignAPIService(t *testing.T) {
	s := &world{World: testenv.New(t), global: controlplane.Namespace(t)}
	w := s.World
	u := apiServiceFor("olm", "packageserver-service")
	u.SetLabels(map[string]string{"olm.owner": "packageserver", "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "olm"})
	w.Create(u)
	var logged logLines
	install(s)
	s.start(packagemanifest.Auto, ctrl.Options{Logger: logged.logger()})
	const message = "Not serving PackageManifests: the APIService belongs to another installation"
	owner := "Service olm/packageserver-service, olm.owner.kind=ClusterServiceVersion, olm.owner.namespace=olm, olm.owner=packageserver"
	want := []logLine{{"level": 0.0, "msg": message, "apiService": u.GetName(), "owner": owner}}
	w.Eventually(func() []logLine { return logged.of(message) }).Should(gomega.Equal(want))
	w.Consistently(func(g gomega.Gomega) {
		live := apiService()
		g.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(live), live)).To(gomega.Succeed())
		name, _, _ := unstructured.NestedString(live.Object, "spec", "service", "name")
		g.Expect(name).To(gomega.Equal("packageserver-service"))
	}).Should(gomega.Succeed())
	w.Expect(logged.of(message)).To(gomega.HaveLen(1))
	w.Expect(w.Delete(t.Context(), u)).To(gomega.Succeed())
	s.available()
}

// apiServiceFor returns an APIService that leads to a Service.
func apiServiceFor(namespace, service string) *unstructured.Unstructured {
	u := apiService()
	u.Object["spec"] = map[string]any{
		"group": "packages.operators.coreos.com", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": namespace, "name": service},
	}
	return u
}
