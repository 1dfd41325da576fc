package compattest

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

func TestHasFlag(t *testing.T) {
	t.Parallel()
	args := []string{"run", "--image-plain-http", "--bundle-kind", "shop.example/Widget", "--catalog-refresh-interval=1s", "--other=true"}
	for flag, want := range map[string]bool{
		"--image-plain-http": true, "--other": true, "--bundle-kind=shop.example/Widget": true, "--catalog-refresh-interval=1s": true,
		"--absent": false, "--bundle-kind=shop.example/Lantern": false, "--catalog-refresh-interval=2s": false,
	} {
		if got := hasFlag(args, flag); got != want {
			t.Errorf("hasFlag(%s) is %t, want %t", flag, got, want)
		}
	}
}

func TestIsOfTests(t *testing.T) {
	t.Parallel()
	alongside := api.PrefixInstalledAlongside + "1234"
	for name, test := range map[string]struct {
		definition apiextensionsv1.CustomResourceDefinition
		want       bool
	}{
		"of a case's operator": {apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{alongside: "compat-b1-x/lamp.v1"}}}, true},
		"of another operator":  {apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{alongside: "prod/lamp.v1"}}}, false},
		"of a case":            {apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "compat.test"}}}}, true},
		"of an example group":  {apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "shop.example"}}, true},
		"of a user": {apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}},
			Spec:       apiextensionsv1.CustomResourceDefinitionSpec{Group: "autoscaling.k8s.io"},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isOfTests(&test.definition); got != test.want {
				t.Errorf("isOfTests is %t, want %t", got, test.want)
			}
		})
	}
}
