package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/test/demo/timeline"
)

// summary returns the state of a package's installation.
func (d *demo) summary(ctx context.Context, pkg string, took time.Duration, failure error) timeline.Summary {
	s := timeline.Summary{Package: pkg, Phase: "no CSV", Took: took, OK: failure == nil}
	if failure != nil {
		s.Reason = failure.Error()
	}
	if d.env.world == nil || ctx.Err() != nil {
		return s
	}
	var csvs operatorsv1alpha1.ClusterServiceVersionList
	var subscriptions operatorsv1alpha1.SubscriptionList
	in := client.InNamespace(namespaceOf(pkg))
	if d.env.world.seen.List(ctx, &csvs, in) != nil || d.env.world.seen.List(ctx, &subscriptions, in) != nil {
		return s
	}
	return summarize(s, csvs.Items, subscriptions.Items)
}

// summarize completes a summary from the objects of the namespace: the newest
// ClusterServiceVersion, else the problem of the Subscription.
func summarize(
	s timeline.Summary, csvs []operatorsv1alpha1.ClusterServiceVersion, subscriptions []operatorsv1alpha1.Subscription,
) timeline.Summary {
	var newest *operatorsv1alpha1.ClusterServiceVersion
	for i := range csvs {
		c := &csvs[i]
		if !c.IsCopied() && (newest == nil || newest.CreationTimestamp.Before(&c.CreationTimestamp)) {
			newest = c
		}
	}
	if newest != nil {
		s.CSV, s.Phase, s.Reason = newest.Name, string(newest.Status.Phase), string(newest.Status.Reason)
		if !s.OK && newest.Status.Message != "" {
			s.Reason += ": " + newest.Status.Message
		}
		return s
	}
	for i := range subscriptions {
		for _, c := range subscriptions[i].Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Message != "" {
				s.Reason = string(c.Type) + ": " + c.Message
			}
		}
	}
	return s
}

// explain prints the state of the demo's objects, except those of packages that were installed successfully.
func (d *demo) explain(ctx context.Context) {
	if d.env.world == nil || ctx.Err() != nil {
		return
	}
	well := map[string]bool{}
	for _, s := range d.results {
		well[namespaceOf(s.Package)] = s.OK
	}
	d.titlef("What the objects say")
	for _, list := range []client.ObjectList{
		&operatorsv1alpha1.CatalogSourceList{}, &operatorsv1alpha1.SubscriptionList{}, &operatorsv1alpha1.InstallPlanList{},
		&operatorsv1alpha1.ClusterServiceVersionList{}, &appsv1.DeploymentList{},
	} {
		if err := d.env.world.seen.List(ctx, list); err != nil {
			d.print("  " + err.Error())
			continue
		}
		// The function returns no error, and the list has objects only.
		_ = apimeta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && !well[object.GetNamespace()] {
				for _, line := range timeline.Explain(object) {
					d.print("  " + line)
				}
			}
			return nil
		})
	}
	d.print("  logs: " + d.env.processes.logs + " and " + d.env.plane.LogDir())
}

// lookAround prints what a user may try while everything remains running.
func (d *demo) lookAround() {
	pkg := d.results[0].Package
	call := "go tool -modfile=tools/go.mod grpcurl -plaintext "
	d.titlef("Everything is left running. Look around from another terminal, in the same folder:")
	d.print(strings.Join([]string{
		"",
		"  # the catalog",
		"  " + call + d.env.registry + " list",
		"  " + call + d.env.registry + " api.Registry/ListPackages",
		"  " + call + "-d '{\"name\":\"" + pkg + "\"}' " + d.env.registry + " api.Registry/GetPackage",
		"  curl -s " + d.env.metrics["registry"] + "/metrics | grep ^chandlery",
		"",
		"  # the cluster",
		"  export KUBECONFIG=" + filepath.Join(d.env.dir, "kubeconfig"),
		"  alias kubectl=" + filepath.Join(d.env.dir, "kubectl"),
		"  kubectl get catalogsources,subscriptions,installplans,clusterserviceversions -A",
		"  kubectl -n " + namespaceOf(pkg) + " get all",
		"  kubectl -n " + catalogNamespace + " get lease " + leaseName + " -o jsonpath='{.spec.holderIdentity}{\"\\n\"}'",
		"",
		"  # the logs",
		"  tail -f " + filepath.Join(d.env.processes.logs, "*.log"),
		"",
		"Enter or Ctrl-C stops everything.",
	}, "\n"))
}
