package clusterserviceversion

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestProxied(t *testing.T) {
	env := func(pairs ...string) []corev1.EnvVar {
		var all []corev1.EnvVar
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
		return all
	}
	cluster := env("HTTP_PROXY", "http://a", "NO_PROXY", ".svc")
	for name, tc := range map[string]struct {
		reason  string
		config  []corev1.EnvVar
		proxies []corev1.EnvVar
		want    []corev1.EnvVar
	}{
		"None":      {"a cluster without proxies", env("A", "1"), nil, env("A", "1")},
		"Nothing":   {"a Subscription without settings", nil, cluster, cluster},
		"Beside":    {"other variables stay", env("A", "1"), cluster, env("A", "1", "HTTP_PROXY", "http://a", "NO_PROXY", ".svc")},
		"Own":       {"a proxy of its own decides on all", env("HTTPS_PROXY", "http://b"), cluster, env("HTTPS_PROXY", "http://b")},
		"OwnNone":   {"as does an empty one", env("NO_PROXY", ""), cluster, env("NO_PROXY", "")},
		"LowerCase": {"whichever case programs read", env("https_proxy", "http://b"), cluster, env("https_proxy", "http://b")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withProxies(tc.config, tc.proxies)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
