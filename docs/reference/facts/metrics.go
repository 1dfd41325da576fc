package facts

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// Metric is a metric that a program serves.
type Metric struct {
	// Name is the full name.
	Name string
	// Type is counter, gauge or histogram.
	Type string
	// Labels are the names of the metric's labels.
	Labels []string
	// Help is the metric's help text.
	Help string
	// Package is the package that creates the metric.
	Package string
}

// options maps the types of metric options to the metric types.
var options = map[string]string{"CounterOpts": "counter", "GaugeOpts": "gauge", "HistogramOpts": "histogram", "SummaryOpts": "summary"}

// prometheus is the package that declares the types in options.
const prometheus = "github.com/prometheus/client_golang/prometheus"

// Metrics returns the metrics of all programs, sorted by name. It fails if it cannot determine a
// metric's name.
func (c *Code) Metrics() ([]Metric, error) {
	var all []Metric
	var errs []error
	for _, p := range c.packages {
		for _, file := range p.files {
			for _, declaration := range file.Decls {
				metrics, err := metricFinder{p}.metrics(declaration)
				all, errs = append(all, metrics...), append(errs, err)
			}
		}
	}
	slices.SortFunc(all, func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
	return all, errors.Join(errs...)
}

// metricFinder finds the metrics of a package.
type metricFinder struct{ *pkg }

// metrics returns the metrics that a declaration creates.
func (p metricFinder) metrics(declaration ast.Decl) ([]Metric, error) {
	var made []Metric
	var errs []error
	ast.Inspect(declaration, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		literal, kind := p.optionsOf(call)
		if kind == "" {
			return true
		}
		template := Metric{Type: kind, Package: p.path, Labels: p.labels(declaration, call, literal)}
		metrics, err := p.filled(declaration, literal, template)
		if err != nil {
			errs = append(errs, err)
		}
		made = append(made, metrics...)
		return true
	})
	return made, errors.Join(errs...)
}

// optionsOf returns the literal of metric options among the arguments of a call, and the type of
// the metric.
func (p metricFinder) optionsOf(call *ast.CallExpr) (*ast.CompositeLit, string) {
	for _, argument := range call.Args {
		literal, ok := argument.(*ast.CompositeLit)
		if !ok {
			continue
		}
		named, ok := types.Unalias(p.info.Types[literal].Type).(*types.Named)
		if ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == prometheus {
			return literal, options[named.Obj().Name()]
		}
		// CounterOpts and GaugeOpts are aliases of one type.
		if name, ok := p.object(typeName(literal)).(*types.TypeName); ok && name.Pkg().Path() == prometheus {
			return literal, options[name.Name()]
		}
	}
	return nil, ""
}

func typeName(literal *ast.CompositeLit) ast.Expr {
	if literal.Type == nil {
		return &ast.Ident{}
	}
	return literal.Type
}

// field returns the value of a field in a literal, or nil.
func field(literal *ast.CompositeLit, name string) ast.Expr {
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// filled returns the metrics that a literal of options creates. A function whose parameters are the
// name and the help creates one metric for each of its calls.
func (p metricFinder) filled(declaration ast.Decl, literal *ast.CompositeLit, m Metric) ([]Metric, error) {
	name, okName := p.text(field(literal, "Name"))
	help, okHelp := p.text(field(literal, "Help"))
	if okName && okHelp {
		m.Name, m.Help = p.prefix(literal)+name, help
		return []Metric{m}, nil
	}
	function, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return nil, fmt.Errorf("%s: a metric whose name is no constant", p.path)
	}
	nameAt, helpAt := parameter(function, field(literal, "Name")), parameter(function, field(literal, "Help"))
	if nameAt < 0 || helpAt < 0 {
		return nil, fmt.Errorf("%s: %s makes a metric whose name is neither constant nor a parameter", p.path, function.Name.Name)
	}
	var all []Metric
	var errs []error
	p.each(func(n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || p.object(call.Fun) != p.info.Defs[function.Name] {
			return
		}
		name, okName := p.text(call.Args[nameAt])
		help, okHelp := p.text(call.Args[helpAt])
		if !okName || !okHelp {
			errs = append(errs, fmt.Errorf("%s: a call of %s names a metric by no constant", p.path, function.Name.Name))
		}
		m.Name, m.Help = p.prefix(literal)+name, help
		all = append(all, m)
	})
	return all, errors.Join(errs...)
}

// prefix returns the part of the name that Namespace and Subsystem form.
func (p metricFinder) prefix(literal *ast.CompositeLit) string {
	var parts []string
	for _, part := range []string{"Namespace", "Subsystem"} {
		if text, ok := p.text(field(literal, part)); ok && text != "" {
			parts = append(parts, text+"_")
		}
	}
	return strings.Join(parts, "")
}

// parameter returns the index of an expression among the parameters of a function, or -1.
func parameter(function *ast.FuncDecl, e ast.Expr) int {
	wanted, ok := e.(*ast.Ident)
	if !ok {
		return -1
	}
	place := 0
	for _, list := range function.Type.Params.List {
		for _, name := range list.Names {
			if name.Name == wanted.Name {
				return place
			}
			place++
		}
	}
	return -1
}

// labels returns the names of the labels: those in the argument after the options, and constant
// labels.
func (p metricFinder) labels(scope ast.Node, call *ast.CallExpr, literal *ast.CompositeLit) []string {
	var names []string
	if constant, ok := field(literal, "ConstLabels").(*ast.CompositeLit); ok {
		for _, element := range constant.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				names = append(names, p.strings(scope, pair.Key)...)
			}
		}
	}
	if len(call.Args) > 1 {
		names = append(names, p.strings(scope, call.Args[1])...)
	}
	return names
}

// strings returns the constant strings of an expression: of a literal, of a variable assigned in
// the same scope, or of a call of append.
func (p metricFinder) strings(scope ast.Node, e ast.Expr) []string {
	if text, ok := p.text(e); ok {
		return []string{text}
	}
	var all []string
	switch e := e.(type) {
	case *ast.CompositeLit:
		for _, element := range e.Elts {
			all = append(all, p.strings(scope, element)...)
		}
	case *ast.CallExpr: // append
		for _, argument := range e.Args {
			all = append(all, p.strings(scope, argument)...)
		}
	case *ast.Ident:
		ast.Inspect(scope, func(n ast.Node) bool {
			if given, ok := n.(*ast.AssignStmt); ok && len(given.Lhs) == 1 && len(given.Rhs) == 1 && p.object(given.Lhs[0]) == p.object(e) {
				all = p.strings(scope, given.Rhs[0])
			}
			return true
		})
	}
	return all
}
