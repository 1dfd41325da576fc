package testenv

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/chandlery/chandlery/test/buildcache"
	"github.com/chandlery/chandlery/test/controlplane"
	"github.com/chandlery/chandlery/test/testenv/fixtures"
)

// UseDeployedRole gives the managers of a test the rights of the supervisor in deploy/, without some verbs.
func (w *World) UseDeployedRole(without ...string) {
	w.T.Helper()
	path, err := buildcache.SourceDir("deploy/rbac/supervisor.yaml")
	if err != nil {
		w.T.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		w.T.Fatal(err)
	}
	document, _, _ := bytes.Cut(text, []byte("\n---\n"))
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(document, role); err != nil {
		w.T.Fatal(err)
	}
	for i := range role.Rules {
		role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return slices.Contains(without, verb) })
	}
	w.Create(fixtures.ClusterRole("supervisor-of-"+w.Namespace, fixtures.ServiceAccount(w.Namespace, "supervisor"), role.Rules...)...)
	w.Config = ConfigOf(w.T, "system:serviceaccount:"+w.Namespace+":supervisor", "system:serviceaccounts", "system:authenticated")
	// The authorizer applies the role after a moment.
	c := w.ManagerClient()
	w.Eventually(func() error {
		return c.List(w.T.Context(), &apiextensionsv1.CustomResourceDefinitionList{}, client.Limit(1))
	}).Should(gomega.Succeed())
}

// ManagerClient returns a client with the access of the managers.
func (w *World) ManagerClient() client.Client {
	w.T.Helper()
	c, err := client.New(w.Config, client.Options{Scheme: w.Scheme()})
	if err != nil {
		w.T.Fatalf("making a client: %v", err)
	}
	return c
}

// ConfigOf returns the access of a user of these groups.
func ConfigOf(t *testing.T, user string, groups ...string) *rest.Config {
	t.Helper()
	kubeconfig, err := controlplane.Get(t).NewKubeconfig(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
