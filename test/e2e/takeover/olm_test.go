package takeover_test

import (
	"context"
	"encoding/json"
	"log"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/fakecatalog"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/olmobjects"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/process"
	"github.com/chandlery/chandlery/test/testenv"
)

// TestRealOLM takes over from one running OLM several times, and hands back to it. OLM has an operator with a webhook, one that
// failed, a catalog from a ConfigMap, and its own package server. A control plane and an OLM take long to start, so the subtests
// share them.
func TestRealOLM(t *testing.T) {
	s := newOLMScene(t)
	installsPackageServer(s)
	hostsCatalog(s)
	s.subscribe("lamp", nil, "lamps")
	s.subscribe("flare", nil, "flares", "elsewhere")
	s.reaches("lamp", "lamp.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.reaches("flare", "flare.v1.0.0", operatorsv1alpha1.CSVPhaseFailed)
	s.shown("lamp", "the installation", isAtLatest("lamp.v1.0.0"))
	t.Run("KilledAtWrites", func(t *testing.T) { killsAtWrites(inSubtest(t, s)) })
	t.Run("InProgress", func(t *testing.T) { takesOverInProgress(inSubtest(t, s)) })
}

// takesOverInProgress takes over while OLM has also an operator whose bundle cannot be pulled, one whose InstallPlan is in
// progress, and two that one InstallPlan updates. The supervisor installs one operator and updates another. OLM continues
// without a rollout, and nothing of the supervisor is left.
func takesOverInProgress(s *olmScene) {
	t := s.t
	t.Helper()
	s.subscribe("anchor", nil, "anchors")
	s.subscribe("bell", nil, "bells")
	s.unpacks("bell", "1.0.0")
	beginsUpdates(s)
	s.reaches("lamp", "lamp.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.reaches("flare", "flare.v1.0.0", operatorsv1alpha1.CSVPhaseFailed)
	s.reaches("bell", "bell.v1.0.0", operatorsv1alpha1.CSVPhasePending)
	s.shown("flare", "OLM's failed version", func(status *operatorsv1alpha1.SubscriptionStatus) bool {
		return status.InstalledCSV == "flare.v1.0.0" && status.State == operatorsv1alpha1.SubscriptionStateAtLatest
	})
	s.shown("anchor", "OLM to unpack", func(status *operatorsv1alpha1.SubscriptionStatus) bool {
		return status.GetCondition(operatorsv1alpha1.SubscriptionBundleUnpacking).Status == corev1.ConditionTrue
	})
	before := s.rollouts()
	delete(before, "gongs/gong-operator")
	delete(before, "gongs/chime-operator")

	running := s.takesOver()
	s.reaches("bell", "bell.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.shown("bell", "the installation that OLM began", isAtLatest("bell.v1.0.0"))
	finishesUpdates(s)
	servesCatalog(s, "supervisors", func(p *corev1.Pod) bool { return isOfSupervisor(p.Labels) })
	s.shown("anchor", "the bundle that cannot be pulled", func(status *operatorsv1alpha1.SubscriptionStatus) bool {
		return status.CurrentCSV == "" && status.InstallPlanRef != nil &&
			status.GetCondition(operatorsv1alpha1.SubscriptionBundleUnpackFailed).Status == corev1.ConditionTrue
	})
	s.shown("flare", "the version that failed under OLM", func(status *operatorsv1alpha1.SubscriptionStatus) bool {
		return len(status.CatalogHealth) > 0 && status.InstalledCSV == "flare.v1.0.0" && status.CurrentCSV == "flare.v1.0.0" &&
			status.State == operatorsv1alpha1.SubscriptionStateAtLatest
	})
	s.sameRollouts("the takeover", before)
	renewsPackageServer(s)

	s.serve("gong", "chime", "lamp")
	s.subscribe("buoy", &operatorsv1alpha1.SubscriptionConfig{
		Env:          []corev1.EnvVar{{Name: "COLOUR", Value: "red"}},
		Annotations:  map[string]string{"shop.example/team": "blue"},
		Volumes:      []corev1.Volume{{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "cache", MountPath: "/cache"}},
		Tolerations:  []corev1.Toleration{{Key: "shop.example/spot", Operator: corev1.TolerationOpExists}},
	}, "buoys")
	s.reaches("lamp", "lamp.v1.1.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.reaches("buoy", "buoy.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.shown("lamp", "the update", isAtLatest("lamp.v1.1.0"))
	configured := s.configures("bell")
	before = s.rollouts()
	delete(before, "bells/bell-operator")

	s.shows("handback", "the operator of Subscription bells/bell (annotation chandlery.dev/config)")
	s.command("handback", "--yes")
	s.stepsDown(running, "is being handed back")
	s.unpacks("anchor", "1.0.0")
	if err := s.peer.Restart(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.reaches("anchor", "anchor.v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	s.shown("anchor", "OLM to install", isAtLatest("anchor.v1.0.0"))
	s.plansEnd()
	s.sameRollouts("handing back", before)
	servesCatalog(s, "OLM", func(p *corev1.Pod) bool { return !isOfSupervisor(p.Labels) })
	leavesNothing(s)
	if is := s.rollouts()["bells/bell-operator"]; is.GetGeneration() == configured {
		t.Error("OLM did not roll out an operator with settings that it does not know")
	}
}

// isAtLatest returns a check that a Subscription has a version and waits for nothing.
func isAtLatest(version string) func(*operatorsv1alpha1.SubscriptionStatus) bool {
	return func(status *operatorsv1alpha1.SubscriptionStatus) bool {
		return status.CurrentCSV == version && status.InstalledCSV == version && status.State == operatorsv1alpha1.SubscriptionStateAtLatest &&
			status.GetCondition(operatorsv1alpha1.SubscriptionInstallPlanFailed).Status != corev1.ConditionTrue
	}
}

// olmScene is a cluster of its own with a running OLM. Its Deployments are there too, as the command expects.
type olmScene struct {
	*scene

	namespace string // of OLM
	programs  string // folder of OLM's programs
	peer      *olmpeer.Peer
	server    *fakecatalog.Server
	images    string // host of the registry
}

// inSubtest returns the scene for a subtest.
func inSubtest(t *testing.T, s *olmScene) *olmScene {
	t.Helper()
	sub, base := *s, *s.scene
	base.t = t
	sub.scene = &base
	return &sub
}

// newOLMScene creates the objects of OLM and starts its programs.
func newOLMScene(t *testing.T) *olmScene {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s := newEmptyScene(t, olmpeer.Namespace)
	deploys(s.scene)
	if err := olmobjects.New(s.Client).InstallOLM(ctx); err != nil {
		t.Fatal(err)
	}
	var err error
	s.peer, err = olmpeer.Start(ctx, olmpeer.Options{Programs: s.programs, Logs: t.ArtifactDir(), Plane: s.plane})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.peer.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.offers()
	return s
}

// newEmptyScene starts a control plane for an OLM in a namespace, and a catalog. Nothing is installed.
func newEmptyScene(t *testing.T, namespace string) *olmScene {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	programs, err := olmpeer.Build(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(registry.New(registry.Logger(log.New(t.Output(), "", 0))))
	t.Cleanup(host.Close)
	s := &olmScene{
		scene: startScene(t, controlplane.Options{Nodes: 1, AuditWrites: true}), namespace: namespace, programs: programs, images: strings.TrimPrefix(host.URL, "http://"),
	}
	s.server = fakecatalog.Start(t)
	s.serve()
	return s
}

// offers creates the global catalog, and waits until OLM is connected to it.
func (s *olmScene) offers() {
	s.t.Helper()
	key := client.ObjectKey{Namespace: s.namespace, Name: "shop"}
	s.create(&operatorsv1alpha1.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       operatorsv1alpha1.CatalogSourceSpec{SourceType: operatorsv1alpha1.SourceTypeGrpc, Address: s.server.Address()},
	})
	testenv.Until(s.t, patience, "OLM to be connected to the catalog", func(ctx context.Context) string {
		source := &operatorsv1alpha1.CatalogSource{}
		if err := s.Get(ctx, key, source); err != nil {
			return err.Error()
		}
		if state := source.Status.GRPCConnectionState; state == nil || state.LastObservedState != "READY" {
			return text(s.t, source.Status)
		}
		return ""
	})
}

func (s *olmScene) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

// needsRules reports whether a version has an object whose kind is not served at the beginning.
func needsRules(pkg, number string) bool { return pkg == "bell" || pkg == "gong" && number != "1.0.0" }

// hasImage reports whether the bundle of a version is an image.
func hasImage(pkg, number string) bool {
	return pkg == "anchor" || pkg == "bell" || (pkg == "gong" || pkg == "chime") && number != "1.0.0"
}

// namespaceOf returns the namespace of an operator.
func (s *olmScene) namespaceOf(pkg string) string {
	switch pkg {
	case "chime":
		return "gongs"
	case packageServer:
		return s.namespace
	default:
		return pkg + "s"
	}
}

// manifests returns the objects of a bundle.
func (s *olmScene) manifests(pkg, number string) map[string]string {
	s.t.Helper()
	v := csv(pkg, number, pkg == "lamp" || pkg == "buoy")
	objects := map[string]any{"csv.yaml": v, "crd.yaml": crd(pkg)}
	if number != "1.0.0" {
		v.Spec.Replaces = pkg + ".v1.0.0"
	}
	if needsRules(pkg, number) {
		objects["rule.yaml"] = map[string]any{
			"apiVersion": rules().Spec.Group + "/v1", "kind": rules().Spec.Names.Kind, "metadata": map[string]string{"name": pkg}, "spec": map[string]any{},
		}
	}
	texts := map[string]string{}
	for name, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			s.t.Fatal(err)
		}
		texts[name] = string(text)
	}
	return texts
}

// rules returns the definition of PrometheusRules.
func rules() *apiextensionsv1.CustomResourceDefinition {
	d := crd("rule")
	d.Name, d.Spec.Group = "prometheusrules.monitoring.coreos.com", "monitoring.coreos.com"
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "prometheusrules", Singular: "prometheusrule", Kind: "PrometheusRule", ListKind: "PrometheusRuleList"}
	return d
}

// serve serves all packages in version 1.0.0, and some in version 1.1.0 too. All bundle images but that of anchor exist.
func (s *olmScene) serve(updated ...string) {
	s.t.Helper()
	var packages []fakecatalog.Package
	for _, pkg := range []string{"lamp", "flare", "buoy", "anchor", "bell", "gong", "chime"} {
		var entries []fakecatalog.Entry
		numbers := []string{"1.0.0"}
		if slices.Contains(updated, pkg) {
			numbers = append(numbers, "1.1.0")
		}
		for i, number := range numbers {
			entry := fakecatalog.Entry{Name: pkg + ".v" + number, Version: number}
			if i > 0 {
				entry.Replaces = pkg + ".v" + numbers[i-1]
			}
			texts := s.manifests(pkg, number)
			if hasImage(pkg, number) {
				entry.Image = s.image(pkg, number)
			} else {
				entry.Objects = []string{texts["csv.yaml"], texts["crd.yaml"]}
			}
			if hasImage(pkg, number) && pkg != "anchor" {
				s.push(pkg, number)
			}
			entries = append(entries, entry)
		}
		packages = append(packages, fakecatalog.Simple(pkg, entries...))
	}
	s.server.Serve(packages...)
}

// image returns the reference of the bundle image of a version.
func (s *olmScene) image(pkg, number string) string { return s.images + "/" + pkg + ":v" + number }

// push pushes the bundle image of a version.
func (s *olmScene) push(pkg, number string) {
	s.t.Helper()
	files := fstest.MapFS{"metadata/annotations.yaml": {Data: []byte("annotations:\n  operators.operatorframework.io.bundle.package.v1: " + pkg + "\n")}}
	for name, text := range s.manifests(pkg, number) {
		files["manifests/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	image, err := images.Bundle(files)
	if err == nil {
		_, err = images.Push(s.t.Context(), s.image(pkg, number), image)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// subscribe creates a Subscription to a package in a namespace of its own, with an OperatorGroup for some namespaces.
func (s *olmScene) subscribe(pkg string, config *operatorsv1alpha1.SubscriptionConfig, targets ...string) {
	s.t.Helper()
	for _, namespace := range targets {
		s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	s.create(&operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: targets[0], Name: "group"}, Spec: operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	})
	s.follow(pkg, config)
}

// follow creates a Subscription to a package.
func (s *olmScene) follow(pkg string, config *operatorsv1alpha1.SubscriptionConfig) {
	s.t.Helper()
	s.create(&operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespaceOf(pkg), Name: pkg},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: pkg, Channel: "stable", CatalogSource: "shop", CatalogSourceNamespace: s.namespace, Config: config,
		},
	})
}

// unpacks does the work of the pod that unpacks the bundle image of a version for OLM.
func (s *olmScene) unpacks(pkg, number string) {
	s.t.Helper()
	testenv.Until(s.t, patience, "a Job for the bundle of "+pkg, func(ctx context.Context) string {
		jobs := &batchv1.JobList{}
		if err := s.List(ctx, jobs, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		i := slices.IndexFunc(jobs.Items, func(job batchv1.Job) bool {
			return slices.ContainsFunc(job.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool { return c.Image == s.image(pkg, number) })
		})
		if i < 0 {
			return "no Job"
		}
		content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: jobs.Items[i].Labels["operatorframework.io/bundle-unpack-ref"]}}
		data, err := json.Marshal(map[string]any{"data": s.manifests(pkg, number)})
		if err == nil {
			err = s.Patch(ctx, content, client.RawPatch("application/merge-patch+json", data))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// reaches waits until a version of a package has a phase.
func (s *olmScene) reaches(pkg, version string, phase operatorsv1alpha1.ClusterServiceVersionPhase) {
	s.t.Helper()
	begun := time.Now()
	testenv.Until(s.t, patience, version+" to be "+string(phase), func(ctx context.Context) string {
		v := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespaceOf(pkg), Name: version}, v); err != nil {
			return err.Error()
		}
		if v.Status.Phase != phase {
			return string(v.Status.Phase) + ": " + v.Status.Message
		}
		return ""
	})
	s.t.Logf("%s is %s after %s", version, phase, time.Since(begun).Round(time.Millisecond))
}

// shown waits until the status of the Subscription to a package shows something.
func (s *olmScene) shown(pkg, what string, shows func(*operatorsv1alpha1.SubscriptionStatus) bool) {
	s.t.Helper()
	testenv.Until(s.t, patience, "Subscription "+pkg+" to show "+what, func(ctx context.Context) string {
		sub := &operatorsv1alpha1.Subscription{}
		if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespaceOf(pkg), Name: pkg}, sub); err != nil {
			return err.Error()
		}
		if !shows(&sub.Status) {
			return text(s.t, sub.Status)
		}
		return ""
	})
}

// takesOver stops OLM, takes over with a supervisor, and returns it when it leads. The missing kind of bell
// is served then.
func (s *olmScene) takesOver() *process.Process {
	s.t.Helper()
	running := s.supervise("real", "--image-plain-http")
	s.stands(running, "Deployment olm/catalog-operator")
	if err := s.peer.Stop(); err != nil {
		s.t.Fatal(err)
	}
	s.create(rules())
	s.command("takeover", "--yes")
	s.leads(running)
	return running
}

// rollouts returns the Deployments of operators, without those of OLM itself and of catalogs. Their generations increase with each change of the spec.
func (s *olmScene) rollouts() snapshot {
	s.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := s.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	found := snapshot{}
	for i := range list.Items {
		d := &list.Items[i]
		isOfOperator := d.GetNamespace() != home && (d.GetNamespace() != s.namespace || d.GetName() == packageServer)
		if isOfOperator && !isOfSupervisor(d.GetLabels()) {
			found[d.GetNamespace()+"/"+d.GetName()] = d
		}
	}
	return found
}

// configures sets the replicas of the operator of a package, which OLM does not know, and returns its generation then.
func (s *olmScene) configures(pkg string) int64 {
	s.t.Helper()
	sub := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: pkg + "s", Name: pkg}}
	set := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"chandlery.dev/config":"{\"replicas\":2}"}}}`))
	if err := s.Patch(s.t.Context(), sub, set); err != nil {
		s.t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	testenv.Until(s.t, patience, "two replicas of "+pkg, func(ctx context.Context) string {
		if err := s.Get(ctx, client.ObjectKey{Namespace: pkg + "s", Name: pkg + "-operator"}, d); err != nil {
			return err.Error()
		}
		if *d.Spec.Replicas != 2 || d.Status.ReadyReplicas != 2 {
			return text(s.t, d.Status)
		}
		return ""
	})
	s.reaches(pkg, pkg+".v1.0.0", operatorsv1alpha1.CSVPhaseSucceeded)
	return d.Generation
}

// sameRollouts checks that Deployments were not changed.
func (s *olmScene) sameRollouts(by string, before snapshot) {
	s.t.Helper()
	after := s.rollouts()
	for name, was := range before {
		is := after[name]
		if is == nil {
			s.t.Errorf("%s: Deployment %s is gone", by, name)
			continue
		}
		if is.GetGeneration() != was.GetGeneration() {
			s.t.Errorf("%s: Deployment %s was rolled out:\n%s", by, name, strings.Join(compare(s.t, name, was.Object["spec"], is.Object["spec"]), "\n"))
		}
	}
}

// plansEnd waits until no InstallPlan is left that OLM does not continue.
func (s *olmScene) plansEnd() {
	s.t.Helper()
	testenv.Until(s.t, patience, "all InstallPlans to end", func(ctx context.Context) string {
		plans := &operatorsv1alpha1.InstallPlanList{}
		if err := s.List(ctx, plans); err != nil {
			return err.Error()
		}
		for _, p := range plans.Items {
			if phase := p.Status.Phase; phase != operatorsv1alpha1.InstallPlanPhaseComplete && phase != operatorsv1alpha1.InstallPlanPhaseFailed {
				return p.Namespace + "/" + p.Name + " is " + string(phase)
			}
		}
		return ""
	})
}
