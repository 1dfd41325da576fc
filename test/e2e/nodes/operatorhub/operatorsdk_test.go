package operatorhub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/nodes"
	"github.com/chandlery/chandlery/test/operatorsdk"
)

// The operator that operator-sdk and kubectl-operator install, one after the other.
const (
	compass    = "compass"
	compassCRD = "compasses.ship.example.com"
)

// TestOperatorSDK sends the requests of "operator-sdk run bundle", twice "run bundle-upgrade" and "cleanup", with bundle
// images in a registry on plain HTTP, which is open, or needs a pull secret.
func TestOperatorSDK(t *testing.T) {
	for _, tc := range []struct{ name, prefix, secret string }{
		{name: "PlainHTTP", prefix: ""},
		{name: "PullSecret", prefix: "private/", secret: "bundles"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDeveloper(t, tc.prefix, tc.secret)
			d.runBundle("2.0.0")
			d.upgrade("2.1.0")
			d.upgrade("2.2.0")
			d.cleanUp()
		})
	}
}

// developer runs operator-sdk in a namespace.
type developer struct {
	scene

	sdk operatorsdk.Operator
	// repository has the bundle images, and secret has its credentials.
	repository, secret string
	// pulling are the flags with which "catalog render" reads the bundle images.
	pulling []string
	// versions are in the catalog.
	versions []string
	source   *operatorsv1alpha1.CatalogSource
	sub      *operatorsv1alpha1.Subscription
	plan     string
}

func newDeveloper(t *testing.T, prefix, secret string) *developer {
	t.Helper()
	s := newScene(t)
	namespace := s.bed.Namespace(t)
	d := &developer{
		scene: s, sdk: operatorsdk.Operator{Client: s, Namespace: namespace, Package: compass},
		repository: s.bed.Images.Address() + "/" + prefix + bundleRepository + compass, secret: secret, pulling: []string{"--use-http"},
	}
	if secret != "" {
		credentials, err := json.Marshal(map[string]any{"auths": map[string]any{
			s.bed.Images.Address(): map[string]string{"username": nodes.PrivateUser, "password": nodes.PrivatePassword},
		}})
		must(t, err)
		must(t, s.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}, Type: corev1.SecretTypeDockerConfigJson,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: credentials},
		}))
		file := filepath.Join(t.TempDir(), "config.json")
		must(t, os.WriteFile(file, credentials, 0o600))
		d.pulling = append(d.pulling, "--pull-secret", file)
	}
	return d
}

// command runs a command of operator-sdk within its limit.
func (d *developer) command(name string, run func(ctx context.Context)) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), operatorsdk.Timeout)
	defer cancel()
	begun := time.Now()
	run(ctx)
	d.t.Logf("operator-sdk %s: %s", name, time.Since(begun).Round(100*time.Millisecond))
}

func (d *developer) runBundle(version string) {
	d.t.Helper()
	d.command("run bundle", func(ctx context.Context) {
		var err error
		d.source, err = d.sdk.CreateCatalog(ctx, d.secret)
		must(d.t, err)
		if former := d.serve(ctx, version); former != "" {
			d.t.Errorf("a new CatalogSource names the server %s", former)
		}
		must(d.t, d.sdk.EnsureGroup(ctx))
		d.sub, err = d.sdk.Subscribe(ctx, operatorsdk.Channel, compass+".v"+version)
		must(d.t, err)
		d.approve(ctx, version)
	})
}

func (d *developer) upgrade(version string) {
	d.t.Helper()
	d.command("run bundle-upgrade", func(ctx context.Context) {
		must(d.t, d.sdk.StopServer(ctx, d.serve(ctx, version)))
		d.approve(ctx, version)
	})
}

// serve starts a server of the catalog with one more version, and returns the name of the former server.
func (d *developer) serve(ctx context.Context, version string) string {
	d.t.Helper()
	d.versions = append(d.versions, version)
	var bundles []string
	var catalog strings.Builder
	fmt.Fprintf(&catalog, "---\nschema: olm.package\nname: %[1]s\ndefaultChannel: %[2]s\n---\nschema: olm.channel\npackage: %[1]s\nname: %[2]s\nentries:\n",
		compass, operatorsdk.Channel)
	for i, v := range d.versions {
		bundles = append(bundles, d.repository+":v"+v)
		fmt.Fprintf(&catalog, "- name: %s.v%s\n", compass, v)
		if i > 0 {
			fmt.Fprintf(&catalog, "  replaces: %s.v%s\n", compass, d.versions[i-1])
		}
	}
	rendered, err := render(ctx, slices.Concat(bundles, d.pulling)...)
	must(d.t, err)
	name := strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(bundles[len(bundles)-1])
	server, err := d.sdk.StartServer(ctx, d.source, name, string(rendered)+catalog.String(), bundles...)
	must(d.t, err)
	former, err := d.sdk.SetAddress(ctx, server)
	must(d.t, err)
	return former
}

// approve approves the next InstallPlan and waits until a version has succeeded.
func (d *developer) approve(ctx context.Context, version string) {
	d.t.Helper()
	var err error
	d.plan, err = d.sdk.Approve(ctx, d.sub, d.plan)
	must(d.t, err)
	_, err = d.sdk.AwaitSucceeded(ctx, compass+".v"+version)
	must(d.t, err)
}

// cleanUp runs the command, and checks that nothing is left.
func (d *developer) cleanUp() {
	d.t.Helper()
	d.command("cleanup", func(ctx context.Context) {
		deleted, err := d.sdk.CleanUp(ctx)
		must(d.t, err)
		if len(deleted) != 1 || deleted[0] != compassCRD {
			d.t.Errorf("it deletes the CustomResourceDefinitions %q, want %q", deleted, compassCRD)
		}
	})
	d.nothingLeft(d.sdk.Namespace)
}

// nothingLeft waits until a namespace has no object of the operator compass.
func (s scene) nothingLeft(namespace string) {
	s.t.Helper()
	s.eventually(func() string {
		for _, list := range []client.ObjectList{
			&operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.InstallPlanList{}, &operatorsv1alpha1.CatalogSourceList{},
			&operatorsv1.OperatorGroupList{}, &corev1.PodList{},
		} {
			if err := s.List(s.t.Context(), list, client.InNamespace(namespace)); err != nil {
				return err.Error()
			}
			if n := apimeta.LenList(list); n > 0 {
				return fmt.Sprintf("%d objects are left in %T", n, list)
			}
		}
		for _, o := range []client.Object{
			&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: compassCRD}},
			&operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: compass + "." + namespace}},
		} {
			if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("%T %s is left, or its read failed: %v", o, o.GetName(), err)
			}
		}
		return ""
	})
}
