package cleanup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/test/inventory"
	"github.com/chandlery/chandlery/test/testenv"
)

// inventory counts all objects of any kind. It includes the contents of definitions, because their
// conversion settings are cleaned up, too.
func (b *bed) inventory(ctx context.Context) (inventory.Objects, error) {
	all, err := b.lister.List(ctx)
	if err != nil {
		return nil, err
	}
	// A group whose definition was just deleted does not answer for a while, and cannot have objects.
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, inventory.UnansweredGroup+" ") })
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := b.List(ctx, &definitions); err != nil {
		return nil, fmt.Errorf("listing every CustomResourceDefinition: %w", err)
	}
	for i := range definitions.Items {
		text, err := json.Marshal(definitions.Items[i].Spec)
		if err != nil {
			return nil, fmt.Errorf("encoding a CustomResourceDefinition: %w", err)
		}
		all["specification of "+definitions.Items[i].Name] = string(text)
	}
	return all, nil
}

// overlooked reports whether an object is a Lease. Leases change with supervisors.
func overlooked(o *metav1.PartialObjectMetadata) bool { return o.Kind == "Lease" }

// withoutTheirs returns an inventory without the roles of users for the APIs of operators. These
// belong to a group or a definition and not to the operator.
func withoutTheirs(all inventory.Objects) inventory.Objects {
	left := maps.Clone(all)
	maps.DeleteFunc(left, func(name, marks string) bool {
		return strings.HasPrefix(name, "ClusterRole.") &&
			(strings.Contains(marks, `"olm.owner.kind":"OperatorGroup"`) || strings.Contains(marks, `"CustomResourceDefinition `))
	})
	return left
}

// withoutRecords returns an inventory without the records of the operators' install plans on definitions.
// These exist before the operators in this package alone, and a clean-up removes them.
func withoutRecords(all inventory.Objects, list ...*trial) inventory.Objects {
	left := maps.Clone(all)
	for _, tr := range list {
		name := inventory.Entry("CustomResourceDefinition", "apiextensions.k8s.io", "", "cups."+apiGroup(tr.namespace))
		left[name] = strings.Replace(left[name], fmt.Sprintf("%q:%q", api.PrefixInstalledAlongside+"cleanup", tr.namespace+"/"+csvName(tr.namespace)), "", 1)
	}
	return left
}

// cleaned returns the names in the inventory of everything that a clean-up deletes. NS is the
// operator's namespace.
func (tr *trial) cleaned() []string {
	const rbac = "rbac.authorization.k8s.io"
	elsewhere := tr.shape.elsewhere("NS")
	list := []string{
		"Cup.NS.cleanup.example NS/kettle-NS-0", "Cup.NS.cleanup.example " + elsewhere + "/kettle-NS-1",
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io validatingadmissionwebhook.cleanup.example-",
		"MutatingWebhookConfiguration.admissionregistration.k8s.io mutatingadmissionwebhook.cleanup.example-",
		"ClusterRoleBinding." + rbac + " kettle-service.NS-system:auth-delegator", "RoleBinding." + rbac + " kube-system/kettle-service.NS-auth-reader",
		"ClusterRole." + rbac + " cluster-kettle-NS", "ClusterRoleBinding." + rbac + " cluster-kettle-NS",
		"Role." + rbac + " kube-system/kettle-NS", "RoleBinding." + rbac + " kube-system/kettle-NS",
		"Role." + rbac + " NS/kettle-NS", "RoleBinding." + rbac + " NS/kettle-NS",
		"Role." + rbac + " NS/kettle-service-cert", "RoleBinding." + rbac + " NS/kettle-service-cert",
		"Secret NS/kettle-service-cert", "Service NS/kettle-service", "Deployment.apps NS/kettle", "ServiceAccount NS/kettle",
		"ClusterServiceVersion.operators.coreos.com NS/kettle.NS.v1", "ClusterServiceVersion.operators.coreos.com " + elsewhere + "/kettle.NS.v1",
		"OperatorCondition.operators.coreos.com NS/kettle.NS.v1", "Role." + rbac + " NS/kettle.NS.v1", "RoleBinding." + rbac + " NS/kettle.NS.v1",
	}
	if tr.shape == forAll {
		return append(list, "APIService.apiregistration.k8s.io v1.aggregated.NS.cleanup.example",
			"ClusterRole."+rbac+" kettle-NS", "ClusterRoleBinding."+rbac+" kettle-NS")
	}
	return append(list, "Role."+rbac+" NS-target/kettle-NS", "RoleBinding."+rbac+" NS-target/kettle-NS")
}

// complete waits until everything exists that the clean-ups of operators delete.
func (b *bed) complete(list ...*trial) {
	b.t.Helper()
	testenv.Until(b.t, patience, "everything of the operators to be there", func(ctx context.Context) string {
		now, err := b.inventory(ctx)
		if err != nil {
			return err.Error()
		}
		for _, tr := range list {
			if lacking := tr.lacking(now); lacking != "" {
				return lacking
			}
		}
		return ""
	})
}

// lacking returns what is missing of an operator; empty for nothing.
func (tr *trial) lacking(now inventory.Objects) string {
	names := slices.Sorted(maps.Keys(now.About(tr.namespace)))
	for _, name := range tr.cleaned() {
		name = strings.ReplaceAll(name, "NS", tr.namespace)
		if !slices.ContainsFunc(names, func(have string) bool { return strings.HasPrefix(have, name) }) {
			return "there is no " + name
		}
	}
	definition := now["specification of cups."+apiGroup(tr.namespace)]
	if tr.shape == forAll && !strings.Contains(definition, `"strategy":"Webhook"`) {
		return "custom resources are not converted: " + definition
	}
	return ""
}

// leaves waits until the cluster is as before.
func (b *bed) leaves(before inventory.Objects) {
	b.t.Helper()
	testenv.Until(b.t, patience, "the cluster to be as it was", func(ctx context.Context) string {
		after, err := b.inventory(ctx)
		if err != nil {
			return err.Error()
		}
		return inventory.Difference(withoutTheirs(before), withoutTheirs(after), nil)
	})
}

// left waits until the cluster is as before, as far as it concerns one operator. Others, which have
// copies in its namespace, still exist.
func (b *bed) left(before inventory.Objects, tr *trial, others []*trial) {
	b.t.Helper()
	part := func(all inventory.Objects) inventory.Objects {
		about := withoutTheirs(all).About(tr.namespace)
		for _, other := range others {
			for name := range about.About(csvName(other.namespace)) {
				delete(about, name)
			}
		}
		return about
	}
	testenv.Until(b.t, patience, "the cluster to be as it was before the operator of "+tr.namespace, func(ctx context.Context) string {
		after, err := b.inventory(ctx)
		if err != nil {
			return err.Error()
		}
		return inventory.Difference(part(before), part(after), nil)
	})
}

// vacated waits until nothing is left that mentions some namespaces.
func (b *bed) vacated(namespaces ...string) {
	b.t.Helper()
	testenv.Until(b.t, patience, "nothing to be left", func(ctx context.Context) string {
		now, err := b.inventory(ctx)
		if err != nil {
			return err.Error()
		}
		for _, namespace := range namespaces {
			if left := inventory.Difference(nil, now.About(namespace), nil); left != "" {
				return left
			}
		}
		return ""
	})
}
