package nodes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/webhook"
	"github.com/chandlery/chandlery/test/failover"
)

const (
	millNamespace = "mill"
	millCatalogs  = "mills"
	millSecret    = "mill-service-cert"
	// rotation is when, after the beginning, the certificate must be renewed. Clients make calls by
	// then. On a slow machine it may coincide with the upgrade.
	rotation = 75 * time.Second
	// enough is the number of requests after which a state is known to work.
	enough = 300
)

// TestConversionThroughUpgrades upgrades an operator that converts its custom resources between two
// versions, while clients write them in one version and read them in the other. It upgrades to a
// version that stores them in another form, renews the certificate, and upgrades to a version with
// another Deployment. The operator ends its pods as docs/catalogs.md advises. No request may fail, and
// no object may differ from what was written.
func TestConversionThroughUpgrades(t *testing.T) {
	t.Parallel()
	s := scene(t)
	create(t, s, failover.NewCatalog(millCatalogs, pushMill(t, s), 1))
	must(t, s.Ready(t.Context(), millCatalogs))
	create(t, s,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: millNamespace}},
		&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: millNamespace, Name: "all"}})
	t.Cleanup(func() { closeMill(t, s) })
	versions := mills()
	first := ending(t, versions[0])
	must(t, s.Client.Create(t.Context(), first))
	must(t, s.Client.Create(t.Context(), &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: millNamespace, Name: millPackage},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: millPackage, Channel: "stable", StartingCSV: versions[0].csv(), InstallPlanApproval: operatorsv1alpha1.ApprovalManual,
			CatalogSource: millCatalogs, CatalogSourceNamespace: failover.CatalogNamespace,
		},
	}))
	approve(t, s, versions[0])

	g := grind(t, s.Bed, millNamespace)
	grindOn(t, g)
	g.enter("upgrade to another form of storage")
	approve(t, s, versions[1])
	stored(t, s, versions[1])
	g.enter("end of its former pods")
	relieved(t, s, versions[1])
	grindOn(t, g)
	g.enter("until the certificate is due")
	renewed(t, s, first)
	g.enter("end of the pods with the former one")
	relieved(t, s, versions[1])
	grindOn(t, g)
	g.enter("upgrade to another Deployment")
	approve(t, s, versions[2])
	stored(t, s, versions[2])
	g.enter("end of the former Deployment")
	relieved(t, s, versions[2])
	g.enter("in the end")
	grindOn(t, g)
	g.judge(t)
}

// relieved waits until only the pods of a version exist. A failing call to a pod that ends shows by then.
func relieved(t *testing.T, s *failover.Scene, m mill) {
	t.Helper()
	must(t, failover.Eventually(t.Context(), "pods to have ended that are not wanted any more", func(ctx context.Context) string {
		d := &appsv1.Deployment{}
		var pods corev1.PodList
		if err := errors.Join(s.Client.Get(ctx, client.ObjectKey{Namespace: millNamespace, Name: m.deployment}, d),
			s.Client.List(ctx, &pods, client.InNamespace(millNamespace))); err != nil {
			return err.Error()
		}
		wanted := *d.Spec.Replicas
		if d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas != wanted || d.Status.AvailableReplicas != wanted {
			return fmt.Sprintf("Deployment %s has %d pods that are up to date", d.Name, d.Status.UpdatedReplicas)
		}
		if len(pods.Items) != int(wanted) {
			return fmt.Sprintf("there are %d pods, %d are wanted", len(pods.Items), wanted)
		}
		return ""
	}))
}

// grindOn waits until enough requests show that the current state works, or that it does not.
func grindOn(t *testing.T, g *grinding) {
	t.Helper()
	from := g.calls()
	must(t, failover.Eventually(t.Context(), "clients to grind", func(context.Context) string {
		if n := g.calls() - from; n < enough {
			return fmt.Sprintf("%d requests", n)
		}
		return ""
	}))
}

// ending returns the certificate of a version that is due for renewal soon, in the form of an earlier supervisor.
func ending(t *testing.T, m mill) *corev1.Secret {
	t.Helper()
	server, now := webhook.Server{Deployment: m.deployment}, time.Now()
	fresh, err := webhook.Issue(server, millNamespace, now)
	must(t, err)
	old, err := webhook.Issue(server, millNamespace, now.Add(rotation-fresh.RotateAt.Sub(now)))
	must(t, err)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: millNamespace, Name: millSecret, Labels: map[string]string{
			"olm.managed": "true", "olm.owner": m.csv(), "olm.owner.namespace": millNamespace, "olm.owner.kind": operatorsv1alpha1.ClusterServiceVersionKind,
		}},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: old.Cert, corev1.TLSPrivateKeyKey: old.Key, "olmCAKey": old.CA},
	}
}

// approve approves the InstallPlan of a version and waits until the version has succeeded and is the only one.
func approve(t *testing.T, s *failover.Scene, m mill) {
	t.Helper()
	must(t, failover.Eventually(t.Context(), m.csv()+" to be installed", func(ctx context.Context) string {
		if said := approvePlan(ctx, s, m.csv()); said != "" {
			return said
		}
		var list operatorsv1alpha1.ClusterServiceVersionList
		if err := s.Client.List(ctx, &list, client.InNamespace(millNamespace)); err != nil {
			return err.Error()
		}
		var said []string
		for i := range list.Items {
			if v := &list.Items[i]; !v.IsCopied() && (v.Name != m.csv() || v.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded) {
				said = append(said, fmt.Sprintf("%s is %q: %s: %s", v.Name, v.Status.Phase, v.Status.Reason, v.Status.Message))
			}
		}
		if len(list.Items) == 0 {
			return "there is no version"
		}
		return strings.Join(said, "\n")
	}))
}

func approvePlan(ctx context.Context, s *failover.Scene, version string) string {
	var plans operatorsv1alpha1.InstallPlanList
	if err := s.Client.List(ctx, &plans, client.InNamespace(millNamespace)); err != nil {
		return err.Error()
	}
	i := slices.IndexFunc(plans.Items, func(p operatorsv1alpha1.InstallPlan) bool {
		return slices.Contains(p.Spec.ClusterServiceVersionNames, version)
	})
	if i < 0 {
		return fmt.Sprintf("none of %d plans is for %s", len(plans.Items), version)
	}
	plan := &plans.Items[i]
	if !plan.Spec.Approved {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"approved":true}}`))
		if err := s.Client.Patch(ctx, plan, patch); err != nil {
			return err.Error()
		}
	}
	if plan.Status.Phase != operatorsv1alpha1.InstallPlanPhaseComplete {
		return fmt.Sprintf("InstallPlan %s is %q: %s", plan.Name, plan.Status.Phase, plan.Status.Message)
	}
	return ""
}

// stored fails if the definition differs from the definition of the installed version.
func stored(t *testing.T, s *failover.Scene, m mill) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, s.Client.Get(t.Context(), client.ObjectKey{Name: blendCRD}, crd))
	for _, v := range crd.Spec.Versions {
		if v.Storage != (v.Name == m.storage) {
			t.Errorf("%s: stored in %s is %t, wanted is %s; annotations %v", m.csv(), v.Name, v.Storage, m.storage, crd.Annotations)
		}
	}
	if service := crd.Spec.Conversion.Webhook.ClientConfig.Service; service == nil || service.Name != m.deployment+"-service" {
		t.Errorf("%s: objects are converted by %+v", m.csv(), service)
	}
	t.Logf("%s: objects are stored in %s, there are some in %v", m.csv(), m.storage, crd.Status.StoredVersions)
}

// renewed waits until another certificate has replaced the first one and the rotation has finished.
func renewed(t *testing.T, s *failover.Scene, first *corev1.Secret) {
	t.Helper()
	must(t, failover.Eventually(t.Context(), "the certificate to be renewed", func(ctx context.Context) string {
		now := &corev1.Secret{}
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(first), now); err != nil {
			return err.Error()
		}
		switch {
		case bytes.Equal(now.Data[corev1.TLSCertKey], first.Data[corev1.TLSCertKey]):
			return "it is the first one still"
		case len(now.Data) != len(first.Data):
			return fmt.Sprintf("there are %d parts of certificates", len(now.Data))
		}
		return ""
	}))
}

// closeMill deletes the operator and all its objects. It deletes the custom resources while their
// conversion still works.
func closeMill(t *testing.T, s *failover.Scene) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	in := client.InNamespace(millNamespace)
	blend := &unstructured.Unstructured{}
	blend.SetAPIVersion(blendGroup + "/v2")
	blend.SetKind("Blend")
	if err := s.Client.DeleteAllOf(ctx, blend, in); err != nil {
		t.Logf("deleting all blends: %v", err)
	}
	for _, o := range []client.Object{&operatorsv1alpha1.Subscription{}, &operatorsv1alpha1.ClusterServiceVersion{}} {
		if err := s.Client.DeleteAllOf(ctx, o, in); err != nil {
			t.Error(err)
		}
	}
	err := failover.Eventually(ctx, "the mill to be gone", func(ctx context.Context) string {
		var left operatorsv1alpha1.ClusterServiceVersionList
		if err := s.Client.List(ctx, &left, in); err != nil {
			return err.Error()
		}
		if len(left.Items) > 0 {
			return left.Items[0].Status.Message
		}
		return ""
	})
	if err != nil {
		t.Error(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: blendCRD}}
	if err := s.Client.Delete(ctx, crd); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
