package takeover_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
	"github.com/chandlery/chandlery/test/testenv"
)

// scene is a cluster with objects of OLM.
type scene struct {
	client.Client

	t       *testing.T
	plane   *controlplane.ControlPlane
	catalog string // folder that the registry serves
}

// operators are the operators that OLM has installed: one for its own namespace, with a webhook, and one for all.
var operators = []struct {
	pkg, namespace string
	global         bool
	webhook        bool
}{
	{"lamp", "lamps", false, true},
	{"buoy", "buoys", true, false},
}

// startScene starts a control plane without objects until the test ends. A control plane that other tests do not use costs a
// part of a processor, so each test has its own.
func startScene(t *testing.T, o controlplane.Options) *scene {
	t.Helper()
	plane := controlplane.StartForTest(t, o)
	kinds, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{Client: c, t: t, plane: plane}
}

// deploys installs the kinds of OLM, and what supervisors need except their Deployment.
func deploys(s *scene) {
	s.t.Helper()
	for _, prepare := range []func(context.Context, *controlplane.ControlPlane) error{
		testenv.InstallCRDsWith(filepath.Join(bin, "supervisor")), testenv.Deploy("rbac/supervisor.yaml", "rbac/leases.yaml"),
	} {
		if err := prepare(s.t.Context(), s.plane); err != nil {
			s.t.Fatal(err)
		}
	}
}

// newScene creates the scene.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := startScene(t, controlplane.Options{})
	deploys(s)
	s.catalog = t.TempDir()
	for _, o := range operators {
		s.publish(o.pkg, "1.0.0")
	}
	w := olmobjects.New(s.Client)
	for _, err := range []error{
		w.InstallOLM(t.Context()),
		w.Catalog(t.Context(), "shop", "", programs.Serve(t, filepath.Join(bin, "registry"), s.catalog)),
		w.Catalog(t.Context(), "hosted.catalog", "registry.example.com/catalog@sha256:"+strings.Repeat("a", 64), ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range operators {
		err := w.Install(t.Context(), olmobjects.Operator{
			Namespace: o.namespace, Package: o.pkg, Channel: "stable", Catalog: "shop", Global: o.global,
			Version: csv(o.pkg, "1.0.0", o.webhook), Semver: "1.0.0", Approval: operatorsv1alpha1.ApprovalAutomatic,
			Definitions: []*apiextensionsv1.CustomResourceDefinition{crd(o.pkg)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	s.runs()
	return s
}

// runs waits until everything that OLM has started runs.
func (s *scene) runs() {
	s.t.Helper()
	testenv.Until(s.t, patience, "Deployments and pods to be ready", func(ctx context.Context) string {
		var deployments appsv1.DeploymentList
		if err := s.List(ctx, &deployments); err != nil {
			return err.Error()
		}
		for _, d := range deployments.Items {
			if d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.ObservedGeneration != d.Generation {
				return "Deployment " + d.Name
			}
		}
		var pods corev1.PodList
		if err := s.List(ctx, &pods); err != nil {
			return err.Error()
		}
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning {
				return "pod " + p.Name
			}
		}
		return ""
	})
}

func crd(pkg string) *apiextensionsv1.CustomResourceDefinition {
	kind := strings.ToUpper(pkg[:1]) + pkg[1:]
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: pkg + "s.ship.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "ship.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: pkg + "s", Singular: pkg, Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
}

// csv returns the version of an operator as it is in its bundle.
func csv(pkg, number string, webhook bool) *operatorsv1alpha1.ClusterServiceVersion {
	kind := strings.ToUpper(pkg[:1]) + pkg[1:]
	labels := map[string]string{"app": pkg + "-operator"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"ship.example.com"}, Resources: []string{pkg + "s"}, Verbs: []string{"get", "list", "watch", "update"}}}
	v := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: "operators.coreos.com/v1alpha1", Kind: "ClusterServiceVersion"},
		ObjectMeta: metav1.ObjectMeta{Name: pkg + ".v" + number, Annotations: map[string]string{
			"alm-examples": "[]", "capabilities": "Basic Install", "description": "Looks after every " + pkg + ".",
		}},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: kind, Version: version.OperatorVersion{Version: semver.MustParse(number)},
			CustomResourceDefinitions: operatorsv1alpha1.CustomResourceDefinitions{Owned: []operatorsv1alpha1.CRDDescription{
				{Name: pkg + "s.ship.example.com", Version: "v1", Kind: kind},
			}},
			InstallModes: []operatorsv1alpha1.InstallMode{
				{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true},
				{Type: operatorsv1alpha1.InstallModeTypeSingleNamespace, Supported: true},
				{Type: operatorsv1alpha1.InstallModeTypeMultiNamespace, Supported: false},
				{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
			},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					Permissions:        []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: pkg + "-operator", Rules: rules}},
					ClusterPermissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: pkg + "-operator", Rules: rules}},
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
						Name: pkg + "-operator", Label: labels,
						Spec: appsv1.DeploymentSpec{
							Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
							Template: corev1.PodTemplateSpec{
								ObjectMeta: metav1.ObjectMeta{Labels: labels},
								Spec: corev1.PodSpec{ServiceAccountName: pkg + "-operator", Containers: []corev1.Container{{
									Name: "operator", Image: "registry.example.com/" + pkg + ":v" + number,
									Env: []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
										FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
									}}},
								}}},
							},
						},
					}},
				},
			},
		},
	}
	if webhook {
		v.Spec.WebhookDefinitions = []operatorsv1alpha1.WebhookDescription{{
			GenerateName: "v" + pkg + ".ship.example.com", Type: operatorsv1alpha1.ValidatingAdmissionWebhook, DeploymentName: pkg + "-operator",
			ContainerPort: 9443, AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: new(admissionregistrationv1.Ignore), WebhookPath: new("/validate"),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"ship.example.com"}, APIVersions: []string{"v1"}, Resources: []string{pkg + "s"}},
			}},
		}}
	}
	return v
}

// publish adds versions of an operator to the catalog. Each replaces the previous one.
func (s *scene) publish(pkg string, versions ...string) {
	s.t.Helper()
	var (
		out     strings.Builder
		entries []map[string]any
	)
	write := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			s.t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	webhook := pkg == "lamp"
	write(map[string]any{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"})
	for i, number := range versions {
		v := csv(pkg, number, webhook)
		entry := map[string]any{"name": v.Name}
		if i > 0 {
			v.Spec.Replaces = pkg + ".v" + versions[i-1]
			entry["replaces"] = v.Spec.Replaces
		}
		entries = append(entries, entry)
		properties := []map[string]any{
			{"type": "olm.package", "value": map[string]string{"packageName": pkg, "version": number}},
			{"type": "olm.gvk", "value": map[string]string{"group": "ship.example.com", "version": "v1", "kind": strings.ToUpper(pkg[:1]) + pkg[1:]}},
		}
		for _, object := range []any{v, crd(pkg)} {
			text, err := json.Marshal(object)
			if err != nil {
				s.t.Fatal(err)
			}
			properties = append(properties, map[string]any{"type": "olm.bundle.object", "value": map[string]any{"data": text}})
		}
		write(map[string]any{"schema": "olm.bundle", "name": v.Name, "package": pkg, "properties": properties})
	}
	write(map[string]any{"schema": "olm.channel", "name": "stable", "package": pkg, "entries": entries})
	file := filepath.Join(s.catalog, pkg+".json")
	if err := os.WriteFile(file+".new", []byte(out.String()), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		s.t.Fatal(err)
	}
}

// supervise runs a supervisor with exactly its permissions in a cluster.
func (s *scene) supervise(name string, more ...string) *process.Process {
	s.t.Helper()
	args, err := s.supervisorArgs(name, more...)
	if err != nil {
		s.t.Fatal(err)
	}
	return programs.Start(s.t, name, filepath.Join(bin, "supervisor"), args...)
}

// supervisorArgs returns the arguments of a supervisor.
func (s *scene) supervisorArgs(name string, more ...string) ([]string, error) {
	const account = "system:serviceaccount:" + home + ":chandlery-supervisor"
	kubeconfig, err := s.plane.NewKubeconfig(account, "system:serviceaccounts", "system:serviceaccounts:"+home, "system:authenticated")
	if err != nil {
		return nil, err
	}
	return append([]string{
		"run", "--kubeconfig", kubeconfig, "--identity", name, "--leader-election-namespace", home,
		// This test is not about leader election, and a slow machine must not lose the Lease.
		"--lease-duration", "60s", "--renew-deadline", "50s", "--retry-period", "500ms", "--catalog-refresh-interval", "1s",
		"--metrics-address", "0", "--health-address", "0", "--bundle-cache-dir", s.t.TempDir(),
	}, more...), nil
}
