package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/chandlery/chandlery/supervisor"
	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/ports"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// home is the namespace of the operators.
	home = "operators"
	// patience bounds every wait.
	patience = 20 * time.Minute
	// polling is the interval between checks of a condition.
	polling = 500 * time.Millisecond
)

// scene is the measured supervisor with its environment.
type scene struct {
	o          options
	dir        string
	plane      *controlplane.ControlPlane
	client     client.Client
	supervisor *process.Process
	metrics    string
}

// setUp starts a control plane with namespaces and operators. The returned function stops everything.
func setUp(ctx context.Context, o options, dir string) (_ *scene, tearDown func() error, err error) {
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, nil, err
	}
	s := &scene{o: o, dir: dir, plane: plane}
	tearDown = func() error { return errors.Join(s.end(), plane.Stop()) }
	if err := s.furnish(ctx); err != nil {
		return nil, nil, errors.Join(err, tearDown())
	}
	return s, tearDown, nil
}

// furnish creates the kinds, the namespaces and the operators. Copies are off at first.
func (s *scene) furnish(ctx context.Context) error {
	scheme, err := supervisor.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.New(s.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if err := programs.InstallCRDs(ctx, filepath.Join(s.dir, "supervisor"), s.plane.Kubeconfig()); err != nil {
		return err
	}
	objects := []client.Object{
		namespace(home),
		&operatorsv1.OLMConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
			Spec:       operatorsv1.OLMConfigSpec{Features: &operatorsv1.Features{DisableCopiedCSVs: new(true)}},
		},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "global"}},
	}
	for i := range s.o.namespaces {
		objects = append(objects, namespace(fmt.Sprintf("bench-%04d", i)))
	}
	for i := range s.o.operators {
		objects = append(objects, version(fmt.Sprintf("operator-%02d", i), s.o.size<<10))
	}
	for _, obj := range objects {
		if err := s.client.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// version returns an operator with one Deployment, for all namespaces. Half of its size is in its
// description and half in its examples, which are an annotation.
func version(name string, size int) *operatorsv1alpha1.ClusterServiceVersion {
	labels := map[string]string{"app": name}
	filler := strings.Repeat("All work and no play. ", size/44)
	return &operatorsv1alpha1.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name + ".v1.0.0", Annotations: map[string]string{"alm-examples": filler}},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName: name, Description: filler,
			InstallModes: []operatorsv1alpha1.InstallMode{{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true}},
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
}

// begin starts the supervisor.
func (s *scene) begin(ctx context.Context) error {
	address, err := ports.Reserve(ctx)
	if err != nil {
		return err
	}
	s.metrics = address.Address()
	s.supervisor, err = process.Start(ctx, process.Spec{
		Name: "supervisor", Path: filepath.Join(s.dir, "supervisor"), Log: filepath.Join(s.dir, "supervisor.log"),
		Args: []string{
			"run", "--kubeconfig", s.plane.Kubeconfig(), "--leader-election-namespace", home, "--global-catalog-namespace", home,
			"--metrics-address", s.metrics, "--health-address", "0",
		},
	})
	return err
}

// end stops the supervisor.
func (s *scene) end() error {
	const grace = 10 * time.Second
	if s.supervisor == nil {
		return nil
	}
	p := s.supervisor
	s.supervisor = nil
	return p.Stop(grace)
}

// turn turns copies on or off and waits until all are created or deleted.
func (s *scene) turn(ctx context.Context, on bool) (time.Duration, error) {
	began := time.Now()
	err := s.await(ctx, "the OLMConfig to be changed", func(ctx context.Context) (bool, error) {
		config := &operatorsv1.OLMConfig{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: "cluster"}, config); err != nil {
			return false, err
		}
		config.Spec.Features = &operatorsv1.Features{DisableCopiedCSVs: new(!on)}
		return true, s.client.Update(ctx, config)
	})
	if err != nil {
		return 0, err
	}
	if err := s.settled(ctx, on); err != nil {
		return 0, err
	}
	return time.Since(began), s.counted(ctx, on)
}

// settled waits until the OLMConfig reports the requested state of copies.
func (s *scene) settled(ctx context.Context, on bool) error {
	return s.await(ctx, "copies to be as asked", func(ctx context.Context) (bool, error) {
		config := &operatorsv1.OLMConfig{}
		if err := s.client.Get(ctx, client.ObjectKey{Name: "cluster"}, config); err != nil {
			return false, err
		}
		c := apimeta.FindStatusCondition(config.Status.Conditions, operatorsv1.DisabledCopiedCSVsConditionType)
		if c == nil {
			return false, nil
		}
		if on {
			return c.Reason == api.ReasonCopiedCSVsEnabled && strings.Contains(c.Message, "present"), nil
		}
		return c.Reason == api.ReasonCopiedCSVsDisabled && c.Status == metav1.ConditionTrue, nil
	})
}

// counted returns an error if the number of copies is wrong. It lists them in pages.
func (s *scene) counted(ctx context.Context, on bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersionList"))
	count := 0
	for {
		err := s.client.List(ctx, list, client.HasLabels{api.LabelCopiedFrom}, client.Limit(100), client.Continue(list.Continue))
		if err != nil {
			return fmt.Errorf("counting copies: %w", err)
		}
		count += len(list.Items)
		if list.Continue == "" {
			break
		}
	}
	if least := s.o.namespaces * s.o.operators; (on && count < least) || (!on && count > 0) {
		return fmt.Errorf("counting copies: there are %d, though they are said to be as asked (%d, or none)", count, least)
	}
	return nil
}

// await waits until a condition holds.
func (s *scene) await(ctx context.Context, what string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, polling, patience, true, func(ctx context.Context) (bool, error) {
		ok, err := holds(ctx)
		if s.supervisor != nil {
			err = errors.Join(err, s.supervisor.Unexpected())
		}
		return ok, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
