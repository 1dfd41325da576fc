package clusterserviceversion

import (
	"context"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/chandlery/chandlery/supervisor/operatorproxy"
)

// withProxies adds the proxies of the cluster to the environment in a config. A config that sets one of
// the variables sets all: its own proxy must not be combined with exceptions for another.
func withProxies(config, proxies []corev1.EnvVar) []corev1.EnvVar {
	own := slices.ContainsFunc(config, func(env corev1.EnvVar) bool {
		return slices.Contains([]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}, strings.ToUpper(env.Name))
	})
	if own {
		return config
	}
	return slices.Concat(config, proxies)
}

// watchProxies reconciles every ClusterServiceVersion when the proxies change.
func watchProxies(b *builder.Builder, m mapper, proxies *operatorproxy.Variables) *builder.Builder {
	if proxies == nil {
		return b
	}
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return m.selected(ctx, func(*operatorsv1alpha1.ClusterServiceVersion) bool { return true })
	})
	return b.WatchesRawSource(source.Channel(proxies.Changes(), all))
}
