package olmobjects

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chandlery/chandlery/supervisor/api/providedapis"
)

// Operator is an operator that OLM has installed.
type Operator struct {
	// Namespace is the namespace of the installation. Package and Channel are its source, and
	// Catalog is the CatalogSource in OLM's namespace.
	Namespace, Package, Channel, Catalog string
	// Version is the version as it is in the bundle, and Semver is its number.
	Version *operatorsv1alpha1.ClusterServiceVersion
	Semver  string
	// Definitions are the CustomResourceDefinitions of the bundle.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Global is set if the operator serves all namespaces. Otherwise it serves its own.
	Global bool
	// Approval is the approval of the Subscription.
	Approval operatorsv1alpha1.Approval
}

// Install creates an operator in the state after OLM has installed it.
func (w Writer) Install(ctx context.Context, o Operator) error {
	if err := w.MakeNamespace(ctx, o.Namespace); err != nil {
		return err
	}
	group, err := w.group(ctx, &o)
	if err != nil {
		return err
	}
	sub := &operatorsv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Package, Labels: o.component()},
		Spec: &operatorsv1alpha1.SubscriptionSpec{
			Package: o.Package, Channel: o.Channel, CatalogSource: o.Catalog, CatalogSourceNamespace: Namespace,
			InstallPlanApproval: o.Approval,
		},
	}
	// A user creates the Subscription. OLM writes its status when there is an InstallPlan.
	if err := w.Client.Create(ctx, sub, byPerson); err != nil {
		return fmt.Errorf("making Subscription %s: %w", o.Package, err)
	}
	plan := o.plan(sub)
	if err := w.create(ctx, byCatalog, plan); err != nil {
		return err
	}
	for _, crd := range o.definitions() {
		if err := w.define(ctx, crd); err != nil {
			return err
		}
	}
	csv := o.csv(group)
	if err := w.create(ctx, byCatalog, csv); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return w.create(ctx, byCatalog, o.permissions(csv)...) },
		func() error { return w.create(ctx, byOLM, o.lifted(csv)...) },
		func() error { return w.webhooks.serve(ctx, &o, csv) },
		func() error { return w.create(ctx, byOLM, w.deployments(&o, csv)...) },
		func() error { return w.conditions(ctx, &o, csv) },
		func() error { return w.roles(ctx, csv, group) },
		func() error { return w.copies(ctx, &o, csv) },
		func() error {
			return w.create(ctx, byOLM, &operatorsv1.Operator{ObjectMeta: metav1.ObjectMeta{Name: o.Package + "." + o.Namespace}})
		},
		func() error { return w.told(ctx, sub, plan, csv) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operator) component() map[string]string {
	return map[string]string{"operators.coreos.com/" + o.Package + "." + o.Namespace: ""}
}

// group creates the OperatorGroup, with what OLM writes to it.
func (w Writer) group(ctx context.Context, o *Operator) (*operatorsv1.OperatorGroup, error) {
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "group"}}
	targets := []string{""}
	if !o.Global {
		targets = []string{o.Namespace}
		group.Spec.TargetNamespaces = targets
	}
	if err := w.Client.Create(ctx, group, byPerson); err != nil {
		return nil, fmt.Errorf("making an OperatorGroup: %w", err)
	}
	group.Annotations = map[string]string{"olm.providedAPIs": strings.Join(providedBy(o.Version), ",")}
	if err := w.Client.Update(ctx, group, byOLM); err != nil {
		return nil, fmt.Errorf("annotating an OperatorGroup: %w", err)
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	group.Status.Namespaces, group.Status.LastUpdated = targets, &now
	if err := w.Client.Status().Update(ctx, group, byOLM); err != nil {
		return nil, fmt.Errorf("writing the status of an OperatorGroup: %w", err)
	}
	if o.Global {
		return group, nil
	}
	ns := &corev1.Namespace{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: o.Namespace}, ns); err != nil {
		return nil, fmt.Errorf("reading a namespace: %w", err)
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels["olm.operatorgroup.uid/"+string(group.UID)] = ""
	if err := w.Client.Update(ctx, ns, byOLM); err != nil {
		return nil, fmt.Errorf("labelling a namespace: %w", err)
	}
	return group, nil
}

func kinds(csv *operatorsv1alpha1.ClusterServiceVersion) []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		_, group, _ := strings.Cut(d.Name, ".")
		all = append(all, schema.GroupVersionKind{Group: group, Version: d.Version, Kind: d.Kind})
	}
	return all
}

func providedBy(csv *operatorsv1alpha1.ClusterServiceVersion) []string {
	var all []string
	for _, k := range kinds(csv) {
		all = append(all, k.Kind+"."+k.Version+"."+k.Group)
	}
	slices.Sort(all)
	return all
}

// plan returns the InstallPlan of the installation. Its manifests were in the ConfigMap of an unpacked bundle.
func (o *Operator) plan(sub *operatorsv1alpha1.Subscription) *operatorsv1alpha1.InstallPlan {
	reference, err := json.Marshal(map[string]any{
		"kind": "ConfigMap", "name": unpackName(o.Version.Name), "namespace": Namespace,
		"catalogSourceName": o.Catalog, "catalogSourceNamespace": Namespace, "replaces": "", "properties": "",
	})
	if err != nil {
		panic(err) //nolint:forbidigo // texts can be encoded
	}
	step := func(group, version, kind, name string) *operatorsv1alpha1.Step {
		return &operatorsv1alpha1.Step{Resolving: o.Version.Name, Status: operatorsv1alpha1.StepStatusCreated, Resource: operatorsv1alpha1.StepResource{
			CatalogSource: o.Catalog, CatalogSourceNamespace: Namespace, Group: group, Version: version, Kind: kind, Name: name, Manifest: string(reference),
		}}
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	plan := &operatorsv1alpha1.InstallPlan{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, GenerateName: "install-", Labels: o.component(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.SubscriptionKind,
				Name: sub.Name, UID: sub.UID, Controller: new(false), BlockOwnerDeletion: new(false),
			}},
		},
		Spec: operatorsv1alpha1.InstallPlanSpec{
			ClusterServiceVersionNames: []string{o.Version.Name}, Approval: o.Approval, Approved: true, Generation: 1,
		},
		Status: operatorsv1alpha1.InstallPlanStatus{
			Phase: operatorsv1alpha1.InstallPlanPhaseComplete, StartTime: &now, CatalogSources: []string{},
			Conditions: []operatorsv1alpha1.InstallPlanCondition{{
				Type: operatorsv1alpha1.InstallPlanInstalled, Status: corev1.ConditionTrue, LastUpdateTime: &now, LastTransitionTime: &now,
			}},
			Plan: []*operatorsv1alpha1.Step{step("operators.coreos.com", "v1alpha1", "ClusterServiceVersion", o.Version.Name)},
		},
	}
	for _, crd := range o.Definitions {
		plan.Status.Plan = append(plan.Status.Plan, step("apiextensions.k8s.io", "v1", "CustomResourceDefinition", crd.Name))
	}
	return plan
}

func (o *Operator) definitions() []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range o.Definitions {
		crd = crd.DeepCopy()
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(o.Namespace + "/" + o.Version.Name))
		crd.Annotations = maps.Clone(crd.Annotations)
		if crd.Annotations == nil {
			crd.Annotations = map[string]string{}
		}
		crd.Annotations[fmt.Sprintf("operatorframework.io/installed-alongside-%x", sum.Sum64())] = o.Namespace + "/" + o.Version.Name
		crd.Labels = o.component()
		crd.Labels["olm.managed"] = "true"
		all = append(all, crd)
	}
	return all
}

// define creates a definition and waits until it is served.
func (w creator) define(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	if err := w.Client.Create(ctx, crd, byCatalog); err != nil {
		return fmt.Errorf("making a definition: %w", err)
	}
	const patience, pause = 20 * time.Second, 50 * time.Millisecond
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(pause) { //nolint:forbidigo // it polls
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return fmt.Errorf("reading a definition: %w", err)
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
	}
	return fmt.Errorf("definition %s is not established", crd.Name)
}

// csv returns the version in the state after its installation.
func (o *Operator) csv(group *operatorsv1.OperatorGroup) *operatorsv1alpha1.ClusterServiceVersion {
	csv := o.Version.DeepCopy()
	csv.Namespace = o.Namespace
	csv.Labels = o.component()
	csv.Labels["olm.managed"] = "true"
	for _, k := range kinds(csv) {
		csv.Labels["olm.api."+providedapis.Hash(k)] = "provided"
	}
	csv.Annotations = maps.Clone(csv.Annotations)
	if csv.Annotations == nil {
		csv.Annotations = map[string]string{}
	}
	csv.Annotations["olm.operatorGroup"] = group.Name
	csv.Annotations["olm.operatorNamespace"] = o.Namespace
	csv.Annotations["olm.targetNamespaces"] = strings.Join(group.Status.Namespaces, ",")
	properties := []map[string]any{{"type": "olm.package", "value": map[string]string{"packageName": o.Package, "version": o.Semver}}}
	for _, k := range kinds(csv) {
		properties = append(properties, map[string]any{"type": "olm.gvk", "value": map[string]string{"group": k.Group, "kind": k.Kind, "version": k.Version}})
	}
	text, err := json.Marshal(map[string]any{"properties": properties})
	if err != nil {
		panic(err) //nolint:forbidigo // texts can be encoded
	}
	csv.Annotations["operatorframework.io/properties"] = string(text)
	csv.Finalizers = []string{"operators.coreos.com/csv-cleanup"}
	csv.Status = succeeded(csv)
	return csv
}

func succeeded(csv *operatorsv1alpha1.ClusterServiceVersion) operatorsv1alpha1.ClusterServiceVersionStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	status := operatorsv1alpha1.ClusterServiceVersionStatus{
		Phase: operatorsv1alpha1.CSVPhaseSucceeded, Reason: operatorsv1alpha1.CSVReasonInstallSuccessful,
		Message: "install strategy completed with no errors", LastUpdateTime: &now, LastTransitionTime: &now,
	}
	for _, c := range []struct {
		phase   operatorsv1alpha1.ClusterServiceVersionPhase
		reason  operatorsv1alpha1.ConditionReason
		message string
	}{
		{operatorsv1alpha1.CSVPhasePending, operatorsv1alpha1.CSVReasonRequirementsUnknown, "requirements not yet checked"},
		{operatorsv1alpha1.CSVPhaseInstallReady, operatorsv1alpha1.CSVReasonRequirementsMet, "all requirements found, attempting install"},
		{operatorsv1alpha1.CSVPhaseInstalling, operatorsv1alpha1.CSVReasonInstallSuccessful, "waiting for install components to report healthy"},
		{operatorsv1alpha1.CSVPhaseSucceeded, operatorsv1alpha1.CSVReasonInstallSuccessful, "install strategy completed with no errors"},
	} {
		status.Conditions = append(status.Conditions, operatorsv1alpha1.ClusterServiceVersionCondition{
			Phase: c.phase, Reason: c.reason, Message: c.message, LastUpdateTime: &now, LastTransitionTime: &now,
		})
	}
	for _, d := range csv.Spec.CustomResourceDefinitions.Owned {
		status.RequirementStatus = append(status.RequirementStatus, operatorsv1alpha1.RequirementStatus{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: d.Name,
			Status: operatorsv1alpha1.RequirementStatusReasonPresent, Message: "CRD is present and Established condition is true",
		})
	}
	return status
}

// owned returns the labels of objects that belong to a version.
func owned(csv *operatorsv1alpha1.ClusterServiceVersion) map[string]string {
	return map[string]string{
		"olm.managed": "true", "olm.owner": csv.Name, "olm.owner.namespace": csv.Namespace, "olm.owner.kind": "ClusterServiceVersion",
	}
}

func reference(csv *operatorsv1alpha1.ClusterServiceVersion) []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind,
		Name: csv.Name, UID: csv.UID, Controller: new(false), BlockOwnerDeletion: new(false),
	}}
}

// permissions returns the accounts, roles and bindings of the install strategy.
func (o *Operator) permissions(csv *operatorsv1alpha1.ClusterServiceVersion) []client.Object {
	var all []client.Object
	accounts := map[string]bool{}
	account := func(name string) {
		if !accounts[name] {
			accounts[name] = true
			all = append(all, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: csv.Namespace, Name: name, Labels: withComponent(o, map[string]string{"olm.managed": "true"}), OwnerReferences: reference(csv),
			}})
		}
	}
	meta := func(name, namespace string, rules []rbacv1.PolicyRule) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: withComponent(o, owned(csv))}
		m.Labels["olm.permissions.hash"] = Hash(rules)
		if namespace != "" {
			m.OwnerReferences = reference(csv)
		}
		return m
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	for _, p := range strategy.Permissions {
		account(p.ServiceAccountName)
		name := named(csv.Name+"-"+p.ServiceAccountName, Hash([]any{csv.Name, p}))
		all = append(all,
			&rbacv1.Role{ObjectMeta: meta(name, csv.Namespace, p.Rules), Rules: p.Rules},
			&rbacv1.RoleBinding{ObjectMeta: meta(name, csv.Namespace, p.Rules), RoleRef: roleRef("Role", name), Subjects: subjects(csv, p.ServiceAccountName)})
	}
	for _, p := range strategy.ClusterPermissions {
		account(p.ServiceAccountName)
		name := named(csv.Name, Hash([]any{csv.Name, csv.Namespace, p}))
		all = append(all,
			&rbacv1.ClusterRole{ObjectMeta: meta(name, "", p.Rules), Rules: p.Rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: meta(name, "", p.Rules), RoleRef: roleRef("ClusterRole", name), Subjects: subjects(csv, p.ServiceAccountName),
			})
	}
	return all
}

// lifted returns the cluster-scoped copies of the roles of an operator for all namespaces.
func (o *Operator) lifted(csv *operatorsv1alpha1.ClusterServiceVersion) []client.Object {
	if !o.Global {
		return nil
	}
	var all []client.Object
	for _, p := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
		name := named(csv.Name+"-"+p.ServiceAccountName, Hash([]any{csv.Name, p}))
		labels := owned(csv)
		labels["olm.permissions.hash"] = Hash(p.Rules)
		labels = withComponent(o, labels)
		rules := append(slices.Clone(p.Rules), rbacv1.PolicyRule{
			Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"namespaces"},
		})
		all = append(all,
			&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, RoleRef: roleRef("ClusterRole", name),
				Subjects: subjects(csv, p.ServiceAccountName),
			})
	}
	return all
}

func withComponent(o *Operator, labels map[string]string) map[string]string {
	maps.Copy(labels, o.component())
	return labels
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func subjects(csv *operatorsv1alpha1.ClusterServiceVersion, account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: csv.Namespace, Name: account}}
}

// deployments returns the Deployments of the version, with all its annotations on the pods.
func (w Writer) deployments(o *Operator, csv *operatorsv1alpha1.ClusterServiceVersion) []client.Object {
	var all []client.Object
	for _, declared := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		spec := declared.Spec.DeepCopy()
		annotations := maps.Clone(spec.Template.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, csv.Annotations)
		spec.Template.Annotations = annotations
		w.webhooks.mount(csv, declared.Name, spec)
		spec.RevisionHistoryLimit = new(int32(1))
		for i := range spec.Template.Spec.Containers {
			c := &spec.Template.Spec.Containers[i]
			c.Env = append(c.Env, corev1.EnvVar{Name: "OPERATOR_CONDITION_NAME", Value: csv.Name})
		}
		labels := maps.Clone(map[string]string(declared.Label))
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, withComponent(o, owned(csv)))
		labels["olm.deployment-spec-hash"] = Hash(spec)
		all = append(all, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: declared.Name, Labels: labels, OwnerReferences: reference(csv)},
			Spec:       *spec,
		})
	}
	return all
}
