package uninstall

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/bundles"
)

// Operator is an installed ClusterServiceVersion.
type Operator struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Phase is the phase of the ClusterServiceVersion.
	Phase string `json:"phase,omitempty"`
	// Definitions are the CustomResourceDefinitions that the operator owns.
	Definitions []string `json:"-"`
}

// Inventory is what a cluster contains of the product and of operators: the input of a plan.
type Inventory struct {
	// Namespace is the namespace of the supervisors.
	Namespace string
	// Present are the objects of the product and the temporary grants of supervisors.
	Present []Object
	// Foreign are objects that have a name of the product but not its label.
	Foreign []Object
	// Contents are the objects in the namespace that do not belong to the product.
	Contents Contents
	// NamespaceOwned reports whether the namespace of the supervisors has the product's label.
	NamespaceOwned bool
	// Release is the Helm release of the Deployment; empty without one.
	Release string
	// Prerequisites are the existing prerequisites, and whether they may be removed with everything.
	Prerequisites []Prerequisite
	// Operators are all ClusterServiceVersions except copies.
	Operators []Operator
	// Finalized are ClusterServiceVersions and Subscriptions with a finalizer of the supervisor.
	Finalized []string
	// Counts are the numbers of objects of operators.coreos.com, by kind.
	Counts map[string]int
	// Managers are the Deployments of another lifecycle manager.
	Managers []string
	// Supervisors are the supervisors of the cluster.
	Supervisors Supervisors
}

// Prerequisite is an object of deploy/prerequisites that exists.
type Prerequisite struct {
	Object

	// Foreign reports whether another owner created the object.
	Foreign bool
}

// Plan is what an uninstallation removes and keeps.
type Plan struct {
	// Everything reports whether the prerequisites and all operators are removed too.
	Everything bool `json:"everything"`
	// Remove are the objects that are deleted by name.
	Remove []Object `json:"remove,omitempty"`
	// Lost is what is deleted as a consequence.
	Lost []string `json:"lost,omitempty"`
	// Stays is what is kept.
	Stays []string `json:"stays,omitempty"`
	// Notes are facts to know before the removal.
	Notes []string `json:"notes,omitempty"`
	// Blockers are the reasons why nothing is removed.
	Blockers []string `json:"blockers,omitempty"`
}

// NewPlan returns the plan for an inventory.
func NewPlan(o *Inventory, everything bool) Plan {
	p := Plan{Everything: everything, Remove: slices.Clone(o.Present), Blockers: o.Supervisors.obstacles(o.Namespace, everything)}
	for _, object := range o.Foreign {
		p.Stays = append(p.Stays, object.String()+", which lacks the label "+labelPartOf+"="+product)
	}
	p.namespace(o)
	if everything {
		p.all(o)
	} else {
		p.productOnly(o)
	}
	if len(p.Remove) == 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("The command looked for a supervisor in namespace %s. If its namespace is another one, set --supervisor-namespace", o.Namespace))
	}
	if o.Release != "" {
		p.Notes = append(p.Notes, fmt.Sprintf("Helm still lists the release %[1]s. Remove its record afterwards: helm uninstall %[1]s --namespace %[2]s", o.Release, o.Namespace))
	}
	return p
}

// namespace plans the removal of the supervisors' namespace.
func (p *Plan) namespace(o *Inventory) {
	switch {
	case !o.NamespaceOwned:
	case len(o.Contents.Objects) > 0:
		p.Stays = append(p.Stays, fmt.Sprintf("Namespace %s, which contains %s", o.Namespace, enumerate(o.Contents.Objects)))
	case len(o.Contents.Unlisted) > 0:
		p.Stays = append(p.Stays, fmt.Sprintf("Namespace %s, because the API server cannot list its objects of %s", o.Namespace, enumerate(o.Contents.Unlisted)))
	default:
		p.Remove = append(p.Remove, Object{Version: "v1", Kind: "Namespace", Name: o.Namespace})
	}
}

// productOnly plans a removal that keeps all operators.
func (p *Plan) productOnly(o *Inventory) {
	if n := len(o.Operators); n > 0 {
		p.Stays = append(p.Stays, fmt.Sprintf("%s, with running pods", bundles.Count(n, "operator")))
	}
	for _, kind := range kinds() {
		if n := o.Counts[kind]; n > 0 {
			p.Stays = append(p.Stays, bundles.Count(n, kind))
		}
	}
	if len(o.Prerequisites) > 0 {
		p.Stays = append(p.Stays, "the objects of deploy/prerequisites: the CustomResourceDefinitions of operators.coreos.com, the namespaces of the global catalogs and of operators, and the ClusterRoles for users")
	}
	if len(o.Operators) > 0 {
		p.Notes = append(p.Notes, "Without a supervisor, nothing updates or repairs operators, renews webhook certificates, or moves catalogs off lost nodes")
	}
	if len(o.Finalized) > 0 {
		p.Notes = append(p.Notes,
			"These objects have finalizers of the supervisor: "+enumerate(o.Finalized)+
				". Without a supervisor, the deletion of such an object or of its namespace does not complete",
			"To delete such an object without a supervisor and without clean-up, remove only the supervisor's finalizers: "+
				`kubectl -n NAMESPACE get KIND NAME -o json | jq '.metadata.finalizers -= ["`+strings.Join(finalizers(), `", "`)+`"]' | kubectl replace -f -`)
	}
}

// all plans a removal of everything.
func (p *Plan) all(o *Inventory) {
	if len(o.Managers) > 0 {
		p.Blockers = append(p.Blockers, "another lifecycle manager is installed: "+enumerate(o.Managers)+
			". It uses the same kinds and operators. Hand the cluster back and uninstall without --everything, or remove that manager first")
		return
	}
	definitions := map[string]bool{}
	for _, operator := range o.Operators {
		line := "Operator " + operator.Namespace + "/" + operator.Name + " with its Deployments and RBAC"
		if operator.Phase != "" {
			line += " (" + operator.Phase + ")"
		}
		p.Lost = append(p.Lost, line)
		for _, name := range operator.Definitions {
			definitions[name] = true
		}
	}
	for _, kind := range kinds() {
		if n := o.Counts[kind]; n > 0 {
			p.Lost = append(p.Lost, bundles.Count(n, kind))
		}
	}
	for _, one := range o.Prerequisites {
		if one.Foreign {
			p.Stays = append(p.Stays, one.String()+", which another owner created")
			continue
		}
		p.Remove = append(p.Remove, one.Object)
		if one.Kind == "Namespace" {
			p.Lost = append(p.Lost, "everything in namespace "+one.Name)
		}
	}
	if len(definitions) > 0 {
		p.Stays = append(p.Stays, bundles.Count(len(definitions), "CustomResourceDefinition")+" of operators, with their custom resources, except those that spec.cleanup of a version removes")
	}
}

// kinds returns the kinds of operators.coreos.com that are counted.
func kinds() []string {
	return []string{"Subscription", "ClusterServiceVersion", "InstallPlan", "CatalogSource", "OperatorGroup"}
}

// enumerate returns the first few names and the number of the others.
func enumerate(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
