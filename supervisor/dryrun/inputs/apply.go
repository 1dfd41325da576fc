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
	o.Subscriptions = merged(o.Subscriptions, files.Subscriptions, now, func(existing, wanted *operatorsv1alpha1.Subscription) {
		existing.Spec = wanted.Spec
	})
	o.Versions = merged(o.Versions, files.Versions, now, func(existing, wanted *operatorsv1alpha1.ClusterServiceVersion) {
		existing.Spec, existing.Annotations = wanted.Spec, wanted.Annotations
	})
	o.Plans = merged(o.Plans, files.Plans, now, func(existing, wanted *operatorsv1alpha1.InstallPlan) {
		existing.Spec = wanted.Spec
	})
	o.Groups = merged(o.Groups, files.Groups, now, func(existing, wanted *operatorsv1.OperatorGroup) {
		existing.Spec, existing.Annotations = wanted.Spec, wanted.Annotations
	})
	o.Catalogs = merged(o.Catalogs, files.Catalogs, now, func(existing, wanted *operatorsv1alpha1.CatalogSource) {
		existing.Spec = wanted.Spec
	})
	o.Notes = append(o.Notes, files.Notes...)
	for _, sub := range o.Subscriptions[before:] {
		o.dropUnknownStatus(sub)
	}
}

// dropUnknownStatus removes the status of a Subscription from a file, unless an object that it names exists. Such a
// file creates a new Subscription, which has no status.
func (o *Objects) dropUnknownStatus(sub *operatorsv1alpha1.Subscription) {
	var missing []string
	for _, name := range []string{sub.Status.InstalledCSV, sub.Status.CurrentCSV} {
		if slices.ContainsFunc(o.Versions, func(v *operatorsv1alpha1.ClusterServiceVersion) bool { return v.Name == name && !v.IsCopied() }) {
			return
		}
		if text := "ClusterServiceVersion " + name; name != "" && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	if ref := sub.Status.InstallPlanRef; ref != nil {
		if slices.ContainsFunc(o.Plans, func(p *operatorsv1alpha1.InstallPlan) bool { return p.Name == ref.Name }) {
			return
		}
		missing = append(missing, "InstallPlan "+ref.Name)
	}
	sub.Status = operatorsv1alpha1.SubscriptionStatus{}
	if len(missing) > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("the status of Subscription %s does not count: it speaks of %s, which is not in the files either", sub.Name, strings.Join(missing, ", ")))
	}
}

// merged returns the existing objects, changed to the wanted ones of the same name, and the other wanted ones.
func merged[T client.Object](existing, wanted []T, now metav1.Time, change func(existing, wanted T)) []T {
	at := map[client.ObjectKey]T{}
	for _, object := range existing {
		at[client.ObjectKeyFromObject(object)] = object
	}
	for _, object := range wanted {
		key := client.ObjectKeyFromObject(object)
		if known, ok := at[key]; ok {
			change(known, object)
			continue
		}
		if made := object.GetCreationTimestamp(); made.IsZero() {
			object.SetCreationTimestamp(now)
		}
		at[key] = object
		existing = append(existing, object)
	}
	return existing
}
