package facts

import (
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"strings"
)

// A Kind is what a value in a status or an Event is.
type Kind string

// The kinds of values.
const (
	Condition Kind = "condition"
	Reason    Kind = "reason"
	Phase     Kind = "phase"
	State     Kind = "state"
	Event     Kind = "event"
)

// States lists the types of conditions, the reasons, phases and states, and the reasons
// of Events that the supervisor's code names, with the packages where each is found.
func (c *Code) States() map[Kind]map[string][]string {
	found := map[Kind]map[string][]string{}
	for _, p := range c.packages {
		if !p.tells() {
			continue
		}
		add := func(kind Kind, value string, ok bool) {
			if !ok || !camel.MatchString(value) {
				return
			}
			if found[kind] == nil {
				found[kind] = map[string][]string{}
			}
			in := found[kind][value]
			if len(in) == 0 || in[len(in)-1] != p.path {
				found[kind][value] = append(in, p.path)
			}
		}
		p.each(func(n ast.Node) {
			if call, ok := n.(*ast.CallExpr); ok {
				value, ok := p.event(call)
				add(Event, value, ok)
			}
			for _, e := range p.reasons(n) {
				value, ok := p.text(e)
				add(Reason, value, ok)
			}
			if e, ok := n.(ast.Expr); ok {
				kind, value, ok := p.named(e)
				add(kind, value, ok)
			}
		})
	}
	return found
}

// tells says whether a package has what is told in statuses and Events. What discovery
// finds is in neither, and on a page of its own, which its tests compare with the code.
func (p *pkg) tells() bool {
	return p.path == "bundles/image" || strings.HasPrefix(p.path, "supervisor") && p.path != "supervisor/discovery"
}

// camel is how all these values are written.
var camel = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// event is the reason of an Event that a call makes: the fourth argument of Eventf.
func (p *pkg) event(call *ast.CallExpr) (string, bool) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Eventf" || len(call.Args) < 5 {
		return "", false
	}
	return p.text(call.Args[3])
}

// reasons are the expressions of a node that become the reason of something: they are
// given to a field of that name or to a function whose parameter has it, or a function has
// it and returns them.
func (p *pkg) reasons(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if name, ok := n.Key.(*ast.Ident); ok && p.isReason(name) {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt:
		var found []ast.Expr
		for i, left := range n.Lhs {
			if field, ok := left.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) && p.isReason(field.Sel) {
				found = append(found, n.Rhs[i])
			}
		}
		return found
	case *ast.CallExpr:
		return p.reasonArguments(n)
	case *ast.FuncDecl:
		return returned(n)
	}
	return nil
}

// returned are what a function called reason gives.
func returned(function *ast.FuncDecl) []ast.Expr {
	var found []ast.Expr
	if function.Name.Name != "reason" {
		return nil
	}
	ast.Inspect(function, func(n ast.Node) bool {
		if given, ok := n.(*ast.ReturnStmt); ok && len(given.Results) > 0 {
			found = append(found, given.Results[0])
		}
		return true
	})
	return found
}

// isReason says whether a name is that of a field for the reason of something.
func (p *pkg) isReason(name *ast.Ident) bool {
	field, ok := p.info.Uses[name].(*types.Var)
	return ok && name.Name == "Reason" && field.IsField() && (ours(field.Pkg()) || field.Pkg().Path() == metaPackage)
}

// metaPackage has the conditions that many kinds share.
const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"

// reasonArguments are the arguments of a call for parameters called reason.
func (p *pkg) reasonArguments(call *ast.CallExpr) []ast.Expr {
	signature, ok := p.info.Types[call.Fun].Type.(*types.Signature)
	callee := p.object(call.Fun)
	if !ok || callee == nil || !ours(callee.Pkg()) {
		return nil
	}
	var found []ast.Expr
	for i := range min(signature.Params().Len(), len(call.Args)) {
		if signature.Params().At(i).Name() == "reason" {
			found = append(found, call.Args[i])
		}
	}
	return found
}

// named is a constant that has the type of a condition, a reason or the like, or is called
// so.
func (p *pkg) named(e ast.Expr) (Kind, string, bool) {
	c, ok := p.object(e).(*types.Const)
	if !ok || !ours(c.Pkg()) {
		return "", "", false
	}
	value, ok := p.text(e)
	if !ok { // where it is declared
		value, ok = unquoted(c)
	}
	kind := kindOf(c)
	return kind, value, ok && kind != ""
}

// kindOf tells the kind from the type of a constant, else from its name.
func kindOf(c *types.Const) Kind {
	name := c.Name()
	if named, ok := c.Type().(*types.Named); ok {
		name = named.Obj().Name()
		if named.Obj().Name() == "Reason" || strings.HasSuffix(name, "Reason") {
			return Reason
		}
	}
	switch {
	case strings.HasPrefix(strings.ToLower(name), "kind"):
		return ""
	case strings.HasSuffix(name, "ConditionType"), strings.HasPrefix(name, "Condition"), strings.HasSuffix(name, "Condition"),
		c.Pkg().Path() == apiPackages+"v2":
		return Condition
	case strings.HasSuffix(name, "Phase"), strings.HasPrefix(name, "Phase"):
		return Phase
	case strings.HasPrefix(name, "SubscriptionState"):
		return State
	case strings.HasPrefix(name, "reason"), strings.HasPrefix(name, "Reason"), strings.HasSuffix(name, "Reason"):
		return Reason
	case c.Pkg().Path() == apiPackages+"v1alpha1" && !strings.HasSuffix(name, "Kind") && isString(c):
		return Reason // those of Subscriptions have no type, nor anything in common
	}
	return ""
}

func isString(c *types.Const) bool {
	basic, ok := c.Type().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// apiPackages begins the paths of the packages that hold the kinds of operators.coreos.com.
const apiPackages = "github.com/operator-framework/api/pkg/operators/"

// ours says whether a package is of this module or holds the kinds of operators.coreos.com.
func ours(p *types.Package) bool {
	return p != nil && (strings.HasPrefix(p.Path(), Module) || strings.HasPrefix(p.Path(), apiPackages))
}

// unquoted is the value of a constant.
func unquoted(c *types.Const) (string, bool) {
	if c.Val().Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(c.Val()), true
}
