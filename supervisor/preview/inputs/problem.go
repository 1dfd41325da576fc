package inputs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/plan"
	"github.com/chandlery/chandlery/supervisor/preview"
	"github.com/chandlery/chandlery/supervisor/resolver"
	"github.com/chandlery/chandlery/supervisor/resolver/constraint"
)

// annotationExcludeGlobal, on an OperatorGroup, keeps the catalogs of the global
// namespace away from its own.
const annotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"

// problem puts the objects of a namespace into the resolver's terms.
func problem(namespace, global string, o *Objects, catalogs map[resolver.CatalogKey]resolver.Catalog) preview.Request {
	r := preview.Request{
		Problem: resolver.Problem{Namespace: namespace, Catalogs: catalogs},
		Manual:  map[string]bool{}, Stuck: map[string]string{},
	}
	if len(o.Groups) == 1 && o.Groups[0].Annotations[annotationExcludeGlobal] == "true" && namespace != global {
		for key := range catalogs {
			if key.Namespace != namespace {
				delete(catalogs, key)
			}
		}
	}
	own := slices.DeleteFunc(slices.Clone(o.Versions), func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return csv.IsCopied() })
	replaced := map[string]bool{}
	for _, csv := range own {
		if csv.Spec.Replaces != csv.Name {
			replaced[csv.Spec.Replaces] = true
		}
	}
	tips := slices.DeleteFunc(own, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return replaced[csv.Name] })
	packages := map[string]string{}
	for _, csv := range tips {
		operator := describe(csv)
		if operator.Subject.Package == "" {
			operator.Subject.Package = o.packageOf(csv.Name, catalogs)
		}
		packages[csv.Name] = operator.Subject.Package
		r.Problem.Operators = append(r.Problem.Operators, operator)
	}
	subscriptions := slices.Clone(o.Subscriptions)
	slices.SortFunc(subscriptions, func(a, b *operatorsv1alpha1.Subscription) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, sub := range subscriptions {
		i := slices.IndexFunc(tips, func(csv *operatorsv1alpha1.ClusterServiceVersion) bool { return packages[csv.Name] == sub.Spec.Package })
		var present *operatorsv1alpha1.ClusterServiceVersion
		if i >= 0 {
			present = tips[i]
		}
		o.ask(&r, sub, present)
	}
	return r
}

// ask adds the wish of a Subscription.
func (o *Objects) ask(r *preview.Request, sub *operatorsv1alpha1.Subscription, present *operatorsv1alpha1.ClusterServiceVersion) {
	w := resolver.Subscription{
		Name:    sub.Name,
		Catalog: resolver.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource},
		Package: sub.Spec.Package, Channel: sub.Spec.Channel, StartingCSV: sub.Spec.StartingCSV,
		Generated: sub.Annotations[plan.AnnotationGeneratedBy] != "",
	}
	r.Manual[sub.Name] = sub.GetInstallPlanApproval() == operatorsv1alpha1.ApprovalManual
	if present == nil {
		w.Before = o.before(sub)
		r.Problem.Subscriptions = append(r.Problem.Subscriptions, w)
		return
	}
	w.Installed = present.Name
	made := o.planOf(sub, func(p *operatorsv1alpha1.InstallPlan) bool {
		return slices.Contains(p.Spec.ClusterServiceVersionNames, present.Name)
	})
	installed := sub.Status.InstalledCSV
	w.Holds = made != nil || (installed != "" && (installed == present.Name || installed == present.Spec.Replaces))
	w.Frozen = present.Status.Phase != operatorsv1alpha1.CSVPhaseSucceeded ||
		(made != nil && made.Status.Phase == operatorsv1alpha1.InstallPlanPhaseInstalling)
	if present.Status.Phase == operatorsv1alpha1.CSVPhaseFailed {
		if o.failsForward() {
			w.Frozen = false
		} else {
			r.Stuck[sub.Name] = fmt.Sprintf("version %s has failed, and nothing is begun before it is well: %s", present.Name, present.Status.Message)
		}
	}
	r.Problem.Subscriptions = append(r.Problem.Subscriptions, w)
}

// failsForward says whether versions that have failed may be updated.
func (o *Objects) failsForward() bool {
	return len(o.Groups) == 1 && o.Groups[0].UpgradeStrategy() == operatorsv1.UpgradeStrategyUnsafeFailForward
}

// packageOf is the package of a version that does not name it: that of the
// Subscription which knows it, or else of the only one that it can have come from.
func (o *Objects) packageOf(csv string, catalogs map[resolver.CatalogKey]resolver.Catalog) string {
	var possible []string
	for _, sub := range o.Subscriptions {
		if sub.Status.CurrentCSV == csv || sub.Status.InstalledCSV == csv {
			return sub.Spec.Package
		}
		c := catalogs[resolver.CatalogKey{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource}].Content
		if c == nil {
			continue
		}
		if p := c.Package(sub.Spec.Package); p != nil && p.Bundle(csv) != nil && !slices.Contains(possible, p.Name) {
			possible = append(possible, p.Name)
		}
	}
	if len(possible) != 1 {
		return ""
	}
	return possible[0]
}

// planOf finds the newest plan of a Subscription that is wanted.
func (o *Objects) planOf(sub *operatorsv1alpha1.Subscription, wanted func(*operatorsv1alpha1.InstallPlan) bool) *operatorsv1alpha1.InstallPlan {
	var newest *operatorsv1alpha1.InstallPlan
	for _, p := range o.Plans {
		owned := slices.ContainsFunc(p.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == sub.UID })
		owned = owned || p.Name == sub.Annotations[plan.AnnotationGeneratedBy]
		if owned && wanted(p) && (newest == nil || p.Spec.Generation > newest.Spec.Generation) {
			newest = p
		}
	}
	return newest
}

// before names the version that a Subscription had whose package is gone; empty
// when it never had one.
func (o *Objects) before(sub *operatorsv1alpha1.Subscription) string {
	p := o.planOf(sub, func(p *operatorsv1alpha1.InstallPlan) bool {
		return p.Status.Phase == operatorsv1alpha1.InstallPlanPhaseComplete && plan.VersionOf(p, sub.Spec.Package) != ""
	})
	if p == nil {
		return sub.Status.InstalledCSV
	}
	return plan.VersionOf(p, sub.Spec.Package)
}

// describe is what a version says of itself.
func describe(csv *operatorsv1alpha1.ClusterServiceVersion) resolver.Operator {
	var list struct {
		Properties []struct {
			Type  string          `json:"type"`
			Value json.RawMessage `json:"value"`
		} `json:"properties"`
	}
	operator := resolver.Operator{Name: csv.Name}
	if text := csv.Annotations[plan.AnnotationProperties]; text != "" && json.Unmarshal([]byte(text), &list) == nil {
		properties := make([]constraint.Property, 0, len(list.Properties))
		for _, p := range list.Properties {
			properties = append(properties, constraint.Property{Type: p.Type, Value: string(p.Value)})
		}
		if subject, requires, err := constraint.Parse(properties); err == nil {
			operator.Subject, operator.Requires = subject, requires
		}
	}
	if operator.Subject.Version.EQ(semver.Version{}) {
		operator.Subject.Version = csv.Spec.Version.Version
	}
	return operator
}

// groupProblem says why nothing could be resolved in a namespace; empty when it
// can.
func (o *Objects) groupProblem(namespace string) string {
	names := make([]string, 0, len(o.Groups))
	for _, g := range o.Groups {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	switch len(names) {
	case 1:
		return ""
	case 0:
		return fmt.Sprintf("found 0 operatorGroups, expected 1; create an OperatorGroup in namespace %s", namespace)
	default:
		return fmt.Sprintf("found %d operatorGroups, expected 1; delete all but one of %s in namespace %s", len(names), strings.Join(names, ", "), namespace)
	}
}
