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
	// Dependents are those of Users that require it, if no other version owns it.
	Dependents []string `json:"-"`
	// Cleanup is set if the clean-up of the operator's versions deletes its custom resources, and Cleaned is how many of
	// the counted ones.
	Cleanup bool `json:"-"`
	Cleaned int  `json:"-"`
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
		if cleansUp(&o.versions[i]) {
			p.Notes = append(p.Notes, "spec.cleanup of ClusterServiceVersion "+o.versions[i].Name+" also deletes its custom resources")
		}
	}
	for _, d := range o.definitions {
		p.definition(d, crds)
		for _, dependent := range d.Dependents {
			p.Notes = append(p.Notes, fmt.Sprintf("ClusterServiceVersion %s requires CustomResourceDefinition %s: the supervisor installs the operator again",
				dependent, d.Name))
		}
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
	used := ""
	if len(d.Users) > 0 {
		used = ", which " + strings.Join(d.Users, ", ") + " uses"
	}
	switch {
	case crds && used == "" && d.Objects != nil:
		p.Remove, p.Lost, p.Definitions = append(p.Remove, text), p.Lost+*d.Objects, append(p.Definitions, d)
	case d.Cleanup && (d.Objects == nil || d.Cleaned > 0):
		p.Stays, p.Lost = append(p.Stays, "CustomResourceDefinition "+d.Name+used+", without "+cleanedText(d)), p.Lost+d.Cleaned
	default:
		p.Stays = append(p.Stays, text+used)
	}
}

// cleanedText returns which custom resources of a definition a clean-up deletes.
func cleanedText(d definition) string {
	switch {
	case d.Objects == nil:
		return "its custom resources"
	case d.Cleaned < *d.Objects:
		return fmt.Sprintf("%d of its %s", d.Cleaned, count(*d.Objects))
	default:
		return "its " + count(d.Cleaned)
	}
}

func count(objects int) string {
	if objects == 1 {
		return "1 custom resource"
	}
	return fmt.Sprintf("%d custom resources", objects)
}

// usersOf returns the ClusterServiceVersions, as NAMESPACE/NAME, that own or require a definition, except those of the
// operator. dependents are those that require it, if none of the others owns it.
func usersOf(name string, all, own []operatorsv1alpha1.ClusterServiceVersion) (users, dependents []string) {
	names := func(d operatorsv1alpha1.CRDDescription) bool { return d.Name == name }
	owned := false
	for i := range all {
		csv := &all[i]
		if isAmong(csv, own) || csv.IsCopied() {
			continue
		}
		owns, requires := csv.OwnsCRD(name), slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Required, names)
		if owns || requires {
			users = append(users, csv.Namespace+"/"+csv.Name)
		}
		if requires {
			dependents = append(dependents, csv.Namespace+"/"+csv.Name)
		}
		owned = owned || owns
	}
	if owned {
		dependents = nil
	}
	return users, dependents
}
