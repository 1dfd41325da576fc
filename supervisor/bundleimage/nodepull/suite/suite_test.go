package suite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/bundles/image"
	"github.com/chandlery/chandlery/bundles/image/bundlelog"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/bundleimage/nodepull"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

const (
	digest    = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	reference = "registry.test/lamp@" + digest
	printed   = "the manifests"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, controlplane.Options{Nodes: -1}, testenv.InstallCRDs))
}

// world is a namespace that enforces the restricted Pod Security Standard, with a CatalogSource. Managers have the
// permissions of the supervisor.
type world struct {
	*testenv.World

	clock clock.PassiveClock
	// log is the log of pods. Set it before a pull.
	log string
	// dead makes the API server refuse all requests of managers, as if their process were killed.
	dead *atomic.Bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: testenv.New(t), clock: clock.RealClock{}, log: logOf(t, []byte(printed)), dead: &atomic.Bool{}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}
	w.Modify(namespace, func() {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
	})
	w.Create(fixtures.ServedCatalog(w.Namespace, "shop", "shop.test:50051"))
	w.UseDeployedRole()
	w.Eventually(func() error {
		return w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: "default"}, &corev1.ServiceAccount{})
	}).Should(gomega.Succeed())
	return w
}

// logOf returns the log in which the registry's program prints an archive.
func logOf(t *testing.T, archive []byte) string {
	t.Helper()
	var log strings.Builder
	if err := bundlelog.Write(&log, archive); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

var errDead = errors.New("the process was killed")

// lead runs a Puller until the end of the test, or until stop is called.
func (w *world) lead() (p *nodepull.Puller, stop func()) {
	w.T.Helper()
	dead := &atomic.Bool{}
	w.dead = dead
	w.Config.WrapTransport = nil
	w.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return testenv.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if dead.Load() {
				return nil, errDead
			}
			return next.RoundTrip(r) //nolint:wrapcheck // it stands for the other
		})
	})
	stop = w.StartManager(ctrl.Options{}, func(mgr testenv.Manager) error {
		p = nodepull.New(nodepull.Options{
			Settings: nodepull.Settings{RegistryImage: "chandlery/registry:v1", SetUserID: true},
			Client:   mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: w.clock,
			Logs: func(_ context.Context, _ types.NamespacedName, _ string, limit int64) (io.ReadCloser, error) {
				return io.NopCloser(io.LimitReader(strings.NewReader(w.log), limit)), nil
			},
		})
		return mgr.Add(p)
	})
	return p, stop
}

// pull is a running pull.
type pull struct {
	cancel context.CancelFunc
	ended  chan error
	result *nodepull.Result
}

// start lets a node pull the image.
func (w *world) start(p *nodepull.Puller) *pull {
	ctx, cancel := context.WithCancel(w.T.Context())
	started := &pull{cancel: cancel, ended: make(chan error, 1)}
	w.T.Cleanup(cancel)
	go func() {
		var err error
		started.result, err = p.Pull(ctx, nodepull.Request{
			Image: reference, Catalog: types.NamespacedName{Namespace: w.Namespace, Name: "shop"}, Secrets: []string{"pull"}, Timeout: time.Hour,
			Started: func(types.NamespacedName) {},
		})
		started.ended <- err
	}()
	return started
}

// pods returns the pods of the test.
func (w *world) pods() []corev1.Pod {
	w.T.Helper()
	list := &corev1.PodList{}
	if err := w.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		w.T.Fatal(err)
	}
	return list.Items
}

// pod waits until there is one pod.
func (w *world) pod() *corev1.Pod {
	w.T.Helper()
	w.Eventually(w.pods).Should(gomega.HaveLen(1))
	return &w.pods()[0]
}

// exit ends the container with the image of a pod, as a kubelet does.
func (w *world) exit(pod *corev1.Pod, code int32, message string) {
	w.T.Helper()
	w.ModifyStatus(pod, func() {
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "bundle", Image: reference, ImageID: reference,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}},
		}}
	})
}

// succeeds waits until a pull has succeeded and has left nothing.
func (w *world) succeeds(p *pull) {
	w.T.Helper()
	if err := <-p.ended; err != nil || p.result.Digest != digest || string(p.result.Archive) != printed {
		w.T.Errorf("%+v, %v", p.result, err)
	}
	w.Eventually(w.pods).Should(gomega.BeEmpty())
}

// fails waits until a pull has failed.
func (w *world) fails(p *pull, text string) {
	w.T.Helper()
	if err := <-p.ended; image.ReasonOf(err) != image.ReasonNode || !strings.Contains(err.Error(), text) {
		w.T.Errorf("%v, want %q", err, text)
	}
}

// failsBecause waits until a pull has failed with a cause, which is the whole text without the image.
func (w *world) failsBecause(p *pull, cause string) {
	w.T.Helper()
	err := <-p.ended
	if known, ok := errors.AsType[*image.Error](err); !ok || known.Reason != image.ReasonNode || known.Err.Error() != cause {
		w.T.Errorf("%v, want %q", err, cause)
	}
}

func TestPull(t *testing.T) {
	w := newWorld(t)
	p, _ := w.lead()
	running := w.start(p)
	pod := w.pod()
	if pod.Spec.ServiceAccountName != "default" || len(pod.Spec.Volumes) != 1 || len(pod.Spec.ImagePullSecrets) != 1 || pod.Spec.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("%+v", pod.Spec)
	}
	w.exit(pod, 0, "")
	w.succeeds(running)

	running = w.start(p)
	w.exit(w.pod(), 1, "exec format error")
	w.fails(running, "exit code 1 on node : exec format error")
	w.Eventually(w.pods).Should(gomega.BeEmpty())
}

// TestPullOfLargeManifests has manifests that are too large for a log: the program in the pod does not print them, or the log
// is not the whole one.
func TestPullOfLargeManifests(t *testing.T) {
	const megabytes = 1 << 20
	large := make([]byte, 12*megabytes)
	refusal := bundlelog.Write(io.Discard, large)
	if refusal == nil {
		t.Fatal("12 MiB are printed")
	}
	// A log is text in lines. Nodes rotate it, and can lose a line.
	lines := strings.SplitAfter(logOf(t, large[:5*megabytes]), "\n")
	const (
		remedy   = "give the supervisor access to the image with a pull secret or a mirror"
		tooLarge = "the manifests have more than 6291456 bytes when compressed, the most that a log hands over; " + remedy
		cut      = "the node has not kept the whole log of the manifests; raise containerLogMaxSize of its kubelet, or " + remedy
	)
	w := newWorld(t)
	p, _ := w.lead()
	for _, test := range []struct {
		why, log string
		code     int32
		message  string
		want     string
	}{
		{why: "the program refuses", code: bundlelog.ExitTooLarge, message: "registry: " + refusal.Error(), want: tooLarge},
		{why: "a longer log", log: lines[0] + strings.Repeat(lines[1], 4*len(lines)), want: tooLarge},
		{why: "a rotated log", log: strings.Join(lines[len(lines)/2:], ""), want: cut + ": its beginning is missing"},
		{why: "a log without its end", log: strings.Join(lines[:len(lines)/2], ""), want: cut + ": its end is missing"},
		{why: "a log without a line", log: lines[0] + strings.Join(lines[2:], ""), want: cut + ": its checksum differs"},
	} {
		w.log = test.log
		running := w.start(p)
		pod := w.pod()
		w.exit(pod, test.code, test.message)
		ended := "pod " + client.ObjectKeyFromObject(pod).String() + " has ended, but its log cannot be read: "
		if test.code != 0 {
			ended = fmt.Sprintf("exit code %d on node : registry: ", test.code)
		}
		w.failsBecause(running, "a node cannot pull it: "+ended+test.want)
		if t.Failed() {
			t.Fatal(test.why)
		}
		w.Eventually(w.pods).Should(gomega.BeEmpty())
	}
}

// TestPullAfterAdmission has an admission policy that rewrites registries and pull secrets of pods, as an agent of a mirror
// does.
func TestPullAfterAdmission(t *testing.T) {
	w := newWorld(t)
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "mirror-" + w.Namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail), ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[
				JSONPatch{op: "replace", path: "/spec/containers/0/image", value: object.spec.containers[0].image.replace("registry.test/", "mirror.test/copies/")},
				JSONPatch{op: "add", path: "/spec/imagePullSecrets", value: [Object.spec.imagePullSecrets{name: "mirror"}]}
			]`}}},
		},
	}
	w.Create(policy, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	})
	w.Eventually(func(g gomega.Gomega) {
		probe := restrictedPod(w.Namespace)
		g.Expect(w.Client.Create(t.Context(), probe, client.DryRunAll)).To(gomega.Succeed())
		g.Expect(probe.Spec.ImagePullSecrets).To(gomega.HaveLen(1))
	}).Should(gomega.Succeed())

	p, _ := w.lead()
	running := w.start(p)
	pod := w.pod()
	if got := pod.Spec; got.Containers[0].Image != "mirror.test/copies/lamp@"+digest || len(got.ImagePullSecrets) != 1 || got.ImagePullSecrets[0].Name != "mirror" {
		t.Errorf("the policy has no effect: %+v", got)
	}
	w.exit(pod, 0, "")
	w.succeeds(running)
}

// restrictedPod returns a pod of the restricted Pod Security Standard.
func restrictedPod(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "probe", Image: reference, SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
}

// TestPullAfterKill kills the leader while a pod runs. The next leader uses the pod.
func TestPullAfterKill(t *testing.T) {
	w := newWorld(t)
	p, stop := w.lead()
	running := w.start(p)
	pod := w.pod()
	w.dead.Store(true)
	running.cancel()
	stop()
	<-running.ended
	if left := w.pod(); left.UID != pod.UID {
		t.Errorf("pod %s replaced pod %s", left.UID, pod.UID)
	}
	w.exit(pod, 0, "")
	p, _ = w.lead()
	w.succeeds(w.start(p))
	created := w.Requests.Writes(testenv.Containing("POST /api/v1/namespaces/" + w.Namespace + "/pods"))
	if len(created) != 2 {
		t.Errorf("one pod for each leader at most, the second refused, was requested: %v", created)
	}
}

// TestPullDeletesItsPod ends a pull in other ways than by a result.
func TestPullDeletesItsPod(t *testing.T) {
	t.Run("the leader stops", func(t *testing.T) {
		w := newWorld(t)
		p, _ := w.lead()
		running := w.start(p)
		w.pod()
		running.cancel()
		w.fails(running, "has not ended")
		w.Eventually(w.pods).Should(gomega.BeEmpty())
	})
	t.Run("the CatalogSource is deleted", func(t *testing.T) {
		w := newWorld(t)
		p, _ := w.lead()
		running := w.start(p)
		w.pod()
		w.Expect(w.Delete(t.Context(), &operatorsv1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "shop"}})).To(gomega.Succeed())
		w.fails(running, "deleted")
		w.fails(w.start(p), "reading CatalogSource")
		w.Eventually(w.pods).Should(gomega.BeEmpty())
	})
}

// TestOldPodsAreDeleted has pods of a process that was killed and has no successor for a while.
func TestOldPodsAreDeleted(t *testing.T) {
	w := newWorld(t)
	p, stop := w.lead()
	running := w.start(p)
	w.pod()
	w.dead.Store(true)
	running.cancel()
	stop()
	<-running.ended
	others := w.pod().DeepCopy()
	others.ObjectMeta = metav1.ObjectMeta{
		Namespace: w.Namespace, Name: "of-olm", Labels: map[string]string{api.LabelManaged: "true", api.LabelUnpackRef: "hash"},
	}
	w.Create(others)

	_, stop = w.lead()
	w.Consistently(w.pods).Should(gomega.HaveLen(2))
	stop()
	w.clock = testclock.NewFakePassiveClock(time.Now().Add(10 * time.Minute))
	w.lead()
	w.Eventually(w.pods).Should(gomega.HaveLen(1))
	w.Consistently(w.pods).Should(gomega.ContainElement(gomega.HaveField("Name", "of-olm")))
}

func TestPullSaysWhyThereIsNoPod(t *testing.T) {
	t.Run("a quota", func(t *testing.T) {
		w := newWorld(t)
		quota := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "none"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
		}
		w.Create(quota)
		w.Eventually(func() int {
			w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(quota), quota)).To(gomega.Succeed())
			return len(quota.Status.Hard)
		}).Should(gomega.Equal(1))
		p, _ := w.lead()
		w.fails(w.start(p), "exceeded quota: none")
	})
	t.Run("a pod of a user with the same name", func(t *testing.T) {
		w := newWorld(t)
		p, _ := w.lead()
		running := w.start(p)
		foreign := w.pod().DeepCopy()
		running.cancel()
		<-running.ended
		w.EventuallyGone(foreign.DeepCopy())
		foreign.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: foreign.Name}
		w.Create(foreign)
		w.exit(foreign, 0, "")
		w.fails(w.start(p), "does not belong to CatalogSource "+w.Namespace+"/shop; delete it")
		w.Consistently(w.pods).Should(gomega.HaveLen(1))
	})
}
