package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/failover"
	"github.com/chandlery/chandlery/test/images"
	"github.com/chandlery/chandlery/test/oracle/olmpeer"
	"github.com/chandlery/chandlery/test/programs"
)

// installer installs what a rehearsal needs: images, OLM, the operators, and supervisors that wait.
type installer struct{ scene *scene }

// install runs all steps.
func (i *installer) install(ctx context.Context) error {
	for _, step := range []func(context.Context) error{i.pushImages, i.installOLM, i.installOperators, i.installSupervisors} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// pushImages pushes the images of OLM, of its catalog, of the operators and of the supervisors.
func (i *installer) pushImages(ctx context.Context) error {
	i.scene.sayf("building images ...")
	release, err := olmpeer.BuildRelease(ctx, i.scene.dir, i.scene.progress)
	if err != nil {
		return err
	}
	pods, err := olmpeer.BuildPods(ctx, i.scene.dir, i.scene.progress)
	if err != nil {
		return err
	}
	if err := programs.Build(ctx, i.scene.dir, "./test/rehearsal/operator", "./cmd/kubectl-chandlery"); err != nil {
		return err
	}
	answering, err := images.Program(filepath.Join(i.scene.dir, "operator"), "operator")
	if err != nil {
		return err
	}
	all := append(operators(), i.scene.late...)
	content, err := catalog(all, i.bundles())
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
		if _, err := i.scene.bed.Images.Push(ctx, image, repository); err != nil {
			return err
		}
	}
	if err := i.pushBundles(ctx, all); err != nil {
		return err
	}
	return errors.Join(i.scene.bed.Images.PushIdle(ctx, idleImage), failover.PushPrograms(ctx, i.scene.bed))
}

// bundles returns the repository of the bundle images.
func (i *installer) bundles() string { return i.scene.bed.Images.Address() + "/rehearsal/bundles" }

func (i *installer) pushBundles(ctx context.Context, all []operator) error {
	for n := range all {
		o := &all[n]
		if len(o.objects) == 0 {
			continue
		}
		files, err := (&bundle{operator: o, number: installed}).files()
		if err != nil {
			return err
		}
		image, err := images.Bundle(files)
		if err != nil {
			return err
		}
		if _, err := images.Push(ctx, i.bundles()+"/"+o.name+":v"+installed, image); err != nil {
			return err
		}
	}
	return nil
}

// installOLM installs OLM from the manifests of its release. There is no DNS on the nodes, so OLM connects to its
// catalogs through a proxy.
func (i *installer) installOLM(ctx context.Context) error {
	i.scene.sayf("installing OLM ...")
	release, err := olmpeer.BuildRelease(ctx, i.scene.dir, i.scene.progress)
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(i.scene.bed.Images.Address(), ":")
	proxy, err := olmpeer.ServeServices(ctx, i.scene.Client, host)
	if err != nil {
		return err
	}
	text, err := release.Manifests(ctx)
	if err != nil {
		return err
	}
	manifests, err := adapt(text, i.scene.bed.Images.Address()+"/rehearsal/catalog:v1", proxy)
	if err != nil {
		return err
	}
	for _, o := range manifests {
		// The kinds of the first manifests are served soon after these.
		err := failover.Eventually(ctx, o.GetKind()+" "+o.GetName()+" to be created", func(ctx context.Context) string {
			if err := i.scene.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("installing OLM: %w", err)
		}
	}
	return i.awaitOLM(ctx)
}

// awaitOLM waits until OLM serves its catalog and its packages.
func (i *installer) awaitOLM(ctx context.Context) error {
	return failover.Eventually(ctx, "OLM to serve its catalog and its packages", func(ctx context.Context) string {
		source := &operatorsv1alpha1.CatalogSource{}
		server := &operatorsv1alpha1.ClusterServiceVersion{}
		if err := errors.Join(i.scene.Get(ctx, client.ObjectKey{Namespace: olmpeer.Namespace, Name: catalogName}, source),
			i.scene.Get(ctx, client.ObjectKey{Namespace: olmpeer.Namespace, Name: "packageserver"}, server)); err != nil {
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
func (i *installer) installOperators(ctx context.Context) error {
	i.scene.sayf("installing sixteen operators ...")
	all := operators()
	for n := range all {
		if err := i.scene.subscriptions.subscribe(ctx, &all[n]); err != nil {
			return err
		}
	}
	for n := range all {
		if err := i.scene.subscriptions.awaitInstalled(ctx, &all[n]); err != nil {
			return err
		}
	}
	return i.createConverted(ctx)
}

// createConverted creates the object that is read in another version than it is stored.
func (i *installer) createConverted(ctx context.Context) error {
	o := convertedObject()
	return failover.Eventually(ctx, "an object to be created that is converted", func(ctx context.Context) string {
		if err := i.scene.Create(ctx, o.DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
}

// plainHTTP is a kustomization that adds a variable to the supervisors.
const plainHTTP = `
resources: [%q]
patches:
- target: {kind: Deployment, name: chandlery-supervisor}
  patch: '[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"SUPERVISOR_IMAGE_PLAIN_HTTP","value":"true"}}]'
`

// installSupervisors installs the supervisors beside OLM as docs/migration.md describes, and waits until they wait.
func (i *installer) installSupervisors(ctx context.Context) error {
	i.scene.sayf("installing supervisors beside OLM ...")
	manifests, err := buildcache.SourceDir("deploy")
	if err != nil {
		return err
	}
	overlay := filepath.Join(i.scene.dir, "overlay")
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
	if err := i.scene.kubectl(ctx, "apply", "-k", overlay); err != nil {
		return err
	}
	return i.scene.awaitWaiting(ctx)
}
