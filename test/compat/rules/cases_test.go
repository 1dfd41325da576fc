package rules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chandlery/chandlery/test/compat/rules"
)

// TestCases checks that each rule has a case: its ID is a string in a test file, either whole, or as "H1-" + kind with
// the kind as another string. Comparisons with an ID do not count.
func TestCases(t *testing.T) {
	t.Parallel()
	var written texts
	for _, pattern := range []string{"../*_test.go", "../nodes/*_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s matches %v (%v)", pattern, names, err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			written.add(file)
		}
	}
	for _, g := range rules.All() {
		for _, r := range g.Rules {
			if !written.has(r.ID) {
				t.Errorf("rule %s has no case: add one, or remove the rule", r.ID)
			}
		}
	}
}

// texts are the strings in source files.
type texts struct {
	whole map[string]bool
	// beginnings are the strings to which something is added.
	beginnings map[string]bool
}

// add adds the strings below a node.
func (w *texts) add(node ast.Node) {
	if w.whole == nil {
		w.whole, w.beginnings = map[string]bool{}, map[string]bool{}
	}
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, statement := range n.Body {
				w.add(statement)
			}
			return false
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				return false
			}
			if text, is := stringOf(n.X); is && n.Op == token.ADD {
				w.beginnings[text] = true
			}
		case *ast.BasicLit:
			if text, is := stringOf(n); is {
				w.whole[text] = true
			}
		}
		return true
	})
}

// has reports whether an ID is among the strings.
func (w *texts) has(id string) bool {
	beginning, end, _ := strings.Cut(id, "-")
	return w.whole[id] || w.beginnings[beginning+"-"] && w.whole[end]
}

// stringOf returns the value of a string in source code.
func stringOf(e ast.Expr) (text string, is bool) {
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
