package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// home is the namespace of the operators.
	home = "operators"
	// patience bounds every wait.
	patience = 20 * time.Minute
	// polling is the interval between checks of a condition.
	polling = 100 * time.Millisecond
)

// lamps is the kind of the custom resources.
func lamps() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "bench.example", Version: "v1", Kind: "Lamp"}
}

// scene is the measured supervisor with its environment.
type scene struct {
	dir        string
	plane      *controlplane.ControlPlane
	client     client.WithWatch
	supervisor *process.Process
}

// setUp starts a control plane and a supervisor. The returned function stops everything.
func setUp(ctx context.Context, dir string) (_ *scene, tearDown func() error, err error) {
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, nil, err
	}
	s := &scene{dir: dir, plane: plane}
	tearDown = func() error {
		if s.supervisor == nil {
			return plane.Stop()
		}
		const grace = 10 * time.Second
		return errors.Join(s.supervisor.Stop(grace), plane.Stop())
	}
	if err := s.furnish(ctx); err != nil {
		return nil, nil, errors.Join(err, tearDown())
	}
	return s, tearDown, nil
}

func (s *scene) furnish(ctx context.Context) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	cfg := s.plane.Config()
	cfg.QPS = -1
	if s.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := programs.InstallCRDs(ctx, filepath.Join(s.dir, "supervisor"), s.plane.Kubeconfig()); err != nil {
		return err
	}
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}},
		&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "own"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{home}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "others"}, Data: map[string]string{"count": "0"}},
		definition(),
	} {
		if err := s.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	s.supervisor, err = process.Start(ctx, process.Spec{
		Name: "supervisor", Path: filepath.Join(s.dir, "supervisor"), Log: filepath.Join(s.dir, "supervisor.log"),
		Args: []string{
			"run", "--kubeconfig", s.plane.Kubeconfig(), "--leader-election-namespace", home, "--global-catalog-namespace", home,
			"--metrics-address", "0", "--health-address", "0",
		},
	})
	return err
}

// keeper is the version that owns lamps.
const keeper = "keeper"

// definition returns the definition of lamps, with the record of an InstallPlan of the keeper.
func definition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: "lamps." + lamps().Group, Annotations: map[string]string{api.PrefixInstalledAlongside + "1": home + "/" + keeper},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: lamps().Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "lamps", Singular: "lamp", Kind: lamps().Kind, ListKind: "LampList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: lamps().Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// version returns an operator with one Deployment. If it owns lamps, they are to be removed with it.
func version(name string, owns bool) *operatorsv1alpha1.ClusterServiceVersion {
	labels := map[string]string{"app": name}
	csv := &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName:  name,
			InstallModes: []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace, Supported: true}},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
						Name: name,
						Spec: appsv1.DeploymentSpec{
							Selector: &metav1.LabelSelector{MatchLabels: labels},
							Template: corev1.PodTemplateSpec{
								ObjectMeta: metav1.ObjectMeta{Labels: labels},
								Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "registry.example/operator:1"}}},
							},
						},
					}},
				},
			},
		},
	}
	if owns {
		csv.Spec.Cleanup.Enabled = true
		csv.Spec.CustomResourceDefinitions.Owned = []operatorsv1alpha1.CRDDescription{{Name: definition().Name, Version: lamps().Version, Kind: lamps().Kind}}
	}
	return csv
}

// light creates a number of lamps.
func (s *scene) light(ctx context.Context, count int) error {
	for i := range count {
		lamp := &unstructured.Unstructured{}
		lamp.SetGroupVersionKind(lamps())
		lamp.SetNamespace(home)
		lamp.SetName(fmt.Sprintf("lamp-%05d", i))
		if err := s.client.Create(ctx, lamp); err != nil {
			return fmt.Errorf("creating Lamp %s: %w", lamp.GetName(), err)
		}
	}
	return nil
}

// await waits until a condition holds.
func (s *scene) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		return ok, errors.Join(err, s.supervisor.Unexpected())
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
