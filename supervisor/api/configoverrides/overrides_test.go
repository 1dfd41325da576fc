package configoverrides_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/api/configoverrides"
)

func annotated(text string) *operatorsv1alpha1.Subscription {
	return &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kitchen", Name: "kettle", Annotations: map[string]string{api.AnnotationConfig: text},
	}}
}

// TestParseRefuses checks the whole text of each error: the path, the value, and what is allowed.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const quantity = `must be a quantity, such as "500m" or "2Gi"`
	for text, want := range map[string]string{
		``:                            `the JSON is invalid at line 1, column 1: unexpected end of JSON input`,
		"{\n  \"replicas\": 2":        `the JSON is invalid at line 2, column 15: unexpected end of JSON input`,
		`replicas: 2`:                 `the JSON is invalid at line 1, column 1: invalid character 'r' looking for beginning of value`,
		`{} {}`:                       `the JSON is invalid at line 1, column 4: invalid character '{' after top-level value`,
		`null`:                        `it is null and must be an object`,
		`[]`:                          `it is [] and must be an object`,
		`{"replicas":1,"replicas":2}`: `duplicate field "replicas"`,
		`{"replicas":"many"}`:         `replicas: Invalid value: "many": must be a 32-bit integer of at least 0`,
		`{"replicas":-1}`:             `replicas: Invalid value: -1: must be a 32-bit integer of at least 0`,
		`{"replicas":3000000000}`:     `replicas: Invalid value: 3000000000: must be a 32-bit integer of at least 0`,
		`{"replicas":1.5}`:            `replicas: Invalid value: 1.5: must be a 32-bit integer of at least 0`,
		`{"replicas":null}`:           `replicas: Invalid value: null: must be a 32-bit integer of at least 0`,
		`{"replica":2}`:               `replica: unknown field (did you mean "replicas"?); the fields are args, certificateIssuer, `,
		`{"Replicas":2}`:              `Replicas: unknown field (did you mean "replicas"?)`,
		`{"probes":{}}`: `probes: unknown field; the fields are args, certificateIssuer, containers, imagePullSecrets, ` +
			`podLabels, podSecurityContext, priorityClassName, replicas, topologySpreadConstraints`,
		`{"args":{"manager":"-v"}}`:                                                `args[manager]: Invalid value: "-v": must be a list`,
		`{"args":{"manager":[1]}}`:                                                 `args[manager][0]: Invalid value: 1: must be a string`,
		`{"imagePullSecrets":[5]}`:                                                 `imagePullSecrets[0]: Invalid value: 5: must be a name or {"name": NAME}`,
		`{"imagePullSecrets":[""]}`:                                                `imagePullSecrets[0].name: Invalid value: "": must be the name of a Secret`,
		`{"imagePullSecrets":[{}]}`:                                                `imagePullSecrets[0].name: Required value`,
		`{"podLabels":{"team":"tea time"}}`:                                        `podLabels[team]: Invalid value: "tea time": a valid label must be`,
		`{"podLabels":{"no one":"tea"}}`:                                           `podLabels[no one]: Invalid value: "no one": name part must consist of`,
		`{"podLabels":{"team":1}}`:                                                 `podLabels[team]: Invalid value: 1: must be a string`,
		`{"certificateIssuer":{"kind":"ClusterIssuer"}}`:                           `certificateIssuer.name: Required value`,
		`{"containers":{"manager":{"resources":{"limits":{"memory":"1 GiB"}}}}}`:   `containers[manager].resources.limits[memory]: Invalid value: "1 GiB": ` + quantity,
		`{"containers":{"manager":{"resources":{"limits":{"cpu":0.5}}}}}`:          `containers[manager].resources.limits[cpu]: Invalid value: 0.5: ` + quantity,
		`{"containers":{"manager":{"resources":{"limits":["cpu"]}}}}`:              `containers[manager].resources.limits: Invalid value: ["cpu"]: must be an object`,
		`{"containers":{"manager":{"resource":{}}}}`:                               `containers[manager].resource: unknown field (did you mean "resources"?); the fields are resources, securityContext; `,
		`{"containers":{"manager":{"env":[]}}}`:                                    `containers[manager].env: unknown field; the fields are resources, securityContext`,
		`{"containers":{"manager":{"securityContext":{"runAsUser":"root"}}}}`:      `containers[manager].securityContext.runAsUser: Invalid value: "root": must be a 64-bit integer`,
		`{"containers":{"manager":{"securityContext":{"runAsUser":1e30}}}}`:        `containers[manager].securityContext.runAsUser: Invalid value: 1e+30: must be a 64-bit integer`,
		`{"containers":{"manager":{"securityContext":{"seccompProfile":{}}}}}`:     `containers[manager].securityContext.seccompProfile.type: Required value`,
		`{"podSecurityContext":{"runAsNonRoot":"true"}}`:                           `podSecurityContext.runAsNonRoot: Invalid value: "true": must be true or false`,
		`{"topologySpreadConstraints":[{"maxSkew":1,"whenUnsatisfiable":"Skip"}]}`: `topologySpreadConstraints[0].topologyKey: Required value`,
		`{"replicas":-1,"priorityClassName":2}`:                                    `priorityClassName: Invalid value: 2: must be a string; replicas: Invalid value: -1`,
	} {
		_, err := configoverrides.Parse(annotated(text))
		const prefix = "annotation chandlery.dev/config of Subscription kitchen/kettle: "
		if err == nil || !strings.HasPrefix(err.Error(), prefix+want) || !strings.HasSuffix(err.Error(), "; correct or remove it") {
			t.Errorf("Parse(%s)\n got %v,\nwant %s%s", text, err, prefix, want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := configoverrides.Parse(annotated(`{
		"replicas": 2.0, "args": {"manager": ["--v=4"]}, "imagePullSecrets": ["pull", {"name": "mirror"}],
		"priorityClassName": "high", "podLabels": {"team": "tea"}, "podSecurityContext": {"fsGroup": 2000},
		"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
		"containers": {"manager": {"resources": {"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": "1"}},
		               "securityContext": {"runAsUser": 1000}}},
		"certificateIssuer": {"name": "internal"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := configoverrides.Overrides{
		Replicas: new(int32(2)), Args: map[string][]string{"manager": {"--v=4"}},
		ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "pull"}, {Name: "mirror"}},
		PriorityClassName: "high", PodLabels: map[string]string{"team": "tea"},
		PodSecurityContext:        &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule"}},
		Containers: map[string]configoverrides.Container{"manager": {
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{
				"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "nvidia.com/gpu": resource.MustParse("1"),
			}},
			SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1000))},
		}},
		CertificateIssuer: &configoverrides.CertificateIssuer{Name: "internal"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
	if got, err := configoverrides.Parse(&operatorsv1alpha1.Subscription{}); err != nil || !cmp.Equal(got, configoverrides.Overrides{}) {
		t.Errorf("without an annotation: %+v, %v", got, err)
	}
}
