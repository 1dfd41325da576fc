package facts

import (
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"strings"
)

// Kind is the kind of a value in a status or an Event.
type Kind string

// The kinds of values.
const (
	Condition Kind = "condition"
	Reason    Kind = "reason"
	Phase     Kind = "phase"
	State     Kind = "state"
	Event     Kind = "event"
)

// States returns the values that the supervisor's code names, each with the packages that use it:
// condition types, reasons, phases, states and reasons of Events.
func (c *Code) States() map[Kind]map[string][]string {
	found := map[Kind]map[string][]string{}
	for _, one := range c.packages {
		p := stateFinder{one}
		if !p.writesStates() {
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

// stateFinder finds the values that a package writes.
type stateFinder struct{ *pkg }

// writesStates reports whether a package writes statuses or Events. The package discovery writes neither;
// its values have a page of their own, which its tests compare with the code.
func (p stateFinder) writesStates() bool {
	return p.path == "bundles/image" || strings.HasPrefix(p.path, "supervisor") && p.path != "supervisor/discovery"
}

// camel matches the spelling of all these values.
var camel = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// event returns the reason of an Event that a call creates: the fourth argument of Eventf.
func (p stateFinder) event(call *ast.CallExpr) (string, bool) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "Eventf" || len(call.Args) < 5 {
		return "", false
	}
	return p.text(call.Args[3])
}

// reasons returns the expressions of a node that become a reason. They are assigned to a field
// Reason, passed to a parameter called reason, or returned by a function called reason.
func (p stateFinder) reasons(n ast.Node) []ast.Expr {
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

// returned returns the first result of each return statement of a function called reason.
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

// isReason reports whether a name denotes a field Reason of a type in this module, of
// operators.coreos.com, or of the shared conditions.
func (p stateFinder) isReason(name *ast.Ident) bool {
	field, ok := p.info.Uses[name].(*types.Var)
	return ok && name.Name == "Reason" && field.IsField() && (ours(field.Pkg()) || field.Pkg().Path() == metaPackage)
}

// metaPackage is the package of the conditions that many kinds share.
const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"

// reasonArguments returns the arguments of a call for parameters called reason.
func (p stateFinder) reasonArguments(call *ast.CallExpr) []ast.Expr {
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

// named returns the kind and the value of a constant, if its type or its name identifies the kind.
func (p stateFinder) named(e ast.Expr) (Kind, string, bool) {
	c, ok := p.object(e).(*types.Const)
	if !ok || !ours(c.Pkg()) {
		return "", "", false
	}
	value, ok := p.text(e)
	if !ok { // the declaration of the constant
		value, ok = unquoted(c)
	}
	kind := kindOf(c)
	return kind, value, ok && kind != ""
}

// kindOf returns the kind of a constant by its type, otherwise by its name.
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
		return Reason // reasons of Subscriptions have neither a type nor a common name
	}
	return ""
}

func isString(c *types.Const) bool {
	basic, ok := c.Type().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// apiPackages is the prefix of the packages that declare the kinds of operators.coreos.com.
const apiPackages = "github.com/operator-framework/api/pkg/operators/"

// ours reports whether a package belongs to this module or declares the kinds of
// operators.coreos.com.
func ours(p *types.Package) bool {
	return p != nil && (strings.HasPrefix(p.Path(), Module) || strings.HasPrefix(p.Path(), apiPackages))
}

// unquoted returns the value of a constant string.
func unquoted(c *types.Const) (string, bool) {
	if c.Val().Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(c.Val()), true
}
