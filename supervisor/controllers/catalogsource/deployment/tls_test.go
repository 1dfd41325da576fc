package deployment

import (
	"slices"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// TestServesTLS checks who decides about TLS, and that the annotation is refused where it has no effect.
func TestServesTLS(t *testing.T) {
	extract := config(operatorsv1alpha1.GrpcPodConfig{ExtractContent: &operatorsv1alpha1.ExtractContentConfig{}})
	byFlag := func(s *Settings) { s.TLS = true }
	on, off := annotated(api.AnnotationServeTLS, "true"), annotated(api.AnnotationServeTLS, "false")
	for name, tt := range map[string]struct {
		change   []func(*Input)
		settings []func(*Settings)
		want     bool
		problem  string
	}{
		"default":               {change: []func(*Input){extract}},
		"flag":                  {change: []func(*Input){extract}, settings: []func(*Settings){byFlag}, want: true},
		"annotation":            {change: []func(*Input){extract, on}, want: true},
		"annotation beats flag": {change: []func(*Input){extract, off}, settings: []func(*Settings){byFlag}},
		"odd annotation":        {change: []func(*Input){extract, annotated(api.AnnotationServeTLS, "yes")}, settings: []func(*Settings){byFlag}, want: true, problem: `is "yes", and the default is used: set it to true or false`},
		"image, by flag":        {settings: []func(*Settings){byFlag}},
		"image":                 {change: []func(*Input){on}, problem: "has no effect, because the catalog's image runs its own server"},
		"image, off":            {change: []func(*Input){off}},
	} {
		t.Run(name, func(t *testing.T) {
			in, s := input(tt.change...), settings(tt.settings...)
			if got := ServesTLS(in.Source, s); got != tt.want {
				t.Errorf("TLS is %t", got)
			}
			if got := ServeTLSProblem(in.Source, s); (got == "") != (tt.problem == "") || !strings.Contains(got, tt.problem) {
				t.Errorf("problem is %q, want %q", got, tt.problem)
			}
			template := deploymentOf(t, in, s).Spec.Template
			if got := template.Labels[api.LabelServeTLS] == "true"; got != tt.want {
				t.Errorf("labels %v", template.Labels)
			}
			pod := template.Spec
			args, mounted := pod.Containers[0].Args, slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool {
				return v.Secret != nil && v.Secret.SecretName == "shop-catalog-cert" && len(v.Secret.Items) == 2
			})
			given := slices.Contains(args, "--tls-port=50052") && slices.Contains(args, "--tls-cert=/serving-certificate/tls.crt") && slices.Contains(args, "--tls-key=/serving-certificate/tls.key")
			if mounted != tt.want || given != tt.want {
				t.Errorf("mounted: %t, arguments %q", mounted, args)
			}
			service, err := service(in.Source, tt.want)
			if err != nil || (len(service.Spec.Ports) == 2) != tt.want || service.Spec.Ports[0].Name != "grpc" {
				t.Errorf("ports %+v, %v", service.Spec.Ports, err)
			}
		})
	}
}
