package inputs

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apply changes the objects as if files had been applied to them. Existing objects keep their history, and new
// ones get the current time.
func (o *Objects) apply(files *Objects, now metav1.Time) {
	before := len(o.Subscriptions)
	o.Subscriptions = applied(o.Subscriptions, files.Subscriptions, now, func(there, given *operatorsv1alpha1.Subscription) {
		there.Spec = given.Spec
	})
	o.Versions = applied(o.Versions, files.Versions, now, func(there, given *operatorsv1alpha1.ClusterServiceVersion) {
		there.Spec, there.Annotations = given.Spec, given.Annotations
	})
	o.Plans = applied(o.Plans, files.Plans, now, func(there, given *operatorsv1alpha1.InstallPlan) {
		there.Spec = given.Spec
	})
	o.Groups = applied(o.Groups, files.Groups, now, func(there, given *operatorsv1.OperatorGroup) {
		there.Spec, there.Annotations = given.Spec, given.Annotations
	})
	o.Catalogs = applied(o.Catalogs, files.Catalogs, now, func(there, given *operatorsv1alpha1.CatalogSource) {
		there.Spec = given.Spec
	})
	o.Notes = append(o.Notes, files.Notes...)
	for _, sub := range o.Subscriptions[before:] {
		o.forget(sub)
	}
}

// forget removes the status of a Subscription from a file, unless an object that it names exists. Such a file
// creates a new Subscription, which has no status.
func (o *Objects) forget(sub *operatorsv1alpha1.Subscription) {
	var spoken []string
	for _, name := range []string{sub.Status.InstalledCSV, sub.Status.CurrentCSV} {
		if slices.ContainsFunc(o.Versions, func(v *operatorsv1alpha1.ClusterServiceVersion) bool { return v.Name == name }) {
			return
		}
		if text := "ClusterServiceVersion " + name; name != "" && !slices.Contains(spoken, text) {
			spoken = append(spoken, text)
		}
	}
	if ref := sub.Status.InstallPlanRef; ref != nil {
		if slices.ContainsFunc(o.Plans, func(p *operatorsv1alpha1.InstallPlan) bool { return p.Name == ref.Name }) {
			return
		}
		spoken = append(spoken, "InstallPlan "+ref.Name)
	}
	sub.Status = operatorsv1alpha1.SubscriptionStatus{}
	if len(spoken) > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("the status of Subscription %s does not count: it speaks of %s, which is not in the files either", sub.Name, strings.Join(spoken, ", ")))
	}
}

// applied changes existing objects to the given ones, and adds the others.
func applied[T client.Object](there, given []T, now metav1.Time, change func(there, given T)) []T {
	at := map[client.ObjectKey]T{}
	for _, object := range there {
		at[client.ObjectKeyFromObject(object)] = object
	}
	for _, object := range given {
		key := client.ObjectKeyFromObject(object)
		if known, ok := at[key]; ok {
			change(known, object)
			continue
		}
		if made := object.GetCreationTimestamp(); made.IsZero() {
			object.SetCreationTimestamp(now)
		}
		at[key] = object
		there = append(there, object)
	}
	return there
}
