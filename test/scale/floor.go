package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Floor is a control plane without a supervisor, on which a plain client creates what an installation
// consists of: the CustomResourceDefinition once, and for each namespace a ServiceAccount, a Role, a
// ClusterRole, their bindings and a Deployment. No installation can take fewer requests.
type Floor struct {
	plane   *plane
	version *operatorsv1alpha1.ClusterServiceVersion
}

// StartFloor starts the control plane and creates the CustomResourceDefinition.
func StartFloor(ctx context.Context) (*Floor, error) {
	p, err := startPlane(ctx, "floor")
	if err != nil {
		return nil, err
	}
	f := &Floor{plane: p}
	if err := f.begin(ctx); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// Stop ends the control plane.
func (f *Floor) Stop() error { return f.plane.Stop() }

// begin makes the client, which is an account whose requests are counted, and reads the manifests.
func (f *Floor) begin(ctx context.Context) error {
	if err := f.plane.connect(); err != nil {
		return err
	}
	kubeconfig, err := f.plane.kubeconfig("system:masters")
	if err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.QPS = -1
	if f.plane.client, err = client.NewWithWatch(cfg, client.Options{Scheme: f.plane.client.Scheme()}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	manifests, err := plainManifests(packageName)
	if err != nil {
		return err
	}
	f.version = &operatorsv1alpha1.ClusterServiceVersion{}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	for file, into := range map[string]any{fileCSV: f.version, fileCRD: crd} {
		if err := yaml.UnmarshalStrict([]byte(manifests[file]), into); err != nil {
			return fmt.Errorf("reading manifest %s: %w", file, err)
		}
	}
	return f.plane.create(ctx, crd)
}

// Prepare makes namespaces.
func (f *Floor) Prepare(ctx context.Context, names []string) error {
	return f.plane.namespaces(ctx, names, func(context.Context, string) error { return nil })
}

// Install creates the objects of an installation in each of some prepared namespaces, waits until the
// Deployments are available, and counts what that takes. Before is how many namespaces have them already.
func (f *Floor) Install(ctx context.Context, before int, names []string) (*Batch, error) {
	b, err := f.plane.batch(ctx, names, f.install)
	if err != nil {
		return nil, err
	}
	b.Before = before
	return b, nil
}

func (f *Floor) install(ctx context.Context, names []string) error {
	err := each(ctx, names, func(ctx context.Context, name string) error {
		for _, o := range objects(f.version, name) {
			if err := f.plane.create(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return f.plane.reached(ctx, names, &appsv1.DeploymentList{}, func(o client.Object) bool {
		d, is := o.(*appsv1.Deployment)
		return is && available(d)
	})
}

func available(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// objects returns what a version asks for in a namespace, in the order in which one needs the other.
func objects(version *operatorsv1alpha1.ClusterServiceVersion, namespace string) []client.Object {
	var all []client.Object
	strategy := version.Spec.InstallStrategy.StrategySpec
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	account := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
	}
	accounts := map[string]bool{}
	for _, p := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		if !accounts[p.ServiceAccountName] {
			accounts[p.ServiceAccountName] = true
			all = append(all, &corev1.ServiceAccount{ObjectMeta: in(p.ServiceAccountName)})
		}
	}
	for _, p := range strategy.Permissions {
		all = append(all, &rbacv1.Role{ObjectMeta: in(p.ServiceAccountName), Rules: p.Rules}, &rbacv1.RoleBinding{
			ObjectMeta: in(p.ServiceAccountName), Subjects: account(p.ServiceAccountName),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: p.ServiceAccountName},
		})
	}
	for _, p := range strategy.ClusterPermissions {
		name := namespace + "-" + p.ServiceAccountName
		all = append(all, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: p.Rules}, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: account(p.ServiceAccountName),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		})
	}
	for _, d := range strategy.DeploymentSpecs {
		all = append(all, &appsv1.Deployment{ObjectMeta: in(d.Name), Spec: d.Spec})
	}
	return all
}
