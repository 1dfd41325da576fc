package tenant_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// look is twice the interval between two checks for competing managers.
const look = 10 * time.Second

// tenant returns the client of a user with the ClusterRole edit in a new namespace.
func tenant(t *testing.T, admin client.Client) (client.Client, string) {
	t.Helper()
	namespace := controlplane.Namespace(t)
	user := "tenant-of-" + namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	cfg := testenv.ConfigOf(t, user, "system:authenticated")
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c, namespace
}

// supervise starts a supervisor with its permissions in a cluster.
func supervise(t *testing.T, name string) *process.Process {
	t.Helper()
	const account = "system:serviceaccount:" + home + ":chandlery-supervisor"
	kubeconfig, err := controlplane.Get(t).NewKubeconfig(account, "system:serviceaccounts", "system:serviceaccounts:"+home, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	return programs.Start(t, name, filepath.Join(bin, "supervisor"),
		"run", "--kubeconfig", kubeconfig, "--identity", name, "--leader-election-namespace", home,
		"--lease-duration", "15s", "--renew-deadline", "12s", "--retry-period", "200ms",
		"--metrics-address", "0", "--health-address", "0", "--bundle-cache-dir", t.TempDir())
}

// leads waits until a supervisor leads and has renewed its Lease at or after a time.
func leads(t *testing.T, c client.Client, p *process.Process, after time.Time) {
	t.Helper()
	testenv.Until(t, patience, p.Name()+" to lead", func(ctx context.Context) string {
		select {
		case <-p.Done():
			t.Fatalf("%s has ended; see %s: %s", p.Name(), p.Log(), logOf(t, p))
		default:
		}
		lease := &coordinationv1.Lease{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
			return err.Error()
		}
		if holder := supervisor.IdentityOf(ptr.Deref(lease.Spec.HolderIdentity, "")); holder != p.Name() || lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(after) {
			return fmt.Sprintf("%q leads, renewed at %v", holder, lease.Spec.RenewTime)
		}
		return ""
	})
}

// stop stops a supervisor, which must exit without an error.
func stop(t *testing.T, p *process.Process) {
	t.Helper()
	if err := p.Stop(patience); err != nil {
		t.Error(err)
	}
}

func logOf(t *testing.T, p *process.Process) string {
	t.Helper()
	text, err := os.ReadFile(p.Log())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lookalike returns a Deployment that looks like OLM's.
func lookalike(namespace string, n int) *appsv1.Deployment {
	name := "olm-operator"
	if n > 0 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	labels := map[string]string{"app": "olm-operator"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			// A paused Deployment gets no ReplicaSet, whose pods the missing service account would stop.
			Paused:   true,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: fmt.Sprintf("account-%d", n),
					Containers:         []corev1.Container{{Name: "olm-operator", Image: "registry.example.com/operator-framework/olm:v1", Command: []string{"/bin/olm"}}},
				},
			},
		},
	}
}

// TestLookalikeDeployments has a tenant create Deployments that look like OLM's. They must not stop
// any supervisor, running or starting; an Event names them. The real OLM stops supervisors.
func TestLookalikeDeployments(t *testing.T) {
	const many = 40 // five times as many as the supervisor reviews in one namespace
	admin := controlplane.Client(t)
	c, namespace := tenant(t, admin)
	first := supervise(t, "first")
	leads(t, admin, first, time.Time{})
	for n := range many {
		if err := c.Create(t.Context(), lookalike(namespace, n)); err != nil {
			t.Fatal(err)
		}
	}
	leads(t, admin, first, time.Now().Add(look))
	testenv.Until(t, patience, "an Event about the look-alikes", func(ctx context.Context) string {
		var events eventsv1.EventList
		if err := admin.List(ctx, &events, client.InNamespace(home)); err != nil {
			return err.Error()
		}
		for i := range events.Items {
			e := &events.Items[i]
			if e.Reason == "CompetingManagerSuspected" && e.Regarding.Name == api.LeaseName && strings.Contains(e.Note, "Deployment "+namespace+"/olm-operator") {
				return ""
			}
		}
		return fmt.Sprintf("%d Events", len(events.Items))
	})
	stop(t, first)

	second := supervise(t, "second")
	leads(t, admin, second, time.Time{})
	if err := olmobjects.New(admin).InstallOLM(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.DeleteAllOf(context.WithoutCancel(t.Context()), &appsv1.Deployment{}, client.InNamespace(olmobjects.Namespace)); err != nil {
			t.Error(err)
		}
	})
	testenv.Until(t, patience, "the supervisor to step down", func(ctx context.Context) string {
		lease := &coordinationv1.Lease{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: home, Name: api.LeaseName}, lease); err != nil {
			return err.Error()
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" {
			return holder + " leads beside OLM"
		}
		return ""
	})
	if err := second.Unexpected(); err != nil {
		t.Errorf("it does not wait for the end of OLM: %v", err)
	}
	if text := logOf(t, second); !strings.Contains(text, "Deployment olm/olm-operator") {
		t.Errorf("the log does not name OLM: %s", text)
	}
}

// TestForeignLease has a tenant hold and renew a Lease of that name for 68 years. A supervisor must
// start and lead nevertheless.
func TestForeignLease(t *testing.T) {
	admin := controlplane.Client(t)
	c, namespace := tenant(t, admin)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("nothing_1"), LeaseDurationSeconds: new(int32(math.MaxInt32))},
	}
	if err := c.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	first := supervise(t, "beside-a-lease")
	leads(t, admin, first, time.Time{})

	ctx, cancel := context.WithCancel(t.Context())
	var renewing sync.WaitGroup
	renewing.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				l.Spec.RenewTime = &metav1.MicroTime{Time: now}
				if err := c.Update(ctx, l); err != nil && ctx.Err() == nil {
					t.Errorf("renewing: %v", err)
				}
			}
		}
	})
	defer renewing.Wait()
	defer cancel()
	leads(t, admin, first, time.Now().Add(look))
	stop(t, first)
	second := supervise(t, "beside-a-renewed-lease")
	leads(t, admin, second, time.Time{})
	stop(t, second)
}
