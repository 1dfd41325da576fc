package remove

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/chandlery/chandlery/supervisor/api"
)

// definition is a CustomResourceDefinition of the operator.
type definition struct {
	Name string `json:"name"`
	// Objects is the number of its custom resources in all namespaces; nil if the user may not list them.
	Objects *int `json:"objects,omitempty"`
	// Users are the other ClusterServiceVersions that own or require it, as NAMESPACE/NAME.
	Users []string `json:"users,omitempty"`
}

// inventory is what the cluster contains of an operator.
type inventory struct {
	subscription *operatorsv1alpha1.Subscription
	// versions are the ClusterServiceVersions of the Subscription.
	versions    []operatorsv1alpha1.ClusterServiceVersion
	definitions []definition
	// generated are the other Subscriptions of the namespace that resolution created.
	generated []string
}

// outcome is what the command did.
type outcome string

// The outcomes.
const (
	outcomePlanned outcome = "planned"
	outcomeRemoved outcome = "removed"
	outcomeFailed  outcome = "failed"
)

// plan is what the command removes and keeps.
type plan struct {
	// Remove are the objects to delete.
	Remove []string `json:"remove"`
	// Lost is the number of custom resources that are deleted.
	Lost int `json:"lostObjects"`
	// Stays is what is kept.
	Stays []string `json:"stays"`
	// Notes are facts to know before the removal.
	Notes []string `json:"notes,omitempty"`
	// Definitions are the CustomResourceDefinitions to delete.
	Definitions []definition `json:"definitions,omitempty"`
	// Outcome is what the command did.
	Outcome outcome `json:"outcome"`
}

// newPlan returns the plan for an inventory. crds is set if the CustomResourceDefinitions are removed too.
func newPlan(o *inventory, crds bool) plan {
	sub := o.subscription
	p := plan{Remove: []string{"Subscription " + sub.Namespace + "/" + sub.Name}, Stays: []string{}}
	for i := range o.versions {
		p.Remove = append(p.Remove, "ClusterServiceVersion "+sub.Namespace+"/"+o.versions[i].Name+" with its Deployments and RBAC")
		if o.versions[i].Spec.Cleanup.Enabled {
			p.Notes = append(p.Notes, "spec.cleanup of ClusterServiceVersion "+o.versions[i].Name+" also deletes its custom resources")
		}
	}
	for _, d := range o.definitions {
		p.definition(d, crds)
	}
	if len(o.generated) > 0 && sub.Annotations[api.AnnotationOnDelete] == "" {
		p.Stays = append(p.Stays, "Subscriptions that were created for dependencies: "+strings.Join(o.generated, ", "))
	}
	if value := sub.Annotations[api.AnnotationOnDelete]; value != "" {
		p.Notes = append(p.Notes, fmt.Sprintf("annotation %s=%s of the Subscription also uninstalls dependencies that nothing else needs", api.AnnotationOnDelete, value))
	}
	p.Stays = append(p.Stays, "Namespace "+sub.Namespace+", with its OperatorGroup")
	return p
}

// definition plans a CustomResourceDefinition.
func (p *plan) definition(d definition, crds bool) {
	text := "CustomResourceDefinition " + d.Name + " with its custom resources"
	if d.Objects != nil {
		text = fmt.Sprintf("CustomResourceDefinition %s with %s", d.Name, count(*d.Objects))
	}
	switch {
	case len(d.Users) > 0:
		p.Stays = append(p.Stays, text+", which "+strings.Join(d.Users, ", ")+" uses")
	case crds && d.Objects != nil:
		p.Remove, p.Lost, p.Definitions = append(p.Remove, text), p.Lost+*d.Objects, append(p.Definitions, d)
	default:
		p.Stays = append(p.Stays, text)
	}
}

func count(objects int) string {
	if objects == 1 {
		return "1 custom resource"
	}
	return fmt.Sprintf("%d custom resources", objects)
}

// usersOf returns the ClusterServiceVersions, as NAMESPACE/NAME, that own or require a definition, except those of the operator.
func usersOf(name string, all, own []operatorsv1alpha1.ClusterServiceVersion) []string {
	names := func(d operatorsv1alpha1.CRDDescription) bool { return d.Name == name }
	var users []string
	for i := range all {
		csv := &all[i]
		isOwn := slices.ContainsFunc(own, func(o operatorsv1alpha1.ClusterServiceVersion) bool { return o.UID == csv.UID })
		if isOwn || csv.IsCopied() {
			continue
		}
		if slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, names) || slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Required, names) {
			users = append(users, csv.Namespace+"/"+csv.Name)
		}
	}
	return users
}
