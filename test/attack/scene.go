package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	catalogNamespace, catalogName = "olm", "bench"
	// home is the namespace of the supervisor. account is its ServiceAccount.
	home    = "chandlery-system"
	account = "system:serviceaccount:chandlery-system:chandlery-supervisor"
	// attacker is the attacking user, and the namespace in which the user has edit.
	attacker = "tenant"
	// plain is the namespace of the plain client's Subscription.
	plain = "plain"

	patience = 5 * time.Minute
	polling  = 100 * time.Millisecond
)

// scene is a control plane with a catalog, a supervisor with the permissions of its ClusterRole, and a tenant.
type scene struct {
	root, dir  string
	plane      *controlplane.ControlPlane
	shared     bool // set if others use the control plane too
	client     client.WithWatch
	tenant     *tenant
	registry   *process.Process
	supervisor *supervisorProcess
	installed  int
}

// setUp starts everything but the supervisor. quota is the size limit of etcd's database.
func setUp(ctx context.Context, o Options, quota int64) (_ *scene, err error) {
	ctrllog.SetLogger(logr.Discard())
	plane := o.Plane
	if plane == nil {
		if plane, err = controlplane.Start(ctx, controlplane.Options{EtcdQuota: quota, LargeObjects: true}); err != nil {
			return nil, err
		}
	}
	s := &scene{
		root: o.Root, dir: o.Dir, plane: plane, shared: o.Plane != nil, supervisor: &supervisorProcess{dir: o.Dir, settle: o.Settle},
		tenant: &tenant{rate: flowcontrol.NewTokenBucketRateLimiter(o.Rate, 1)},
	}
	for _, step := range []func(context.Context) error{s.connect, s.grant, s.serve} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.tearDown(ctx))
		}
	}
	return s, nil
}

// tearDown stops what setUp has started. On a shared control plane it discards the namespaces, so that tests that follow
// do not find a tenant's objects.
func (s *scene) tearDown(ctx context.Context) error {
	const grace = 10 * time.Second
	var failures []error
	for _, p := range []*process.Process{s.supervisor.process, s.registry} {
		if p != nil {
			failures = append(failures, p.Stop(grace))
		}
	}
	if !s.shared {
		return errors.Join(append(failures, s.plane.Stop())...)
	}
	namespaces := []string{attacker, plain}
	for number := range s.installed {
		namespaces = append(namespaces, neighbour(number+1))
	}
	for _, name := range namespaces {
		failures = append(failures, s.plane.DiscardNamespace(ctx, name))
	}
	return errors.Join(failures...)
}

// neighbour returns the name of the namespace of an installation.
func neighbour(number int) string { return fmt.Sprintf("neighbour-%d", number) }

// connect creates the clients of an administrator and of the tenant.
func (s *scene) connect(ctx context.Context) error {
	if err := programs.InstallCRDs(ctx, filepath.Join(s.dir, "supervisor"), s.plane.Kubeconfig()); err != nil {
		return err
	}
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.NewWithWatch(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	file, err := s.plane.NewKubeconfig(attacker)
	if err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the tenant: %w", err)
	}
	cfg.QPS = -1 // touch limits the rate
	if s.tenant.client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making the client of the tenant: %w", err)
	}
	s.supervisor.client = s.client
	s.supervisor.kubeconfig, err = s.plane.NewKubeconfig(account, "system:serviceaccounts", "system:serviceaccounts:"+home)
	return err
}

// grant creates the namespaces and grants the supervisor its permissions in a cluster, and the
// tenant edit in one namespace.
func (s *scene) grant(ctx context.Context) error {
	for _, name := range []string{catalogNamespace, home, attacker, plain} {
		// Others may have created it on a shared control plane.
		if err := s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); !apierrors.IsAlreadyExists(err) && err != nil {
			return err
		}
	}
	for _, file := range []string{"deploy/rbac/supervisor.yaml", "deploy/rbac/leases.yaml", "deploy/prerequisites/users.yaml"} {
		command := exec.CommandContext(ctx, s.plane.Kubectl(), "--kubeconfig", s.plane.Kubeconfig(), "apply", "-f", filepath.Join(s.root, file))
		if said, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl apply -f %s: %w: %s", file, err, said)
		}
	}
	if err := s.create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: attacker, Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: attacker}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}); err != nil {
		return err
	}
	return s.group(ctx, attacker)
}

// serve writes a catalog with one package and starts the registry.
func (s *scene) serve(ctx context.Context) error {
	catalog := filepath.Join(s.dir, "catalog")
	if err := os.MkdirAll(catalog, 0o755); err != nil {
		return fmt.Errorf("making a folder for the catalog: %w", err)
	}
	text, err := packageText()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(catalog, "kettle.json"), text, 0o644); err != nil {
		return fmt.Errorf("writing the catalog: %w", err)
	}
	address, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	if s.registry, err = start(ctx, s.dir, "registry", "serve", catalog, "--host", "127.0.0.1", "--port", strconv.Itoa(address.Number),
		"--metrics-address", "0", "--termination-log", ""); err != nil {
		return err
	}
	return s.create(ctx, &operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: catalogNamespace, Name: catalogName},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: address.Address()},
	})
}

// install subscribes to the package in a new namespace and returns the times.
func (s *scene) install(ctx context.Context) (Installation, error) {
	s.installed++
	namespace := neighbour(s.installed)
	if err := s.prepare(ctx, namespace); err != nil {
		return Installation{}, err
	}
	probing, stop := context.WithCancel(ctx)
	defer stop()
	probed := make(chan probe, 1)
	go func() { probed <- (&plainClient{client: s.client}).probe(probing) }()
	began := time.Now()
	if err := s.create(ctx, &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kettle"},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: "kettle", Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: catalogNamespace,
		},
	}); err != nil {
		return Installation{}, err
	}
	err := s.supervisor.await(ctx, "kettle.v1.0.0 in namespace "+namespace+" to succeed", func(ctx context.Context) (bool, error) {
		csv := &operatorsv1alpha1.ClusterServiceVersion{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kettle.v1.0.0"}, csv)
		return csv.Status.Phase == operatorsv1alpha1.CSVPhaseSucceeded, client.IgnoreNotFound(err)
	})
	one := Installation{Took: time.Since(began)}
	if err != nil {
		return one, err
	}
	stop()
	p := <-probed
	if p.err != nil {
		return one, p.err
	}
	one.Plain = p.median()
	if one.Rollout, err = s.rollout(ctx, namespace); err != nil {
		return one, err
	}
	return one, s.supervisor.await(ctx, "the Subscription in namespace "+namespace+" to be at the latest version", func(ctx context.Context) (bool, error) {
		sub := &operatorsv1alpha1.Subscription{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kettle"}, sub)
		return sub.Status.State == operatorsv1alpha1.SubscriptionStateAtLatest, err
	})
}

// rollout returns the time from the creation of the version's Deployment until it was
// available.
func (s *scene) rollout(ctx context.Context, namespace string) (time.Duration, error) {
	d := &appsv1.Deployment{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kettle"}, d); err != nil {
		return 0, fmt.Errorf("reading the Deployment in namespace %s: %w", namespace, err)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.LastTransitionTime.Sub(d.CreationTimestamp.Time), nil
		}
	}
	return 0, fmt.Errorf("the Deployment in namespace %s has no condition %s", namespace, appsv1.DeploymentAvailable)
}

// prepare creates a namespace for an installation.
func (s *scene) prepare(ctx context.Context, namespace string) error {
	if err := s.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	err := s.supervisor.await(ctx, "the ServiceAccount of namespace "+namespace, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return s.group(ctx, namespace)
}

func (s *scene) group(ctx context.Context, namespace string) error {
	return s.create(ctx, &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{namespace}},
	})
}

func (s *scene) create(ctx context.Context, o client.Object) error {
	if err := s.client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// packageText returns a catalog with one package, whose only version has a Deployment.
func packageText() ([]byte, error) {
	labels := map[string]any{"app": "kettle"}
	csv := map[string]any{
		"apiVersion": operatorsv1alpha1.SchemeGroupVersion.String(), "kind": operatorsv1alpha1.ClusterServiceVersionKind,
		"metadata": map[string]any{"name": "kettle.v1.0.0"},
		"spec": map[string]any{
			"displayName": "Kettle", "version": "1.0.0",
			"installModes": []any{
				map[string]any{"type": "OwnNamespace", "supported": true},
				map[string]any{"type": "SingleNamespace", "supported": true},
				map[string]any{"type": "MultiNamespace", "supported": false},
				map[string]any{"type": "AllNamespaces", "supported": false},
			},
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{map[string]any{
				"name": "kettle", "spec": map[string]any{
					"replicas": 1, "selector": map[string]any{"matchLabels": labels},
					"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
						"containers": []any{map[string]any{"name": "manager", "image": "registry.example/kettle:1"}},
					}},
				},
			}}}},
		},
	}
	manifest, err := json.Marshal(csv)
	if err != nil {
		return nil, fmt.Errorf("encoding the version: %w", err)
	}
	var text []byte
	for _, blob := range []any{
		map[string]any{"schema": "olm.package", "name": "kettle", "defaultChannel": "stable"},
		map[string]any{"schema": "olm.channel", "package": "kettle", "name": "stable", "entries": []any{map[string]any{"name": "kettle.v1.0.0"}}},
		map[string]any{
			"schema": "olm.bundle", "package": "kettle", "name": "kettle.v1.0.0", "image": "",
			"properties": []any{
				map[string]any{"type": "olm.package", "value": map[string]any{"packageName": "kettle", "version": "1.0.0"}},
				map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": manifest}},
			},
		},
	} {
		one, err := json.Marshal(blob)
		if err != nil {
			return nil, fmt.Errorf("encoding the catalog: %w", err)
		}
		text = append(append(text, one...), '\n')
	}
	return text, nil
}
