package depcheck

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ParsedMessages returns the files that may parse messages, with a reason each. They read sentences of other
// programs that have no field for what they state.
func ParsedMessages() map[string]string {
	return map[string]string{
		"cmd/internal/program/quiet.go":                              "errors that clients log as text",
		"supervisor/controllers/catalogsource/replica_conditions.go": "the kubelet's error after a pause",
		"supervisor/controllers/subscription/transition_backfill.go": "the resource version that the API server still has",
		"supervisor/discovery/client.go":                             "the user whom an API server refuses",
		"supervisor/explain/kubernetes_messages.go":                  "sentences of the kubelet, the scheduler and the namespace controller",
	}
}

// matchers are the names of functions of the package strings, and of methods of regular expressions, that read a
// text. Functions that only trim what a user sees are none.
var matchers = regexp.MustCompile(`^(Contains|HasPrefix|HasSuffix|Cut|Index|LastIndex|EqualFold|Count|Split|` +
	`MatchString|FindString|FindAllString|ReplaceAllString)`)

// Matches returns the positions where product code matches the Message of an object or the text of an error, by
// file. It follows a text into a variable of the same function, not into other functions.
func (s *Source) Matches() map[string][]string {
	found := map[string][]string{}
	for name, file := range s.files {
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is || f.Body == nil {
				continue
			}
			for _, pos := range matchesIn(f.Body) {
				found[name] = append(found[name], fmt.Sprintf("%s:%d", name, s.set.Position(pos).Line))
			}
		}
	}
	return found
}

// matchesIn returns the positions of the calls in a function that match a message.
func matchesIn(body *ast.BlockStmt) []token.Pos {
	var found []token.Pos
	messages := map[string]bool{}
	isMessage := func(e ast.Expr) bool { return isMessage(e, messages) }
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if target, is := n.Lhs[i].(*ast.Ident); is && len(n.Lhs) == len(n.Rhs) && isMessage(value) {
					messages[target.Name] = true
				}
			}
		case *ast.CallExpr:
			if f, is := n.Fun.(*ast.SelectorExpr); is && matchers.MatchString(f.Sel.Name) && slices.ContainsFunc(n.Args, isMessage) {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// isMessage reports whether an expression is a field Message, the text of an error, or a text that consists of one.
func isMessage(e ast.Expr, messages map[string]bool) bool {
	among := func(e ast.Expr) bool { return isMessage(e, messages) }
	switch e := e.(type) {
	case *ast.Ident:
		return messages[e.Name]
	case *ast.ParenExpr:
		return among(e.X)
	case *ast.BinaryExpr:
		return among(e.X) || among(e.Y)
	case *ast.SelectorExpr:
		return e.Sel.Name == "Message"
	case *ast.CallExpr:
		f, is := e.Fun.(*ast.SelectorExpr)
		return is && returnsMessage(f, e.Args, among)
	default:
		return false
	}
}

// returnsMessage reports whether a call of a method or of a package's function returns a message.
func returnsMessage(f *ast.SelectorExpr, args []ast.Expr, isMessage func(ast.Expr) bool) bool {
	if len(args) == 0 {
		return f.Sel.Name == "Error" || f.Sel.Name == "GetMessage"
	}
	library, is := f.X.(*ast.Ident)
	return is && (library.Name == "strings" || library.Name == "cmp") && slices.ContainsFunc(args, isMessage)
}

// Unexpected compares the positions that a rule found, by file, with the files that are allowed. remedy is what the
// others have to do.
func Unexpected(found map[string][]string, allowed map[string]string, remedy string) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, may := allowed[name]; !may {
			problems = append(problems, strings.Join(found[name], ", ")+": "+remedy)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if len(found[name]) == 0 {
			problems = append(problems, name+" does not need its allowance: remove it")
		}
	}
	slices.SortFunc(problems, cmp.Compare[string])
	return problems
}
