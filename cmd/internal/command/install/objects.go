package install

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// request is what the user asks for.
type request struct {
	// program is how users call the program.
	program                                   string
	pkg, catalog, channel, version, namespace string
	// approval is empty if the user does not name it.
	approval operatorsv1alpha1.Approval
	// targets are the target namespaces of a new OperatorGroup; empty for the default.
	targets []string
}

// inventory is what the namespace contains.
type inventory struct {
	// exists reports whether the namespace exists.
	exists bool
	// absentTargets are the requested target namespaces that do not exist.
	absentTargets []string
	groups        []operatorsv1.OperatorGroup
	subscriptions []operatorsv1alpha1.Subscription
}

// missing returns the objects to create for a request, and the name of the Subscription. modes are the install modes of
// the first bundle.
func missing(r *request, c choice, o *inventory, modes []operatorsv1alpha1.InstallMode) (objects []client.Object, subscription string, err error) {
	if !o.exists {
		objects = append(objects, &corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		})
	}
	group, err := missingGroup(r, c, o, modes)
	if err != nil {
		return nil, "", err
	}
	if group != nil {
		objects = append(objects, group)
	}
	sub, err := existingSubscription(r, c, o)
	if err != nil {
		return nil, "", err
	}
	if sub != nil {
		return objects, sub.Name, nil
	}
	return append(objects, newSubscription(r, c)), r.pkg, nil
}

func newSubscription(r *request, c choice) *operatorsv1alpha1.Subscription {
	sub := &operatorsv1alpha1.Subscription{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.SubscriptionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.pkg},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: r.pkg, Channel: c.entry.Channel.Name, CatalogSource: c.catalog.Name, CatalogSourceNamespace: c.catalog.Namespace,
			InstallPlanApproval: cmp.Or(r.approval, operatorsv1alpha1.ApprovalAutomatic),
		},
	}
	if r.version != "" {
		sub.Spec.StartingCSV = c.entry.Bundle.Name
	}
	return sub
}

// existingSubscription returns the Subscription of the package; nil if there is none. It returns an error if the
// Subscription differs from the request.
func existingSubscription(r *request, c choice, o *inventory) (*operatorsv1alpha1.Subscription, error) {
	i := slices.IndexFunc(o.subscriptions, func(sub operatorsv1alpha1.Subscription) bool { return sub.Spec != nil && sub.Spec.Package == r.pkg })
	if i < 0 {
		if slices.ContainsFunc(o.subscriptions, func(sub operatorsv1alpha1.Subscription) bool { return sub.Name == r.pkg }) {
			return nil, negative("Subscription %s/%s exists, and is for another package (spec.name); choose another --namespace", r.namespace, r.pkg)
		}
		return nil, nil //nolint:nilnil // a Subscription that does not exist is no error
	}
	sub := &o.subscriptions[i]
	if err := checkInstalled(r, c, sub); err != nil {
		return nil, err
	}
	spec := sub.Spec
	for _, field := range []struct{ name, has, wanted, flag string }{
		{"source", spec.CatalogSourceNamespace + "/" + spec.CatalogSource, c.catalog.String(), "--catalog"},
		{"channel", spec.Channel, r.channel, "--channel"},
		{"startingCSV", spec.StartingCSV, startingCSV(r, c, sub), "--version"},
		{"installPlanApproval", string(sub.GetInstallPlanApproval()), string(r.approval), "--approval"},
	} {
		if field.wanted != "" && field.has != field.wanted {
			return nil, negative("Subscription %s/%s exists, and its spec.%s is %q, not %q; leave out %s, or change the Subscription",
				r.namespace, sub.Name, field.name, field.has, field.wanted, field.flag)
		}
	}
	return sub, nil
}

// checkInstalled returns an error if the user names a version, and the Subscription has another one installed.
func checkInstalled(r *request, c choice, sub *operatorsv1alpha1.Subscription) error {
	installed, wanted := sub.Status.InstalledCSV, c.entry.Bundle
	if r.version == "" || installed == "" || installed == wanted.Name {
		return nil
	}
	number := wanted.Subject.Version
	remedy := fmt.Sprintf("remove the operator first: '%s remove %s -n %s --dry-run' shows what is removed", r.program, sub.Name, r.namespace)
	if has := wanted.Package.Bundle(installed); has != nil && has.Subject.Version.LT(number) {
		remedy = fmt.Sprintf("run '%s upgrade %s -n %s --version %s'", r.program, sub.Name, r.namespace, number)
		if sub.GetInstallPlanApproval() != operatorsv1alpha1.ApprovalManual {
			remedy = "set its spec.installPlanApproval to Manual, and " + remedy
		}
	}
	return negative("Subscription %s/%s has %s installed, not version %s; %s", r.namespace, sub.Name, installed, number, remedy)
}

// startingCSV returns the ClusterServiceVersion that the user names for a Subscription without a version; empty for none.
func startingCSV(r *request, c choice, sub *operatorsv1alpha1.Subscription) string {
	if r.version == "" || sub.Status.InstalledCSV != "" {
		return ""
	}
	return c.entry.Bundle.Name
}

// missingGroup returns the OperatorGroup to create; nil if the namespace has one.
func missingGroup(r *request, c choice, o *inventory, modes []operatorsv1alpha1.InstallMode) (*operatorsv1.OperatorGroup, error) {
	if len(o.groups) > 0 {
		has := o.groups[0].Spec.TargetNamespaces
		if len(r.targets) > 0 && !slices.Equal(slices.Sorted(slices.Values(has)), slices.Sorted(slices.Values(r.targets))) {
			return nil, negative("OperatorGroup %s/%s exists, and its spec.targetNamespaces is %q, not %q; "+
				"leave out --target-namespaces, or choose another --namespace",
				r.namespace, o.groups[0].Name, has, r.targets)
		}
		return nil, nil //nolint:nilnil // nothing is missing
	}
	for _, target := range o.absentTargets {
		if target != r.namespace { // the command creates its own namespace
			return nil, negative("namespace %s (--target-namespaces) does not exist; check the name, or create it: kubectl create namespace %s", target, target)
		}
	}
	targets, err := targetsOf(r, c, modes)
	if err != nil {
		return nil, err
	}
	return &operatorsv1.OperatorGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1.SchemeGroupVersion.String(), Kind: operatorsv1.OperatorGroupKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.namespace},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
	}, nil
}

// targetsOf returns the target namespaces of a new OperatorGroup: the requested ones; else none, which means all, if
// the operator supports that; else its own namespace.
func targetsOf(r *request, c choice, modes []operatorsv1alpha1.InstallMode) ([]string, error) {
	supported := func(mode operatorsv1alpha1.InstallModeType) bool {
		return len(modes) == 0 || slices.ContainsFunc(modes, func(m operatorsv1alpha1.InstallMode) bool { return m.Type == mode && m.Supported })
	}
	mode := operatorsv1alpha1.InstallModeTypeAllNamespaces
	targets := r.targets
	switch {
	case len(targets) > 1:
		mode = operatorsv1alpha1.InstallModeTypeMultiNamespace
	case len(targets) == 1 && targets[0] == r.namespace:
		mode = operatorsv1alpha1.InstallModeTypeOwnNamespace
	case len(targets) == 1:
		mode = operatorsv1alpha1.InstallModeTypeSingleNamespace
	case !supported(mode):
		mode, targets = operatorsv1alpha1.InstallModeTypeOwnNamespace, []string{r.namespace}
	}
	if supported(mode) {
		return targets, nil
	}
	var names []string
	for _, m := range modes {
		if m.Supported {
			names = append(names, string(m.Type))
		}
	}
	return nil, negative("ClusterServiceVersion %s does not support install mode %s (spec.installModes), but %s; change --target-namespaces",
		c.entry.Bundle.Name, mode, cmp.Or(strings.Join(names, ", "), "none"))
}

// describe returns a line about an object to create.
func describe(o client.Object) string {
	switch o := o.(type) {
	case *operatorsv1.OperatorGroup:
		where := "all namespaces"
		if len(o.Spec.TargetNamespaces) > 0 {
			where = strings.Join(o.Spec.TargetNamespaces, ", ")
		}
		return fmt.Sprintf("OperatorGroup %s/%s, for %s", o.Namespace, o.Name, where)
	case *operatorsv1alpha1.Subscription:
		return fmt.Sprintf("Subscription %s/%s: package %s, channel %s, catalog %s/%s, approval %s",
			o.Namespace, o.Name, o.Spec.Package, o.Spec.Channel, o.Spec.CatalogSourceNamespace, o.Spec.CatalogSource, o.Spec.InstallPlanApproval)
	default:
		return "Namespace " + o.GetName()
	}
}
