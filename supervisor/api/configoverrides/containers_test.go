package configoverrides_test

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
)

// TestCheckContainers checks the error about names of containers that no Deployment has.
func TestCheckContainers(t *testing.T) {
	t.Parallel()
	const prefix = "annotation chandlery.dev/config of Subscription kitchen/kettle: "
	v1 := version("kettle.v1", []string{"manager", "proxy"}, []string{"setup"})
	v2 := version("kettle.v2", []string{"operator"}, nil)
	none := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: "kettle.v0"}}
	type versions = []*operatorsv1alpha1.ClusterServiceVersion
	for name, tc := range map[string]struct {
		text     string
		versions versions
		want     string
	}{
		"Known":     {`{"args":{"proxy":["-v"]},"containers":{"manager":{},"setup":{}}}`, versions{v1}, ""},
		"NoVersion": {`{"containers":{"manger":{}}}`, nil, ""},
		"Misspelt": {
			`{"containers":{"manger":{}}}`,
			versions{v1},
			`containers[manger]: no Deployment of kettle.v1 has this container (did you mean "manager"?); their containers are manager, proxy, setup`,
		},
		"Args": {
			`{"args":{"other":["-v"]},"containers":{"another":{}}}`,
			versions{v1},
			`args[other], containers[another]: no Deployment of kettle.v1 has these containers; their containers are manager, proxy, setup`,
		},
		"Upgrade": {`{"containers":{"manager":{},"operator":{}}}`, versions{v2, v1}, ""},
		"NeitherVersion": {
			`{"containers":{"operators":{}}}`,
			versions{v2, v1, v2, nil},
			`containers[operators]: no Deployment of kettle.v2 or kettle.v1 has this container (did you mean "operator"?); their containers are manager, operator, proxy, setup`,
		},
		"NoDeployments": {`{"containers":{"manager":{}}}`, versions{none}, `containers[manager]: no Deployment of kettle.v0 has this container; their containers are none`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub := annotated(tc.text)
			o, err := configoverrides.Parse(sub)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := o.CheckContainers(sub, tc.versions...); err != nil {
				got = err.Error()
			}
			want := tc.want
			if want != "" {
				want = prefix + want + "; correct the names"
			}
			if got != want {
				t.Errorf("CheckContainers\n got %s\nwant %s", got, want)
			}
		})
	}
}

// version returns a version with one Deployment with containers and init containers.
func version(name string, containers, inits []string) *operatorsv1alpha1.ClusterServiceVersion {
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := operatorsv1alpha1.StrategyDeploymentSpec{}
	for _, c := range containers {
		spec.Spec.Template.Spec.Containers = append(spec.Spec.Template.Spec.Containers, corev1.Container{Name: c})
	}
	for _, c := range inits {
		spec.Spec.Template.Spec.InitContainers = append(spec.Spec.Template.Spec.InitContainers, corev1.Container{Name: c})
	}
	csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{spec}
	return csv
}
