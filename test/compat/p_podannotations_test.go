package compat_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/compat/compattest"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/pause"
)

// restTime is how long a case checks that an object is not written.
const restTime = 6 * time.Second

// podCase is a case with an installed ClusterServiceVersion and its Deployment.
type podCase struct {
	*compattest.Cluster

	t          *testing.T
	csv        *operatorsv1alpha1.ClusterServiceVersion
	deployment *appsv1.Deployment
}

// newPodCase installs a ClusterServiceVersion and waits until it has succeeded.
func newPodCase(t *testing.T, c *compattest.Cluster, change ...func(*operatorsv1alpha1.ClusterServiceVersion)) *podCase {
	t.Helper()
	csv := c.CSV("lamp.v1", change...)
	c.Make(csv)
	return installedPodCase(t, c, csv)
}

func installedPodCase(t *testing.T, c *compattest.Cluster, csv *operatorsv1alpha1.ClusterServiceVersion) *podCase {
	t.Helper()
	p := &podCase{Cluster: c, t: t, csv: csv, deployment: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: csv.Namespace, Name: csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name,
	}}}
	p.succeeds()
	return p
}

// succeeds waits until the version has succeeded with the present Deployment, and reads both.
func (p *podCase) succeeds() {
	p.t.Helper()
	p.Eventually(compattest.Patience, func() string {
		if left := p.Read(p.csv); left != "" {
			return left
		}
		if p.csv.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded {
			return "phase " + string(p.csv.Status.Phase) + ": " + p.csv.Status.Message
		}
		return p.Read(p.deployment)
	})
}

// rolledOut waits for a revision of the Deployment, and for the version to succeed.
func (p *podCase) rolledOut(revision string) {
	p.t.Helper()
	p.Eventually(compattest.Patience, func() string {
		if left := p.Read(p.deployment); left != "" {
			return left
		}
		if have := p.revision(); have != revision {
			return "revision " + have
		}
		return ""
	})
	p.succeeds()
	if have := p.revision(); have != revision {
		p.t.Errorf("the Deployment has revision %s, want %s", have, revision)
	}
}

func (p *podCase) revision() string {
	return p.deployment.Annotations["deployment.kubernetes.io/revision"]
}

// podsHave checks annotations of the pod template, and of a pod. An empty value stands for an absent annotation.
func (p *podCase) podsHave(want map[string]string) {
	p.t.Helper()
	for key, value := range want {
		if have := p.deployment.Spec.Template.Annotations[key]; have != value {
			p.t.Errorf("annotation %s of the pod template is %q, want %q", key, have, value)
		}
	}
	p.Eventually(compattest.Patience, func() string {
		var pods corev1.PodList
		if err := p.List(p.t.Context(), &pods, client.InNamespace(p.csv.Namespace), client.MatchingLabels(p.deployment.Spec.Selector.MatchLabels)); err != nil {
			return err.Error()
		}
		has := func(pod corev1.Pod) bool {
			for key, value := range want {
				if pod.Annotations[key] != value {
					return false
				}
			}
			return true
		}
		if !slices.ContainsFunc(pods.Items, has) {
			return "no pod has the annotations"
		}
		return ""
	})
}

// annotate sets an annotation of an object; nil removes it.
func (p *podCase) annotate(o client.Object, key string, value any) {
	p.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.Patch(p.t.Context(), o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		p.t.Fatalf("annotating %s: %v", o.GetName(), err)
	}
}

// rewrite replaces the Deployment by one that another program would have created for the same version. Its pods have
// some annotations. The hash is computed from the spec without the API server's defaults. It waits for the pods.
func (p *podCase) rewrite(annotations map[string]string, change ...func(*appsv1.Deployment)) {
	p.t.Helper()
	p.write(annotations, change...)
	p.settle()
	// The version may show the roll-out late.
	pause.For(p.t.Context(), 3*time.Second)
	p.succeeds()
}

// write is rewrite without the wait.
func (p *podCase) write(annotations map[string]string, change ...func(*appsv1.Deployment)) {
	p.t.Helper()
	p.retry(func() error {
		if err := p.Get(p.t.Context(), client.ObjectKeyFromObject(p.deployment), p.deployment); err != nil {
			return err
		}
		delete(p.deployment.Labels, api.LabelPodAnnotations)
		p.deployment.Labels["olm.deployment-spec-hash"] = olmHash(p.csv, annotations)
		p.deployment.Spec.Template.Annotations = annotations
		for _, f := range change {
			f(p.deployment)
		}
		return p.Update(p.t.Context(), p.deployment)
	})
}

// settle waits until the Deployment is rolled out.
func (p *podCase) settle() {
	p.t.Helper()
	p.Eventually(compattest.Patience, func() string {
		if left := p.Read(p.deployment); left != "" {
			return left
		}
		if s := p.deployment.Status; s.ObservedGeneration < p.deployment.Generation || s.UpdatedReplicas != *p.deployment.Spec.Replicas || s.Replicas != s.UpdatedReplicas || s.AvailableReplicas != s.Replicas {
			return "the Deployment is not rolled out"
		}
		return ""
	})
}

// retry repeats an update that meets a newer object.
func (p *podCase) retry(update func() error) {
	p.t.Helper()
	p.Eventually(compattest.Patience, func() string {
		err := update()
		if err != nil && !apierrors.IsConflict(err) {
			p.t.Fatal(err)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// olmHash returns the hash that OLM computes for the first Deployment of a version, if its pods have some annotations.
func olmHash(csv *operatorsv1alpha1.ClusterServiceVersion, annotations map[string]string) string {
	spec := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.DeepCopy()
	spec.RevisionHistoryLimit = new(int32(1))
	spec.Template.Annotations = annotations
	for i := range spec.Template.Spec.Containers {
		container := &spec.Template.Spec.Containers[i]
		container.Env = append(container.Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: csv.Name})
	}
	return olmobjects.Hash(spec)
}

// allPodAnnotations returns the annotations of pods as OLM creates them.
func allPodAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	all := maps.Clone(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, csv.Annotations)
	return all
}

// fewPodAnnotations returns the annotations of pods as earlier releases of Chandlery created them.
func fewPodAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	few := maps.Clone(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations)
	for _, key := range []string{"olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"} {
		few[key] = csv.Annotations[key]
	}
	return few
}

// lampWithAnnotations gives a version and its pod template annotations, of which one has two values.
func lampWithAnnotations(csv *operatorsv1alpha1.ClusterServiceVersion) {
	csv.Annotations = map[string]string{"team": "a"}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations = map[string]string{"team": "b", "x": "y"}
}

// subscribedLamp installs a version with annotations by a Subscription with settings.
func subscribedLamp(t *testing.T, c *compattest.Cluster, config *operatorsv1alpha1.SubscriptionConfig) (*podCase, *operatorsv1alpha1.Subscription) {
	t.Helper()
	csv := c.CSV("lamp.v1", lampWithAnnotations)
	c.Catalog("shelf", fakecatalog.Simple("lamp", fakecatalog.Entry{Name: "lamp.v1", Version: "1.0.0", Objects: []string{c.Manifest(csv)}}))
	sub := c.Subscribe("shelf", "lamp", func(s *operatorsv1alpha1.Subscription) { s.Spec.Channel, s.Spec.Config = "stable", config })
	return installedPodCase(t, c, csv), sub
}

// TestPodAnnotations checks which annotations the pods of operators have, and which changes roll them out.
func TestPodAnnotations(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "P1", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations)
		p.podsHave(map[string]string{
			"team": "a", "x": "y", "olm.operatorGroup": "group", "olm.operatorNamespace": c.Namespace, "olm.targetNamespaces": c.Namespace,
		})
	})
	compattest.Check(t, "P2", func(t *testing.T, c *compattest.Cluster) {
		p, _ := subscribedLamp(t, c, &operatorsv1alpha1.SubscriptionConfig{Annotations: map[string]string{"team": "c", "z": "w"}})
		// The first Deployment may lack the settings of the Subscription.
		p.Eventually(compattest.Patience, func() string {
			if left := p.Read(p.deployment); left != "" || p.deployment.Annotations["z"] == "w" {
				return left
			}
			return "the Deployment lacks the settings"
		})
		p.podsHave(map[string]string{"team": "a", "x": "y", "z": "w"})
		if have := p.deployment.Annotations; have["team"] != "c" || have["z"] != "w" {
			t.Errorf("annotations of the Deployment: %v", have)
		}
	})
	compattest.Check(t, "P3", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations)
		before := len(p.csv.Status.Conditions)
		p.annotate(p.csv, "mesh", "on")
		p.rolledOut("2")
		p.podsHave(map[string]string{"mesh": "on", "team": "a"})
		var phases []string
		for _, condition := range p.csv.Status.Conditions[before:] {
			phases = append(phases, string(condition.Phase))
		}
		if !strings.Contains(strings.Join(phases, " "), "InstallReady Installing") || phases[len(phases)-1] != "Succeeded" {
			t.Errorf("phases %v", phases)
		}
	})
	compattest.Check(t, "P4", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations, func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations["mesh"] = "on" })
		p.podsHave(map[string]string{"mesh": "on"})
		p.annotate(p.csv, "mesh", nil)
		p.rolledOut("2")
		p.podsHave(map[string]string{"mesh": "", "team": "a"})
	})
	compattest.Check(t, "P5", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations)
		p.annotate(p.csv, "chandlery.dev/skip-cleanup", "true")
		p.annotate(p.csv, corev1.LastAppliedConfigAnnotation, "{}")
		p.AtRest(restTime, p.deployment)
		p.podsHave(map[string]string{"chandlery.dev/skip-cleanup": "", corev1.LastAppliedConfigAnnotation: ""})
	})
	testInheritedPods(t)
	compattest.Check(t, "P11", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations, func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Annotations["alm-examples"] = strings.Repeat("x", 200<<10)
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations["notes"] = strings.Repeat("x", 100<<10)
		})
		p.podsHave(map[string]string{"alm-examples": "", "team": "a"})
		p.Eventually(compattest.Patience, func() string {
			warns := func(e corev1.Event) bool {
				return e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "alm-examples")
			}
			if !slices.ContainsFunc(p.Events(p.csv), warns) {
				return "no Event warns"
			}
			return ""
		})
	})
}

// TestAnnotationsOfUpdates checks the annotations of pods after changes of a group, a certificate or a version.
func TestAnnotationsOfUpdates(t *testing.T) {
	t.Parallel()
	compattest.Check(t, "P12", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c)
		other := c.NewNamespace()
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
		p.retry(func() error {
			if err := p.Get(t.Context(), client.ObjectKeyFromObject(group), group); err != nil {
				return err
			}
			group.Spec.TargetNamespaces = []string{c.Namespace, other}
			return p.Update(t.Context(), group)
		})
		p.rolledOut("2")
		targets := []string{c.Namespace, other}
		slices.Sort(targets)
		p.podsHave(map[string]string{"olm.targetNamespaces": strings.Join(targets, ",")})
	})
	compattest.Check(t, "P13", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, ownsWebhook("p13.example"))
		before := p.deployment.Spec.Template.Annotations["olmcahash"]
		if before == "" {
			t.Fatal("the pods have no annotation olmcahash")
		}
		if err := c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: p.deployment.Name + "-service-cert"}}); err != nil {
			t.Fatal(err)
		}
		// Otherwise nothing tells the manager that the Secret is gone.
		p.annotate(p.csv, "seen", "yes")
		p.Eventually(compattest.Patience, func() string {
			if left := p.Read(p.deployment); left != "" {
				return left
			}
			if p.deployment.Spec.Template.Annotations["olmcahash"] == before {
				return "olmcahash is as before"
			}
			return ""
		})
		p.succeeds()
	})
	compattest.Check(t, "P14", func(t *testing.T, c *compattest.Cluster) {
		other := c.NewNamespace()
		group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
		if err := c.Patch(t.Context(), group, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"targetNamespaces":["`+c.Namespace+`","`+other+`"]}}`))); err != nil {
			t.Fatal(err)
		}
		p := newPodCase(t, c)
		p.annotate(p.csv, "mesh", "on")
		copied := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: p.csv.Name}}
		c.Eventually(compattest.Patience, func() string {
			if left := c.Read(copied); left != "" {
				return left
			}
			if copied.Annotations["mesh"] != "on" {
				return "the copy lacks the annotation"
			}
			return ""
		})
		var deployments appsv1.DeploymentList
		if err := c.List(t.Context(), &deployments, client.InNamespace(other)); err != nil || len(deployments.Items) > 0 {
			t.Errorf("%d Deployments, error %v", len(deployments.Items), err)
		}
	})
	compattest.Check(t, "P15", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, func(csv *operatorsv1alpha1.ClusterServiceVersion) { csv.Annotations = map[string]string{"old": "yes"} })
		p.podsHave(map[string]string{"old": "yes"})
		next := c.CSV("lamp.v2", func(csv *operatorsv1alpha1.ClusterServiceVersion) {
			csv.Spec.Replaces = "lamp.v1"
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0] = p.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
			csv.Annotations = map[string]string{"new": "yes"}
		})
		c.Make(next)
		c.Gone(compattest.Patience, p.csv.DeepCopy())
		n := installedPodCase(t, c, next)
		n.podsHave(map[string]string{"old": "", "new": "yes"})
	})
}

// lampOfKubectl is lampWithAnnotations with annotations that pods do not get.
func lampOfKubectl(csv *operatorsv1alpha1.ClusterServiceVersion) {
	lampWithAnnotations(csv)
	csv.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	csv.Annotations["chandlery.dev/skip-cleanup"] = "true"
}

// byHand changes the environment in a Deployment, as a user does.
func byHand(d *appsv1.Deployment) {
	d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "COLOUR", Value: "red"})
}

// inheritedCase has versions whose Deployments another program created.
type inheritedCase struct {
	count       int
	version     csvChange
	annotations func(*operatorsv1alpha1.ClusterServiceVersion) map[string]string
	change      []func(*appsv1.Deployment)
}

// testAfterRestarts checks that neither a restart of the manager nor a change of the leader writes the Deployments or
// replaces their pods.
func (i inheritedCase) testAfterRestarts(t *testing.T, c *compattest.Cluster, reach func(int)) {
	var (
		cases   []*podCase
		written []map[string]string
	)
	for n := range i.count {
		c.Make(c.CSV(fmt.Sprintf("lamp-%d.v1", n), i.version))
	}
	for n := range i.count {
		p := installedPodCase(t, c, c.CSV(fmt.Sprintf("lamp-%d.v1", n), i.version))
		annotations := i.annotations(p.csv)
		p.write(annotations, i.change...)
		cases, written = append(cases, p), append(written, maps.Clone(annotations))
	}
	for _, p := range cases {
		p.settle()
	}
	// The versions may show the roll-outs late.
	pause.For(t.Context(), 3*time.Second)
	deployments := make([]client.Object, i.count)
	before := make([]string, i.count)
	for n, p := range cases {
		p.succeeds()
		if have := p.deployment.Spec.Template.Annotations; !maps.Equal(have, written[n]) {
			t.Fatalf("Deployment %s was rolled out: annotations %v, want %v", p.deployment.Name, have, written[n])
		}
		deployments[n], before[n] = p.deployment, p.deployment.ResourceVersion
	}
	pods := podsOf(t, c)
	for _, stage := range []int{started, ledByOther} {
		reach(stage)
		c.AtRest(restTime, deployments...)
		for n, d := range deployments {
			if d.GetResourceVersion() != before[n] {
				t.Errorf("Deployment %s was written: %s", d.GetName(), c.Manifest(d.GetManagedFields()))
			}
		}
		if after := podsOf(t, c); !slices.Equal(pods, after) {
			t.Errorf("the pods were %v, and are %v", pods, after)
		}
	}
}

// podsOf returns the UIDs of the pods in the namespace of a case, sorted.
func podsOf(t *testing.T, c *compattest.Cluster) []types.UID {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(c.Namespace)); err != nil {
		t.Fatal(err)
	}
	var uids []types.UID
	for i := range pods.Items {
		uids = append(uids, pods.Items[i].UID)
	}
	slices.Sort(uids)
	return uids
}

// testInheritedPods has Deployments that OLM or an earlier release created.
func testInheritedPods(t *testing.T) {
	t.Helper()
	compattest.Check(t, "P6", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations)
		p.rewrite(fewPodAnnotations(p.csv))
		p.AtRest(p.Rest(), p.deployment, p.csv)
		p.podsHave(map[string]string{"team": "b", "x": "y"})
	})
	compattest.Check(t, "P7", func(t *testing.T, c *compattest.Cluster) {
		p, sub := subscribedLamp(t, c, nil)
		p.rewrite(fewPodAnnotations(p.csv))
		revision := p.revision()
		if err := c.Patch(t.Context(), sub, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"config":{"env":[{"name":"COLOUR","value":"red"}]}}}`))); err != nil {
			t.Fatal(err)
		}
		p.Eventually(compattest.Patience, func() string {
			if left := p.Read(p.deployment); left != "" || p.revision() == revision {
				return "the Deployment is not rolled out: " + left
			}
			return ""
		})
		p.podsHave(map[string]string{"team": "a", "x": "y", "operatorframework.io/properties": p.csv.Annotations["operatorframework.io/properties"]})
	})
	applied := lampOfKubectl
	compattest.Check(t, "P8", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, applied)
		p.rewrite(allPodAnnotations(p.csv))
		p.AtRest(restTime, p.deployment, p.csv)
		p.podsHave(map[string]string{"team": "a", corev1.LastAppliedConfigAnnotation: "{}"})
	})
	compattest.Check(t, "P9", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, lampWithAnnotations)
		annotations := allPodAnnotations(p.csv)
		if have, want := p.deployment.Labels["olm.deployment-spec-hash"], olmHash(p.csv, annotations); have != want {
			t.Errorf("hash %s, want %s", have, want)
		}
	})
	compattest.Check(t, "P10", func(t *testing.T, c *compattest.Cluster) {
		p := newPodCase(t, c, applied)
		p.rewrite(allPodAnnotations(p.csv), byHand)
		p.AtRest(restTime, p.deployment, p.csv)
		if env := p.deployment.Spec.Template.Spec.Containers[0].Env; env[len(env)-1].Name != "COLOUR" {
			t.Errorf("environment %v", env)
		}
	})
}
