package cleanup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/apiproxy"
	"github.com/chandlery/chandlery/test/apiproxy/supervisors"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
)

const (
	// patience is how long a step of a round may take, the start of a supervisor
	// included. Garbage collection begins half a minute later on what is owned by a kind
	// that is new.
	patience = 2 * time.Minute
	polling  = 100 * time.Millisecond

	// home is the namespace of the supervisor, and account what it runs as.
	home    = "chandlery-system"
	account = "system:serviceaccount:" + home + ":chandlery-supervisor"
	// bystander is the namespace of an operator that nobody deletes.
	bystander = "bystander"
)

func TestMain(m *testing.M) {
	if code, is := supervisors.Serve(); is {
		os.Exit(code)
	}
	logf.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	os.Exit(controlplane.Main(m, controlplane.Options{Nodes: -1}, func(ctx context.Context, cp *controlplane.ControlPlane) error {
		return errors.Join(supervisor.InstallCRDs(ctx, cp.Config(), io.Discard), grant(ctx, cp))
	}))
}

// grant gives the supervisor's account the rights that it has in a cluster, and no others:
// those to custom resources it has to borrow.
func grant(ctx context.Context, cp *controlplane.ControlPlane) error {
	for _, args := range [][]string{
		{"create", "namespace", home},
		{"apply", "-f", "../../../deploy/rbac/supervisor.yaml", "-f", "../../../deploy/rbac/leases.yaml"},
	} {
		var said bytes.Buffer
		command := exec.CommandContext(ctx, cp.Kubectl(), append([]string{"--kubeconfig", cp.Kubeconfig()}, args...)...)
		command.Stdout, command.Stderr = &said, &said
		if err := command.Run(); err != nil {
			return fmt.Errorf("kubectl %v: %w: %s", args, err, said.String())
		}
	}
	return nil
}

// employed is the access of the supervisor's account.
func employed(t *testing.T) *rest.Config {
	t.Helper()
	kubeconfig, err := controlplane.Get(t).NewKubeconfig(account, "system:serviceaccounts", "system:serviceaccounts:"+home, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// bed is a cluster with a proxy between it and the supervisor. The test itself reads and
// writes without faults.
type bed struct {
	client.Client

	t       *testing.T
	proxy   *apiproxy.Proxy
	running *process.Process
	starts  int
}

func newBed(t *testing.T) *bed {
	t.Helper()
	scheme, err := supervisor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cfg := controlplane.Get(t).Config()
	cfg.QPS = -1
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Client: c, t: t, proxy: apiproxy.Start(t, employed(t))}
	b.release()
	return b
}

// supervise starts a supervisor behind the proxy, if none runs.
func (b *bed) supervise() {
	b.t.Helper()
	if b.running != nil {
		return
	}
	b.starts++
	b.running = supervisors.Start(b.t, supervisors.Spec{
		Identity: fmt.Sprintf("supervisor-%d", b.starts), Config: b.proxy.Config(),
		// It is not about leadership here, and the lead must not be lost to a slow machine.
		Args: []string{"--leader-election-namespace", home, "--lease-duration", "60s", "--renew-deadline", "50s"},
	})
}

// release takes the lead away from a supervisor that is dead, without waiting for that to
// show.
func (b *bed) release() {
	b.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: supervisor.LeaseName}}
	if err := client.IgnoreNotFound(b.Delete(b.t.Context(), lease)); err != nil {
		b.t.Fatal(err)
	}
}

// kill ends the supervisor as a lost machine would.
func (b *bed) kill() {
	b.t.Helper()
	if err := b.running.Kill(); err != nil {
		b.t.Fatal(err)
	}
	b.running = nil
	b.release()
}

// dies waits until a supervisor dies at a call of a clean-up, or until that is over without.
func (b *bed) dies(c *crash, csv *operatorsv1alpha1.ClusterServiceVersion) {
	b.t.Helper()
	gone := time.Time{}
	b.until(c.namespace+" to be cleaned up, or the supervisor to die", func(ctx context.Context) string {
		select {
		case <-c.dead:
			return ""
		default:
		}
		left := b.there(ctx, csv)
		if left == "" && gone.IsZero() {
			gone = time.Now()
		}
		if left == "" && time.Since(gone) < afterwards {
			return "others may still have something to do"
		}
		return left
	})
	if c.died() {
		b.kill()
	}
}

// afterwards is how long others have something to do when a version has gone.
const afterwards = time.Second

// there says that an object is there; empty when it is not.
func (b *bed) there(ctx context.Context, o client.Object) string {
	err := b.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if csv, is := o.(*operatorsv1alpha1.ClusterServiceVersion); is && err == nil {
		return fmt.Sprintf("it is there: %s %s: %s", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
	}
	return fmt.Sprintf("it is there (%v)", err)
}

func (b *bed) goes(o client.Object) {
	b.t.Helper()
	b.until(fmt.Sprintf("%T %s to go", o, o.GetName()), func(ctx context.Context) string { return b.there(ctx, o) })
}

// settle installs the operator that stays.
func (b *bed) settle() {
	b.t.Helper()
	b.create(ground(bystander, bystander)...)
	b.installed(b.order(bystander, false))
}

// prepare makes what is there before the operators, and gives the inventory of that.
func (b *bed) prepare(namespaces ...string) []string {
	b.t.Helper()
	for _, namespace := range namespaces {
		b.create(ground(namespace)...)
	}
	var before []string
	b.until("the ground to be settled", func(ctx context.Context) string {
		for _, namespace := range namespaces {
			for _, o := range []client.Object{
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kube-root-ca.crt"}},
			} {
				if err := b.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
					return err.Error()
				}
			}
		}
		now, err := inventory(ctx, b, namespaces)
		if err != nil {
			return err.Error()
		}
		settled := slices.Equal(before, now)
		before = now
		if !settled {
			return "something is still being made"
		}
		return ""
	})
	return before
}

// install makes an operator in each of some namespaces and waits until they have succeeded.
func (b *bed) install(namespaces ...string) []*operatorsv1alpha1.ClusterServiceVersion {
	b.t.Helper()
	var list []*operatorsv1alpha1.ClusterServiceVersion
	for _, namespace := range namespaces {
		list = append(list, b.order(namespace, true))
	}
	for _, csv := range list {
		b.installed(csv)
		b.until("its copies to be made", func(ctx context.Context) string {
			var copies operatorsv1alpha1.ClusterServiceVersionList
			if err := b.List(ctx, &copies, client.MatchingLabels{"olm.copiedFrom": csv.Namespace}); err != nil {
				return err.Error()
			}
			if n := len(copies.Items); n < len(namespaces) {
				return fmt.Sprintf("there are %d copies", n)
			}
			return ""
		})
	}
	return list
}

// order makes an operator and what its plan would make.
func (b *bed) order(namespace string, everywhere bool) *operatorsv1alpha1.ClusterServiceVersion {
	b.t.Helper()
	csv := operator(namespace, everywhere)
	b.create(csv)
	// The one that stays may be there already.
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
		b.t.Fatal(err)
	}
	b.create(belongings(csv, everywhere)...)
	return csv
}

func (b *bed) installed(csv *operatorsv1alpha1.ClusterServiceVersion) {
	b.t.Helper()
	b.until("the operator of "+csv.Namespace+" to succeed", func(ctx context.Context) string {
		if err := b.Get(ctx, client.ObjectKeyFromObject(csv), csv); err != nil {
			return err.Error()
		}
		if csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return fmt.Sprintf("%s (%s: %s)", csv.Status.Phase, csv.Status.Reason, csv.Status.Message)
		}
		return ""
	})
}

// leaves waits until the cluster is as it was.
func (b *bed) leaves(before []string, namespaces ...string) {
	b.t.Helper()
	b.until("the cluster to be as it was", func(ctx context.Context) string {
		after, err := inventory(ctx, b, namespaces)
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(before, after)
	})
}

// raze removes the ground, so that rounds do not see what others have.
func (b *bed) raze(namespaces ...string) {
	b.t.Helper()
	var all []client.Object
	for _, namespace := range namespaces {
		objects := ground(namespace)
		slices.Reverse(objects)
		all = append(all, objects...)
	}
	for _, o := range all {
		if err := b.Delete(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, o := range all {
		b.goes(o)
	}
}

func (b *bed) create(objects ...client.Object) {
	b.t.Helper()
	for _, o := range objects {
		b.until(fmt.Sprintf("%T %s to be made", o, o.GetName()), func(ctx context.Context) string {
			if err := b.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
	}
}

// until waits until there is nothing left to say.
func (b *bed) until(what string, says func(context.Context) string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(polling)
	defer ticker.Stop()
	last := ""
	for {
		left := says(ctx)
		if left == "" {
			return
		}
		if ctx.Err() == nil {
			last = left
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			b.t.Fatalf("waiting for %s: %s", what, last)
		}
	}
}
