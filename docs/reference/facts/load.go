// Package facts reads from the code what the reference pages list: metrics, names of annotations
// and labels, conditions, reasons and Events. The page generator and the tests of docs/ use it to
// detect stale pages.
//
// The code is type-checked, not searched: a name counts wherever it is a constant, in whatever form
// it is written.
package facts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the path of the module.
const Module = "github.com/chandlery/chandlery"

// Code is the product code of the module, type-checked.
type Code struct {
	packages []*pkg
}

// pkg is one type-checked package of this module.
type pkg struct {
	path  string
	files []*ast.File
	info  *types.Info
}

// entry is the output of `go list` for one package.
type entry struct {
	ImportPath string   `json:"ImportPath"`
	Dir        string   `json:"Dir"`
	Export     string   `json:"Export"`
	GoFiles    []string `json:"GoFiles"`
	DepOnly    bool     `json:"DepOnly"`
}

// Load type-checks the product code of the module whose root is dir: the packages below cmd,
// server, supervisor and bundles, without tests.
func Load(ctx context.Context, dir string) (*Code, error) {
	entries, err := list(ctx, dir, "./cmd/...", "./server/...", "./supervisor/...", "./bundles/...")
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, e := range entries {
		exports[e.ImportPath] = e.Export
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		file, ok := exports[path]
		if !ok || file == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	})
	var code Code
	for _, e := range entries {
		if e.DepOnly || len(e.GoFiles) == 0 {
			continue
		}
		p, err := check(fset, imports, e)
		if err != nil {
			return nil, err
		}
		code.packages = append(code.packages, p)
	}
	return &code, nil
}

// list returns what `go list` reports for packages and everything that they import.
func list(ctx context.Context, dir string, patterns ...string) ([]entry, error) {
	args := append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var entries []entry
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var e entry
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding the output of go list: %w", err)
		}
		entries = append(entries, e)
	}
}

// check parses a package and determines the types of its expressions.
func check(fset *token.FileSet, imports types.Importer, e entry) (*pkg, error) {
	p := &pkg{path: strings.TrimPrefix(e.ImportPath, Module+"/"), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}}
	for _, name := range e.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(e.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parsing: %w", err)
		}
		p.files = append(p.files, file)
	}
	config := types.Config{Importer: imports}
	if _, err := config.Check(e.ImportPath, fset, p.files, p.info); err != nil {
		return nil, fmt.Errorf("checking %s: %w", e.ImportPath, err)
	}
	return p, nil
}

// each calls f for every node of the package.
func (p *pkg) each(f func(ast.Node)) {
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(n)
			}
			return true
		})
	}
}

// text returns the value of an expression that is a constant string.
func (p *pkg) text(e ast.Expr) (string, bool) {
	tv, ok := p.info.Types[e]
	if !ok || tv.Value == nil || tv.Value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(tv.Value), true
}

// object returns the constant, function or type that an expression names, or nil.
func (p *pkg) object(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		if used := p.info.Uses[e]; used != nil {
			return used
		}
		return p.info.Defs[e]
	case *ast.SelectorExpr:
		return p.info.Uses[e.Sel]
	}
	return nil
}
