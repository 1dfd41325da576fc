package clusterserviceversion

import (
	"context"
	"fmt"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/controllers/clusterserviceversion/webhook"
	"github.com/chandlery/chandlery/supervisor/informer"
	"github.com/chandlery/chandlery/supervisor/operatorproxy"
)

// deploymentReader reads the Deployments of versions, and the settings with which they are derived.
type deploymentReader struct {
	client   client.Client            // reads from the cache
	live     client.Reader            // reads past the cache
	catalogs client.Reader            // reads CatalogSources from the cache; client would not
	proxies  *operatorproxy.Variables // nil for none
	global   string                   // the namespace of the catalogs for all namespaces
}

// settings returns the settings of a Subscription for the Deployments, or why they are invalid.
func (r deploymentReader) settings(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion) (s settings, invalid string, err error) {
	var subs operatorsv1alpha1.SubscriptionList
	if err := r.client.List(ctx, &subs, client.InNamespace(csv.Namespace), readOnly); err != nil {
		return settings{}, "", fmt.Errorf("listing Subscriptions in namespace %s: %w", csv.Namespace, err)
	}
	sub := subscriptionOf(csv, subs.Items)
	if sub != nil && informer.Trimmed(sub) {
		// The cache lacks a large configuration, which the Deployments need.
		key := client.ObjectKeyFromObject(sub)
		sub = &operatorsv1alpha1.Subscription{}
		if err := r.live.Get(ctx, key, sub); err != nil {
			return settings{}, "", fmt.Errorf("reading the whole of Subscription %s: %w", key, err)
		}
	}
	s, err = settingsOf(sub)
	if err != nil {
		return settings{}, err.Error(), nil //nolint:nilerr // It is what is wrong with the Subscription, and said as such.
	}
	if s.pullSecrets, err = r.pullSecrets(ctx, csv, sub); err != nil {
		return settings{}, "", err
	}
	if r.proxies == nil {
		return s, "", nil
	}
	env, err := r.proxies.Env()
	if err != nil {
		return settings{}, "", err //nolint:wrapcheck // it says what is not known
	}
	s.config.Env = withProxies(s.config.Env, env)
	return s, "", nil
}

// derive returns the desired Deployments, and the existing ones by name. An equivalent Deployment of
// another lifecycle manager or of an earlier release stays in its form.
func (r deploymentReader) derive(ctx context.Context, csv *operatorsv1alpha1.ClusterServiceVersion, config settings, hooks *webhook.State,
) (desired []*appsv1.Deployment, live map[string]*appsv1.Deployment, err error) {
	if desired, err = desiredDeployments(csv, config, hooks.Mount, podAnnotations); err != nil {
		return nil, nil, err
	}
	live = map[string]*appsv1.Deployment{}
	for i, want := range desired {
		have, err := r.read(ctx, want, hasBegun(csv))
		if err != nil {
			return nil, nil, err
		}
		if have == nil {
			continue
		}
		live[want.Name] = have
		if have.Labels[api.LabelDeploymentHash] == want.Labels[api.LabelDeploymentHash] {
			continue
		}
		if desired[i], err = compatible(csv, i, config.keeping(have), hooks.Mount, have); err != nil {
			return nil, nil, err
		}
	}
	return desired, live, nil
}

// compatible returns the desired Deployment at an index for an existing one with another hash.
func compatible(csv *operatorsv1alpha1.ClusterServiceVersion, i int, config settings, mount func(*appsv1.Deployment), have *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	wanted, err := desiredDeployments(csv, config, mount, podAnnotations)
	if err != nil {
		return nil, err
	}
	former, err := desiredDeployments(csv, config, mount, formerPodAnnotations)
	if err != nil {
		return nil, err
	}
	same, err := adoptedDeployment(csv, wanted[i], former[i], have)
	if err != nil || same != nil {
		return same, err
	}
	return wanted[i], nil
}

// read returns the existing Deployment for a desired one, nil when there is none. Where
// the version has begun to install, it reads the API if the cache has no Deployment, or one with
// another hash. Right after an installation, the cache still has the former state, which would
// cause another installation. It also reads the API for one with another hash that the cache trims.
func (r deploymentReader) read(ctx context.Context, want *appsv1.Deployment, begun bool) (*appsv1.Deployment, error) {
	have := &appsv1.Deployment{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	same := have.Labels[api.LabelDeploymentHash] == want.Labels[api.LabelDeploymentHash]
	if err == nil && (same || !begun && !informer.Trimmed(have)) {
		return have, nil
	}
	if apierrors.IsNotFound(err) && !begun {
		return nil, nil //nolint:nilnil // absence is documented
	}
	have = &appsv1.Deployment{}
	err = r.live.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is documented
	}
	if err != nil {
		return nil, fmt.Errorf("getting Deployment %s/%s: %w", want.Namespace, want.Name, err)
	}
	return have, nil
}

// hasBegun reports whether Deployments of a version may have been written after the cache read
// them. Before its installation begins, the version writes none.
func hasBegun(csv *operatorsv1alpha1.ClusterServiceVersion) bool {
	switch csv.Status.Phase {
	case operatorsv1alpha1.CSVPhaseNone, operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVPhaseInstallReady:
		return false
	default:
		return true
	}
}
