package depcheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// drawing returns the folders of the packages that may write control sequences.
func drawing() []string {
	return []string{"cmd/internal/terminal", "cmd/internal/console", "cmd/internal/progress"}
}

// archiving returns the folders of the packages that may write data that is not text.
func archiving() []string {
	return append(drawing(), "cmd/internal/command/supportbundle", "cmd/internal/document")
}

// UnfilteredOutput returns a line for each expression in the programs below root, a folder of the
// module, that could write unfiltered foreign text to a terminal. These expressions write to the
// streams of the process without a terminal.Writer, or create a control sequence outside the
// packages that draw. module is the path of the folder in the module.
func UnfilteredOutput(root, module string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		below, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return fmt.Errorf("naming %s: %w", path, err)
		}
		folder := absolute(filepath.ToSlash(filepath.Join(module, below)))
		for _, what := range unfiltered(file, folder) {
			found = append(found, fmt.Sprintf("%s: %s", set.Position(what.Pos()), message(what)))
		}
		return nil
	})
	return found, err
}

// unfiltered returns the forbidden expressions of a file.
func unfiltered(file *ast.File, folder string) []ast.Expr {
	var found []ast.Expr
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			if isName(node.Fun, "", "print", "println") {
				found = append(found, node.Fun)
			}
			return !isName(node.Fun, "terminal", "NewWriter")
		case *ast.SelectorExpr:
			if isForbidden(node, folder) {
				found = append(found, node)
			}
		}
		return true
	})
	return found
}

// isForbidden reports whether an expression is forbidden in a folder.
func isForbidden(expr ast.Expr, folder string) bool {
	switch {
	case isName(expr, "terminal", "Control"):
		return !belowAny(folder, drawing())
	case isName(expr, "terminal", "Unfiltered"):
		return !belowAny(folder, archiving())
	}
	return isName(expr, "os", "Stdout", "Stderr") || isName(expr, "syscall", "Stdout", "Stderr") ||
		isName(expr, "fmt", "Print", "Printf", "Println")
}

// isName reports whether an expression is one of the names of a package. The empty package is the
// file's own package.
func isName(expr ast.Expr, pkg string, names ...string) bool {
	name := ""
	switch expr := expr.(type) {
	case *ast.Ident:
		if pkg == "" {
			name = expr.Name
		}
	case *ast.SelectorExpr:
		if of, ok := expr.X.(*ast.Ident); ok && of.Name == pkg {
			name = expr.Sel.Name
		}
	}
	return name != "" && slices.Contains(names, name)
}

// message returns the problem of an expression and the remedy.
func message(expr ast.Expr) string {
	selector, ok := expr.(*ast.SelectorExpr)
	if ok && isName(selector, "terminal", "Control", "Unfiltered") {
		return "terminal." + selector.Sel.Name + " is for packages that draw or archive; write text to the writer of the command"
	}
	return "a command writes to cmd.OutOrStdout or cmd.ErrOrStderr, and main to terminal.NewWriter(os.Stderr)"
}
