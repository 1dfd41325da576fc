package competing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// cluster is an API server whose reviews allow what the test sets.
type cluster struct {
	client.Client

	clock *testingclock.FakeClock
	// writers are the users and groups that may write, as VERB NAME, or VERB NAME RESOURCE for one kind.
	writers map[string]bool
	// reviewed are the users that were reviewed, and pods is the number of pods that were read.
	reviewed []string
	pods     int
	// forbidden is true if reviews are forbidden, and hidden if reads of pods are.
	forbidden, hidden bool
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := fixtures.Scheme(t)
	c := &cluster{clock: testingclock.NewFakeClock(time.Now()), writers: map[string]bool{}}
	c.Client = fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, below client.WithWatch, o client.Object, options ...client.CreateOption) error {
				review, ok := o.(*authorizationv1.SubjectAccessReview)
				if !ok {
					return below.Create(ctx, o, options...)
				}
				return c.review(review)
			},
			Get: func(ctx context.Context, below client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, pod := o.(*corev1.Pod); pod {
					c.pods++
					if c.hidden {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, key.Name, nil)
					}
				}
				return below.Get(ctx, key, o, options...)
			},
		}).Build()
	return c
}

func (c *cluster) review(r *authorizationv1.SubjectAccessReview) error {
	if c.forbidden {
		return apierrors.NewForbidden(schema.GroupResource{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}, "", nil)
	}
	if a := r.Spec.ResourceAttributes; a.Namespace == "" && a.Group == "operators.coreos.com" && a.Subresource == "status" {
		for _, name := range append(slices.Clone(r.Spec.Groups), r.Spec.User) {
			right := a.Verb + " " + name
			r.Status.Allowed = r.Status.Allowed || c.writers[right] || c.writers[right+" "+a.Resource]
		}
	}
	if !slices.Contains(c.reviewed, r.Spec.User) {
		c.reviewed = append(c.reviewed, r.Spec.User)
	}
	return nil
}

func (c *cluster) detector(managers ...string) *Detector {
	return NewDetector(Config{Client: c.Client, Namespace: "home", ManagerNamespaces: managers, Clock: c.clock})
}

func (c *cluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// pages is a reader that returns as many Deployments as a request allows.
type pages struct {
	client.Reader

	all []appsv1.Deployment
	// largest is the largest number of Deployments in one answer.
	largest int
}

func (p *pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	list, o := into.(*appsv1.DeploymentList), client.ListOptions{}
	o.ApplyOptions(opts)
	from, to := len(o.Continue), len(p.all)
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	list.Items, list.Continue = p.all[from:to], ""
	if to < len(p.all) {
		list.Continue = strings.Repeat("x", to)
	}
	p.largest = max(p.largest, to-from)
	return nil
}

// TestDeploymentsAreReadInPages checks that a page of the largest Deployments fits into the memory of a
// supervisor that starts, and that the pages after it are read.
func TestDeploymentsAreReadInPages(t *testing.T) {
	const (
		largest = 3 << 19 // bytes of an object that etcd accepts
		allowed = 32 << 20
	)
	c := newCluster(t)
	c.writers["update system:serviceaccount:last:olm"] = true
	p := &pages{all: make([]appsv1.Deployment, 100)}
	p.all = append(p.all, *lookalike("last", "olm", c.clock.Now()))
	s := c.detector()
	s.deployments = p
	if f := check(t, s); len(f.Workloads) != 1 && s.pending != 1 {
		t.Errorf("the Deployment of the last page was not found: %+v", f)
	}
	if p.largest*largest > allowed {
		t.Errorf("%d Deployments are read at once: their %d bytes exceed %d", p.largest, p.largest*largest, allowed)
	}
}

func check(t *testing.T, s *Detector) Finding {
	t.Helper()
	f, err := s.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// lookalike returns a Deployment that looks like OLM's, with its own service account.
func lookalike(namespace, name string, created time.Time) *appsv1.Deployment {
	d := deployment("olm-operator", func(d *appsv1.Deployment) {
		d.Namespace, d.Name, d.CreationTimestamp = namespace, name, metav1.NewTime(created)
		d.Spec.Template.Spec.ServiceAccountName = name
	})
	return &d
}

// TestLookalikes checks that the permissions of its service account decide whether a Deployment counts.
func TestLookalikes(t *testing.T) {
	for _, tt := range []struct {
		reason   string
		change   func(*cluster, *appsv1.Deployment)
		managers []string
		want     State
		suspects int
	}{
		{reason: "a service account without rights makes a suspect", want: None, suspects: 1},
		{reason: "the namespace is named", managers: []string{"tenant"}, want: Running},
		{
			reason: "the service account may write in all namespaces", want: Running,
			change: func(c *cluster, _ *appsv1.Deployment) {
				c.writers["update system:serviceaccount:tenant:olm-operator"] = true
			},
		},
		{
			reason: "the service account may write ClusterServiceVersions alone", want: Running,
			change: func(c *cluster, _ *appsv1.Deployment) {
				c.writers["update system:serviceaccount:tenant:olm-operator clusterserviceversions"] = true
			},
		},
		{
			reason: "the service account may write InstallPlans alone", want: Running,
			change: func(c *cluster, _ *appsv1.Deployment) {
				c.writers["update system:serviceaccount:tenant:olm-operator installplans"] = true
			},
		},
		{
			reason: "all service accounts of the namespace may write", want: Running,
			change: func(c *cluster, _ *appsv1.Deployment) { c.writers["update system:serviceaccounts:tenant"] = true },
		},
		{
			reason: "all service accounts may write", want: Running,
			change: func(c *cluster, _ *appsv1.Deployment) { c.writers["update system:serviceaccounts"] = true },
		},
		{
			reason: "the verb of supervisors is not that of OLM", want: None, suspects: 1,
			change: func(c *cluster, _ *appsv1.Deployment) {
				c.writers["patch system:serviceaccount:tenant:olm-operator"] = true
			},
		},
		{
			reason: "the rights of an account of that name elsewhere are not its own", want: None, suspects: 1,
			change: func(c *cluster, _ *appsv1.Deployment) {
				c.writers["update system:serviceaccount:olm:olm-operator"] = true
			},
		},
		{
			reason: "without a service account it has the default one", want: Running,
			change: func(c *cluster, d *appsv1.Deployment) {
				d.Spec.Template.Spec.ServiceAccountName = ""
				c.writers["update system:serviceaccount:tenant:default"] = true
			},
		},
		{
			reason: "what is stopped raises no alarm", want: None,
			change: func(_ *cluster, d *appsv1.Deployment) { scaled(0, 0)(d) },
		},
		{
			reason: "what may not be reviewed is hidden, and does not count", want: Unknown,
			change: func(c *cluster, _ *appsv1.Deployment) { c.forbidden = true },
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := newCluster(t)
			d := lookalike("tenant", "olm-operator", c.clock.Now())
			if tt.change != nil {
				tt.change(c, d)
			}
			c.create(t, d)
			f := check(t, c.detector(tt.managers...))
			if f.State != tt.want || f.SuspectCount != tt.suspects || len(f.Suspects) != tt.suspects {
				t.Errorf("%+v", f)
			}
			if (f.Err() != nil) != (tt.want == Running) {
				t.Errorf("refusal: %v", f.Err())
			}
		})
	}
}

// TestRightsChange checks that a review expires.
func TestRightsChange(t *testing.T) {
	c := newCluster(t)
	c.create(t, lookalike("tenant", "olm-operator", c.clock.Now()))
	s := c.detector()
	if f := check(t, s); f.State != None {
		t.Fatalf("%+v", f)
	}
	c.writers["update system:serviceaccount:tenant:olm-operator"] = true
	if f := check(t, s); f.State != None {
		t.Errorf("it was reviewed again at once: %+v", f)
	}
	c.clock.Step(reviewLifetime)
	if f := check(t, s); f.State != Running {
		t.Errorf("after %s it still does not count: %+v", reviewLifetime, f)
	}
}

// TestManyLookalikes checks that thousands of look-alikes cause few reviews. They must not hide a lifecycle
// manager in another namespace, or an older one in their own.
func TestManyLookalikes(t *testing.T) {
	const many = 500
	c := newCluster(t)
	begun := c.clock.Now()
	var objects []client.Object
	for i := range many {
		objects = append(objects, lookalike("tenant", fmt.Sprintf("lookalike-%04d", i), begun.Add(time.Duration(i)*time.Second)))
	}
	objects = append(objects, lookalike("tenant", "older", begun.Add(-time.Hour)), lookalike("olm", "olm-operator", begun.Add(time.Hour)))
	c.create(t, objects...)
	for _, manager := range []string{"olm:olm-operator", "tenant:older"} {
		c.reviewed, c.writers = nil, map[string]bool{"update system:serviceaccount:" + manager: true}
		s := c.detector()
		f := check(t, s)
		if active := f.Active(); len(active) != 1 || active[0].Namespace+":"+active[0].Name != manager {
			t.Errorf("%s was not noticed: %+v", manager, active)
		}
		for range 3 {
			check(t, s)
		}
		if len(c.reviewed) > maxCandidates+1 {
			t.Errorf("%d service accounts were reviewed", len(c.reviewed))
		}
		if want := many + 1; f.SuspectCount != want || len(f.Suspects) > maxSuspects {
			t.Errorf("%d suspects, %d of them named; want %d", f.SuspectCount, len(f.Suspects), want)
		}
		if s.pending != 0 || len(s.access.results) > maxCandidates+1 {
			t.Errorf("%d pending, %d results", s.pending, len(s.access.results))
		}
	}
}

// TestManyNamespaces checks that namespaces take turns, even while a tenant changes service accounts all the
// time.
func TestManyNamespaces(t *testing.T) {
	c := newCluster(t)
	var accounts []*appsv1.Deployment
	for n := range 2 * maxReviews {
		d := lookalike(fmt.Sprintf("tenant-%02d", n), "olm-operator", c.clock.Now())
		accounts = append(accounts, d)
		c.create(t, d)
	}
	c.create(t, lookalike("zoo", "olm-operator", c.clock.Now()))
	c.writers["update system:serviceaccount:zoo:olm-operator"] = true
	s := c.detector()
	for n := 1; ; n++ {
		c.reviewed = nil
		found := check(t, s)
		if len(c.reviewed) > 20 {
			t.Errorf("%d service accounts were reviewed in one look", len(c.reviewed))
		}
		if found.State == Running {
			return
		}
		if n > 3 {
			t.Fatalf("after %d looks OLM has not been reviewed", n)
		}
		for _, d := range accounts {
			d.Spec.Template.Spec.ServiceAccountName = fmt.Sprintf("other-%d", n)
			if err := c.Update(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		c.clock.Step(time.Second)
	}
}

func lease(namespace, holder string, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
	}
}

func (c *cluster) renew(t *testing.T, l *coordinationv1.Lease) {
	t.Helper()
	l.Spec.RenewTime = &metav1.MicroTime{Time: c.clock.Now()}
	if err := c.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

const sixtyEightYears = 1<<31 - 1

// TestLeaseExpires observes a Lease that counts. It must be seen to be renewed, and then counts for its
// duration, up to the maximum.
func TestLeaseExpires(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		seconds int32
		lasts   time.Duration
	}{
		{"its duration, and a second", 15, 16 * time.Second},
		{"no duration is none", 0, time.Second},
		{"a negative duration is none", -sixtyEightYears, time.Second},
		{"a duration of 68 years is one minute", sixtyEightYears, 61 * time.Second},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := newCluster(t)
			l := lease("other", "them_1", tt.seconds)
			c.create(t, l)
			s := c.detector("other")
			if f := check(t, s); f.State != None || len(s.leases.unconfirmed()) != 1 {
				t.Errorf("seen for the first time: %+v, unconfirmed %v", f, s.leases.unconfirmed())
			}
			c.clock.Step(tt.lasts - 1)
			if len(s.leases.unconfirmed()) != 1 {
				t.Error("it is sure too early")
			}
			c.clock.Step(1)
			if unconfirmed := s.leases.unconfirmed(); len(unconfirmed) != 0 {
				t.Errorf("after %s unconfirmed %v", tt.lasts, unconfirmed)
			}
			c.renew(t, l)
			want := []Supervisor{{Namespace: "other", Holder: "them_1"}}
			if f := check(t, s); f.State != Running || !cmp.Equal(want, f.Supervisors) {
				t.Errorf("renewed: %+v", f)
			}
			c.clock.Step(tt.lasts - 1)
			if f := check(t, s); f.State != Running {
				t.Errorf("just before it runs out: %+v", f)
			}
			c.clock.Step(1)
			if f := check(t, s); f.State != None || f.Err() != nil {
				t.Errorf("run out: %+v", f)
			}
		})
	}
}

// holderIn returns the pod pod-1 of the namespace tenant, in a phase.
func holderIn(phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "pod-1"},
		Spec:       corev1.PodSpec{ServiceAccountName: "supervisor"}, Status: corev1.PodStatus{Phase: phase},
	}
}

// TestHolders checks whose Leases count outside the namespaces that the administrator named.
func TestHolders(t *testing.T) {
	const user = "patch system:serviceaccount:tenant:supervisor"
	for _, tt := range []struct {
		reason   string
		holder   string
		pod      *corev1.Pod
		writers  []string
		managers []string
		want     bool
	}{
		{reason: "a pod that may do the work", holder: "pod-1_ab12", pod: holderIn(corev1.PodRunning), writers: []string{user}, want: true},
		{reason: "a pod whose service account may not", holder: "pod-1_ab12", pod: holderIn(corev1.PodRunning)},
		{reason: "a pod whose service account has OLM's verb", holder: "pod-1_ab12", pod: holderIn(corev1.PodRunning), writers: []string{"update system:serviceaccount:tenant:supervisor"}},
		{reason: "a pod that has failed", holder: "pod-1_ab12", pod: holderIn(corev1.PodFailed), writers: []string{user}},
		{reason: "a pod that has ended", holder: "pod-1_ab12", pod: holderIn(corev1.PodSucceeded), writers: []string{user}},
		{reason: "no pod", holder: "pod-1_ab12", writers: []string{user}},
		{reason: "what cannot be the name of a pod", holder: "../pods/x_1", pod: holderIn(corev1.PodRunning), writers: []string{user}},
		{reason: "a very long holder", holder: strings.Repeat("x", 1<<20), writers: []string{user}},
		{reason: "no pod, in a namespace that was named", holder: "laptop_ab12", managers: []string{"tenant"}, want: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := newCluster(t)
			if tt.pod != nil {
				c.create(t, tt.pod)
			}
			for _, writer := range tt.writers {
				c.writers[writer] = true
			}
			l := lease("tenant", tt.holder, 15)
			c.create(t, l)
			s := c.detector(tt.managers...)
			check(t, s)
			if unconfirmed := s.leases.unconfirmed(); (len(unconfirmed) > 0) != tt.want {
				t.Errorf("unconfirmed %v", unconfirmed)
			}
			c.renew(t, l)
			f := check(t, s)
			for _, kept := range s.leases.seen {
				if len(kept.holder) > 300 {
					t.Errorf("%d bytes of a holder are kept", len(kept.holder))
				}
			}
			if (f.State == Running) != tt.want || (f.SuspectLeaseCount == 1) == tt.want || len(f.SuspectLeases) != f.SuspectLeaseCount {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestHiddenHolders checks that a Lease raises no alarm while the pod of its holder cannot be read.
func TestHiddenHolders(t *testing.T) {
	c := newCluster(t)
	c.hidden = true
	l := lease("tenant", "pod-1_ab12", 15)
	c.create(t, l)
	s := c.detector()
	check(t, s)
	c.renew(t, l)
	if f := check(t, s); f.State != Unknown || f.SuspectLeaseCount > 0 || len(f.Hidden) != 1 {
		t.Errorf("%+v", f)
	}
}

// TestHoldersAreLookedForAgain checks that the pod of a holder counts if it was created after the first read,
// but only after that result expires.
func TestHoldersAreLookedForAgain(t *testing.T) {
	c := newCluster(t)
	c.writers["patch system:serviceaccount:tenant:supervisor"] = true
	l := lease("tenant", "pod-1_ab12", 15)
	c.create(t, l)
	s := c.detector()
	check(t, s)
	c.create(t, holderIn(corev1.PodRunning))
	for _, tt := range []struct {
		later time.Duration
		want  bool
	}{{reviewLifetime - time.Second, false}, {time.Second, true}} {
		c.clock.Step(tt.later)
		c.renew(t, l)
		if f := check(t, s); (f.State == Running) != tt.want {
			t.Errorf("after another %s: %+v", tt.later, f)
		}
	}
}

// TestManyLeases checks that the holders of many Leases are read a few at a time.
func TestManyLeases(t *testing.T) {
	c := newCluster(t)
	for n := range 2*maxReviews + 1 {
		c.create(t, lease(fmt.Sprintf("tenant-%02d", n), "x_1", sixtyEightYears))
	}
	s := c.detector()
	for n, want := range []int{maxReviews + 1, 1, 0} {
		check(t, s)
		if s.leases.pending != want || c.pods > (n+1)*maxReviews {
			t.Errorf("after %d looks %d are pending and %d pods were read", n+1, s.leases.pending, c.pods)
		}
		c.clock.Step(time.Second)
	}
	if s.leases.unconfirmed() != nil {
		t.Errorf("unconfirmed %v", s.leases.unconfirmed())
	}
}

// TestWait checks that Wait reports what it waits for and for how long, and ends.
func TestWait(t *testing.T) {
	c := newCluster(t)
	c.create(t, lease("other", "them_1", sixtyEightYears))
	var reports []WaitState
	s := NewDetector(Config{
		Client: c.Client, Namespace: "home", ManagerNamespaces: []string{"other"}, Clock: c.clock,
		OnWait: func(w WaitState) { reports = append(reports, w) },
	})
	begun := c.clock.Now()
	done := make(chan error, 1)
	go func() {
		f, err := s.Wait(t.Context())
		if err == nil {
			err = f.Err()
		}
		done <- err
	}()
	for finished := false; !finished; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			finished = true
		default:
			if c.clock.HasWaiters() {
				c.clock.Step(pollInterval)
			}
		}
	}
	if took := c.clock.Since(begun); took < MaxLeaseDuration || took > MaxWait {
		t.Errorf("it took %s", took)
	}
	want := []WaitState{{Leases: []string{"other/" + api.LeaseName}, AtMost: MaxWait}}
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Error(diff)
	}
}

// TestFairOrder checks that each namespace has one review before any has a second, the one that waited longest
// first.
func TestFairOrder(t *testing.T) {
	account := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	now := time.Now()
	lastReviews := map[string]time.Time{"a": now, "b": now.Add(-time.Second)}
	got := fairOrder([]types.NamespacedName{account("a", "1"), account("a", "2"), account("a", "3"), account("b", "1"), account("b", "2"), account("c", "1")}, lastReviews)
	want := []types.NamespacedName{account("c", "1"), account("b", "1"), account("a", "1"), account("b", "2"), account("a", "2"), account("a", "3")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
