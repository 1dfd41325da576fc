package resolution

import (
	"github.com/chandlery/chandlery/supervisor/resolution/constraint"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// node is a version that may be in the result: a present operator, or an entry of a catalog.
type node struct {
	operator *Operator
	catalog  CatalogKey
	entry    *content.Entry
}

func (n node) name() string {
	if n.operator != nil {
		return n.operator.Name
	}
	return n.entry.Bundle.Name
}

func (n node) subject() *constraint.Subject {
	if n.operator != nil {
		return &n.operator.Subject
	}
	return &n.entry.Bundle.Subject
}

// pkg returns the package of a node; empty for an operator that names none.
func (n node) pkg() string {
	if n.operator != nil {
		return n.operator.Subject.Package
	}
	return n.entry.Channel.Package.Name
}

// id returns the name of a node in messages.
func (n node) id(namespace string) string {
	if n.operator != nil {
		return "@existing/" + namespace + "//" + n.operator.Name
	}
	return n.catalog.Name + "/" + n.catalog.Namespace + "/" + n.entry.Channel.Name + "/" + n.entry.Bundle.Name
}
