package supervisor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestReconciliationsAreBounded finds every controller in the code, and its options. Without a
// ReconciliationTimeout, a call that hangs blocks a worker forever.
func TestReconciliationsAreBounded(t *testing.T) {
	t.Parallel()
	controllers, bounded := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if n.Sel.Name == "NewControllerManagedBy" {
					controllers[folder]++
				}
			case *ast.CompositeLit:
				of, ok := n.Type.(*ast.SelectorExpr)
				if pkg, named := name(of, ok); named && pkg == "controller" && of.Sel.Name == "Options" {
					if !hasKey(n, "ReconciliationTimeout") {
						t.Errorf("%s has controller.Options without a ReconciliationTimeout", path)
					}
					bounded[folder]++
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(controllers) == 0 {
		t.Error("no controller was found")
	}
	for folder, n := range controllers {
		if bounded[folder] == 0 {
			t.Errorf("%s has %d controllers and no controller.Options", folder, n)
		}
	}
}

// name returns the package of a selector.
func name(of *ast.SelectorExpr, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	pkg, ok := of.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return pkg.Name, true
}

func hasKey(literal *ast.CompositeLit, key string) bool {
	for _, e := range literal.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if named, ok := pair.Key.(*ast.Ident); ok && named.Name == key {
				return true
			}
		}
	}
	return false
}
