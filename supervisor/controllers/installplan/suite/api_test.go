package suite_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/plansteps"
)

// bare returns the definition of a kind at v1, without a schema.
func bare(group, plural, kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + group,
			// Definitions in the groups of Kubernetes need it.
			Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
		},
	}
}

// TestPlanContinuesWhenItsAPIIsServed lets a plan wait for an API until its pauses exceed the time that
// the test waits. Only the definition can then make it continue.
func TestPlanContinuesWhenItsAPIIsServed(t *testing.T) {
	const soon = 5 * time.Second
	for _, tt := range []struct {
		reason       string
		object       string
		crd          *apiextensionsv1.CustomResourceDefinition
		says         string
		tries        int32 // after which the next one is seven seconds away, or more
		retryTimeout time.Duration
		phase        operatorsv1alpha1.InstallPlanPhase
	}{
		{
			reason: "the plan tries again and again",
			object: `{"apiVersion":"monitoring.coreos.com/v1","kind":"PrometheusRule","metadata":{"name":"lamp"}}`,
			crd:    bare("monitoring.coreos.com", "prometheusrules", "PrometheusRule", apiextensionsv1.NamespaceScoped),
			says:   "api-server resource not found installing PrometheusRule lamp: GroupVersionKind monitoring.coreos.com/v1, Kind=PrometheusRule not found on the cluster",
			tries:  5, retryTimeout: time.Hour, phase: working,
		},
		{
			reason: "the plan was given up",
			object: `{"apiVersion":"console.openshift.io/v1","kind":"ConsoleLink","metadata":{"name":"lamp"}}`,
			crd:    bare("console.openshift.io", "consolelinks", "ConsoleLink", apiextensionsv1.ClusterScoped),
			says:   "api-server resource not found installing ConsoleLink lamp: GroupVersionKind console.openshift.io/v1, Kind=ConsoleLink not found on the cluster",
			tries:  1, retryTimeout: time.Millisecond, phase: failed,
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t)
			w.Create(w.group("group"))
			var tries atomic.Int32
			// The creation of the definition writes into it.
			wanted := tt.crd.Spec.Names.Kind
			w.beforeApply = func(kind string) {
				if kind == wanted {
					tries.Add(1)
				}
			}
			w.supervise(tt.retryTimeout)
			w.plan(w.bundle(settings, tt.object), true, plansteps.MaxInline)
			w.becomes(func(p *operatorsv1alpha1.InstallPlan) bool {
				message := p.Status.Message + installed(p).Message
				return p.Status.Phase == tt.phase && strings.Contains(message, tt.says) && tries.Load() >= tt.tries
			})
			w.Create(tt.crd)
			t.Cleanup(func() {
				if err := w.Delete(context.WithoutCancel(t.Context()), tt.crd); err != nil {
					t.Error(err)
				}
			})
			w.Eventually(func() operatorsv1alpha1.InstallPlanPhase { return w.read().Status.Phase }).
				WithTimeout(soon).Should(gomega.Equal(complete), func() string {
				return fmt.Sprintf("status %+v", w.read().Status)
			})
		})
	}
}
