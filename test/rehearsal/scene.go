package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/programs"
)

const (
	// home is the namespace of the supervisors.
	home = "chandlery-system"
	// catalogName is the CatalogSource in the manifests of OLM.
	catalogName = "operatorhubio-catalog"
	// quota prevents the objects of an InstallPlan that is under way.
	quota = "rehearsal"
)

// olmPrograms are the Deployments of OLM that a takeover stops, with the programs of their containers.
var olmPrograms = map[string]string{"olm-operator": "/bin/olm", "catalog-operator": "/bin/catalog"}

// scene is a cluster with OLM, its operators, and supervisors that wait.
type scene struct {
	client.Client

	bed      *nodes.Bed
	dir      string // built programs
	progress io.Writer
	// late are the operators whose InstallPlans are under way at a switch.
	late []operator
}

// newScene installs OLM and the operators, and then the supervisors.
func newScene(ctx context.Context, bed *nodes.Bed, dir string, rounds int, progress io.Writer) (*scene, error) {
	c, err := failover.NewClient(bed)
	if err != nil {
		return nil, err
	}
	s := &scene{Client: c, bed: bed, dir: dir, progress: progress}
	for round := range rounds {
		s.late = append(s.late, late(round+1, "there"), late(round+1, "back"))
	}
	for _, step := range []func(context.Context) error{s.pushImages, s.installOLM, s.installOperators, s.installSupervisors} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *scene) sayf(format string, args ...any) { fmt.Fprintf(s.progress, format+"\n", args...) }

// pushImages pushes the images of OLM, of its catalog, of the operators and of the supervisors.
func (s *scene) pushImages(ctx context.Context) error {
	s.sayf("building images ...")
	release, err := olmpeer.BuildRelease(ctx, s.dir, s.progress)
	if err != nil {
		return err
	}
	pods, err := olmpeer.BuildPods(ctx, s.dir, s.progress)
	if err != nil {
		return err
	}
	if err := programs.Build(ctx, s.dir, "./test/rehearsal/operator", "./cmd/kubectl-chandlery"); err != nil {
		return err
	}
	answering, err := images.Program(filepath.Join(s.dir, "operator"), "operator")
	if err != nil {
		return err
	}
	all := append(operators(), s.late...)
	content, err := catalog(all, s.bundles())
	if err != nil {
		return err
	}
	source, err := images.Registry(pods.Opm, fstest.MapFS{"catalog.json": &fstest.MapFile{Data: content}})
	if err != nil {
		return err
	}
	for repository, image := range map[string]v1.Image{
		olmpeer.ReleaseRepository: release.Image, "operator-framework/opm:latest": pods.Opm,
		"operator-framework/configmap-operator-registry:latest": pods.Opm, answeringImage: answering, "rehearsal/catalog:v1": source,
	} {
		if _, err := s.bed.Push(ctx, image, repository); err != nil {
			return err
		}
	}
	if err := s.pushBundles(ctx, all); err != nil {
		return err
	}
	return errors.Join(s.bed.PushIdle(ctx, idleImage), failover.PushPrograms(ctx, s.bed))
}

// bundles returns the repository of the bundle images.
func (s *scene) bundles() string { return s.bed.Registry() + "/rehearsal/bundles" }

func (s *scene) pushBundles(ctx context.Context, all []operator) error {
	for i := range all {
		if !all[i].image {
			continue
		}
		files, err := all[i].bundle(installed)
		if err != nil {
			return err
		}
		image, err := images.Bundle(files)
		if err != nil {
			return err
		}
		if _, err := images.Push(ctx, s.bundles()+"/"+all[i].name+":v"+installed, image); err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs kubectl in the cluster.
func (s *scene) kubectl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, s.bed.Kubectl(), append([]string{"--kubeconfig", s.bed.Kubeconfig()}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// installOLM installs OLM from the manifests of its release. There is no DNS on the nodes, so OLM connects to its
// catalogs through a proxy.
func (s *scene) installOLM(ctx context.Context) error {
	s.sayf("installing OLM ...")
	release, err := olmpeer.BuildRelease(ctx, s.dir, s.progress)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(s.bed.Registry(), ":")
	proxy, err := olmpeer.ServeServices(ctx, s.Client, host)
	if err != nil {
		return err
	}
	text, err := release.Manifests(ctx)
	if err != nil {
		return err
	}
	manifests, err := adapt(text, s.bed.Registry()+"/rehearsal/catalog:v1", proxy)
	if err != nil {
		return err
	}
	for _, o := range manifests {
		// The kinds of the first manifests are served soon after these.
		err := failover.Eventually(ctx, o.GetKind()+" "+o.GetName()+" to be created", func(ctx context.Context) string {
			if err := s.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("installing OLM: %w", err)
		}
	}
	return s.awaitOLM(ctx)
}

// awaitOLM waits until OLM serves its catalog and its packages.
func (s *scene) awaitOLM(ctx context.Context) error {
	return failover.Eventually(ctx, "OLM to serve its catalog and its packages", func(ctx context.Context) string {
		source := &operatorsv1alpha1.CatalogSource{}
		server := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := errors.Join(s.Get(ctx, client.ObjectKey{Namespace: olmpeer.Namespace, Name: catalogName}, source),
			s.Get(ctx, client.ObjectKey{Namespace: olmpeer.Namespace, Name: "packageserver"}, server)); err != nil {
			return err.Error()
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" {
			return fmt.Sprintf("the catalog is %+v: %s", state, source.Status.Message)
		}
		if server.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return "the package server is " + string(server.Status.Phase) + ": " + server.Status.Message
		}
		return ""
	})
}

// adapt returns the manifests of OLM with the catalog and the proxy of the rehearsal.
func adapt(text []byte, catalog, proxy string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the manifests of OLM: %w", err)
		}
		if len(o.Object) == 0 {
			continue
		}
		switch o.GetKind() {
		case "CatalogSource":
			err = unstructured.SetNestedField(o.Object, catalog, "spec", "image")
		case "Deployment":
			err = addVariable(o.Object, proxy, "spec", "template", "spec", "containers")
		case operatorsv1alpha1.ClusterServiceVersionKind:
			err = addToVersion(o.Object, proxy)
		}
		if err != nil {
			return nil, fmt.Errorf("adapting the manifests of OLM: %w", err)
		}
		all = append(all, o)
	}
}

// addToVersion adds the variable of the proxy to the Deployments of a ClusterServiceVersion.
func addToVersion(version object, proxy string) error {
	path := []string{"spec", "install", "spec", "deployments"}
	deployments, _, err := unstructured.NestedSlice(version, path...)
	if err != nil {
		return err
	}
	for _, one := range deployments {
		if d, is := one.(object); is {
			if err := addVariable(d, proxy, "spec", "template", "spec", "containers"); err != nil {
				return err
			}
		}
	}
	return unstructured.SetNestedSlice(version, deployments, path...)
}

// addVariable adds the variable of the proxy to containers.
func addVariable(o object, proxy string, path ...string) error {
	containers, _, err := unstructured.NestedSlice(o, path...)
	if err != nil {
		return err
	}
	for _, one := range containers {
		if c, is := one.(object); is {
			env, _ := c["env"].([]any)
			c["env"] = append(env, object{"name": "GRPC_PROXY", "value": proxy})
		}
	}
	return unstructured.SetNestedSlice(o, containers, path...)
}

// installOperators subscribes to the operators, and waits until OLM has installed them.
func (s *scene) installOperators(ctx context.Context) error {
	s.sayf("installing sixteen operators ...")
	all := operators()
	for i := range all {
		if err := s.subscribe(ctx, &all[i]); err != nil {
			return err
		}
	}
	for i := range all {
		if err := s.awaitInstalled(ctx, &all[i]); err != nil {
			return err
		}
	}
	return s.createConverted(ctx)
}

// createConverted creates the object that is read in another version than it is stored.
func (s *scene) createConverted(ctx context.Context) error {
	o := convertedObject()
	return failover.Eventually(ctx, "an object to be created that is converted", func(ctx context.Context) string {
		if err := s.Create(ctx, o.DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
}

// subscribe creates the namespaces of an operator, its OperatorGroup and its Subscription.
func (s *scene) subscribe(ctx context.Context, o *operator) error {
	if o.dependency {
		return nil
	}
	var all []client.Object
	if o.namespace != allNamespaces {
		for _, name := range slices.Compact(append([]string{o.namespace}, o.targets...)) {
			all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		all = append(all, &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: o.targets},
		})
	}
	approval := operatorsv1alpha1.ApprovalAutomatic
	if o.manual {
		approval = operatorsv1alpha1.ApprovalManual
	}
	all = append(all, &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.name, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: olmpeer.Namespace,
			StartingCSV: o.version(installed), InstallPlanApproval: approval, Config: o.config,
		},
	})
	for _, one := range all {
		if err := s.Create(ctx, one); err != nil {
			return fmt.Errorf("creating %T %s: %w", one, one.GetName(), err)
		}
	}
	return nil
}

// awaitInstalled waits until an operator has its final state. It approves the first InstallPlan of an operator whose
// updates wait for approval, and then waits for the second.
func (s *scene) awaitInstalled(ctx context.Context, o *operator) error {
	want := operatorsv1alpha1.CSVPhaseSucceeded
	if o.failed {
		want = operatorsv1alpha1.CSVPhaseFailed
	}
	return failover.Eventually(ctx, "operator "+o.name+" ("+o.shape+") to be "+string(want), func(ctx context.Context) string {
		if o.manual {
			if left := s.approve(ctx, o); left != "" {
				return left
			}
		}
		v := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: o.version(installed)}, v); err != nil {
			return err.Error()
		}
		if v.Status.Phase != want {
			return fmt.Sprintf("%s: %s: %s", v.Status.Phase, v.Status.Reason, v.Status.Message)
		}
		return s.unfollowed(ctx, o)
	})
}

// unfollowed returns what the Subscription of an operator still lacks.
func (s *scene) unfollowed(ctx context.Context, o *operator) string {
	subs := &operatorsv1alpha1.SubscriptionList{}
	if err := s.List(ctx, subs, client.InNamespace(o.namespace)); err != nil {
		return err.Error()
	}
	want := operatorsv1alpha1.SubscriptionState(operatorsv1alpha1.SubscriptionStateAtLatest)
	if o.manual {
		want = operatorsv1alpha1.SubscriptionStateUpgradePending
	}
	for i := range subs.Items {
		sub := &subs.Items[i]
		if sub.Spec.Package == o.name && (sub.Status.InstalledCSV != o.version(installed) || sub.Status.State != want) {
			return fmt.Sprintf("Subscription %s is %s with %q", sub.Name, sub.Status.State, sub.Status.InstalledCSV)
		}
	}
	return ""
}

// approve approves the InstallPlan of the first version.
func (s *scene) approve(ctx context.Context, o *operator) string {
	plans := &operatorsv1alpha1.InstallPlanList{}
	if err := s.List(ctx, plans, client.InNamespace(o.namespace)); err != nil {
		return err.Error()
	}
	for i := range plans.Items {
		p := &plans.Items[i]
		if p.Spec.Approved || !slices.Contains(p.Spec.ClusterServiceVersionNames, o.version(installed)) {
			continue
		}
		if err := s.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"approved":true}}`))); err != nil {
			return err.Error()
		}
	}
	return ""
}

// plainHTTP is a kustomization that adds a variable to the supervisors.
const plainHTTP = `
resources: [%q]
patches:
- target: {kind: Deployment, name: chandlery-supervisor}
  patch: '[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"SUPERVISOR_IMAGE_PLAIN_HTTP","value":"true"}}]'
`

// installSupervisors installs the supervisors beside OLM as docs/migration.md describes, and waits until they wait.
func (s *scene) installSupervisors(ctx context.Context) error {
	s.sayf("installing supervisors beside OLM ...")
	manifests, err := buildcache.SourceDir("deploy")
	if err != nil {
		return err
	}
	overlay := filepath.Join(s.dir, "overlay")
	if err := os.Mkdir(overlay, 0o755); err != nil {
		return fmt.Errorf("making an overlay of the manifests: %w", err)
	}
	base, err := filepath.Rel(overlay, manifests)
	if err != nil {
		return fmt.Errorf("making an overlay of the manifests: %w", err)
	}
	// The only difference to other clusters: the registry of the nodes uses plain HTTP. The pods have the variable from the
	// beginning, because a rollout of supervisors that wait does not end.
	text := fmt.Sprintf(plainHTTP, base)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("making an overlay of the manifests: %w", err)
	}
	if err := s.kubectl(ctx, "apply", "-k", overlay); err != nil {
		return err
	}
	return s.awaitWaiting(ctx)
}

// awaitWaiting waits until all supervisors wait for OLM to stop: their pods run and are not ready.
func (s *scene) awaitWaiting(ctx context.Context) error {
	return failover.Eventually(ctx, "supervisors to wait", func(ctx context.Context) string {
		d := &appsv1.Deployment{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: home, Name: "chandlery-supervisor"}, d); err != nil {
			return err.Error()
		}
		pods := &corev1.PodList{}
		if err := s.List(ctx, pods, client.InNamespace(home), client.MatchingLabels{"app.kubernetes.io/name": "chandlery-supervisor"}); err != nil {
			return err.Error()
		}
		waiting := 0
		for i := range pods.Items {
			if c := pods.Items[i].Status.ContainerStatuses; len(c) == 1 && c[0].Started != nil && *c[0].Started {
				waiting++
			}
		}
		wanted, current := int(*d.Spec.Replicas), d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas
		if !current || waiting != wanted || len(pods.Items) != wanted {
			return fmt.Sprintf("%d of %d pods run", waiting, len(pods.Items))
		}
		return ""
	})
}

// beginLate subscribes to an operator whose InstallPlan cannot end yet, and waits until the InstallPlan is under way.
func (s *scene) beginLate(ctx context.Context, o *operator) error {
	limit := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: quota},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/poddisruptionbudgets.policy": resource.MustParse("0")}},
	}
	if err := s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.namespace}}); err != nil {
		return fmt.Errorf("creating namespace %s: %w", o.namespace, err)
	}
	if err := s.Create(ctx, limit); err != nil {
		return fmt.Errorf("limiting %s: %w", o.namespace, err)
	}
	err := failover.Eventually(ctx, "the quota of "+o.namespace, func(ctx context.Context) string {
		if err := s.Get(ctx, client.ObjectKeyFromObject(limit), limit); err != nil {
			return err.Error()
		}
		if len(limit.Status.Hard) == 0 {
			return "it has no status"
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := s.Create(ctx, &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: o.targets},
	}); err != nil {
		return fmt.Errorf("creating an OperatorGroup in %s: %w", o.namespace, err)
	}
	if err := s.Create(ctx, &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.name},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.name, Channel: "stable", CatalogSource: catalogName, CatalogSourceNamespace: olmpeer.Namespace,
		},
	}); err != nil {
		return fmt.Errorf("subscribing to %s: %w", o.name, err)
	}
	return failover.Eventually(ctx, "the InstallPlan of "+o.name+" to be under way", func(ctx context.Context) string {
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := s.List(ctx, plans, client.InNamespace(o.namespace)); err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
			return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling
		}) {
			return "no InstallPlan is Installing"
		}
		return ""
	})
}

// endLate permits an InstallPlan under way to end, and waits for the operator.
func (s *scene) endLate(ctx context.Context, o *operator) error {
	limit := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: quota}}
	if err := s.Delete(ctx, limit); err != nil {
		return fmt.Errorf("removing the quota of %s: %w", o.namespace, err)
	}
	return s.awaitInstalled(ctx, o)
}
