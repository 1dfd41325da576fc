package depcheck

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxMethods is the largest number of methods of a type.
	MaxMethods = 15
	// MaxFields is the largest number of fields of a struct.
	MaxFields = 12
	// MaxLines is the largest number of lines of a function. Lines inside composite literals do not count: tables are data.
	MaxLines = 80
)

// Size is the number of methods and of fields of a type.
type Size struct{ Methods, Fields int }

// exceeds reports whether a type has more methods or fields than a limit.
func (s Size) exceeds(limit Size) bool { return s.Methods > limit.Methods || s.Fields > limit.Fields }

// Source is the parsed code of some folders of the module.
type Source struct {
	files map[string]*ast.File // by the slash-separated path from the root
	set   *token.FileSet
}

// Parse parses the code below some folders of the module whose root is dir, without tests.
func Parse(dir string, folders ...string) (*Source, error) { return parse(dir, false, folders) }

// ParseWithTests is Parse with tests.
func ParseWithTests(dir string, folders ...string) (*Source, error) { return parse(dir, true, folders) }

func parse(dir string, tests bool, folders []string) (*Source, error) {
	s := &Source{files: map[string]*ast.File{}, set: token.NewFileSet()}
	var errs []error
	for _, folder := range folders {
		errs = append(errs, filepath.WalkDir(filepath.Join(dir, folder), func(at string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(at, ".go") || (!tests && strings.HasSuffix(at, "_test.go")) {
				return err
			}
			file, err := parser.ParseFile(s.set, at, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("parsing: %w", err)
			}
			name, err := filepath.Rel(dir, at)
			s.files[filepath.ToSlash(name)] = file
			return err //nolint:wrapcheck // names both paths
		}))
	}
	return s, errors.Join(errs...)
}

// packageOf returns the folder of a file, with "_test" for a package of tests beside the package of the folder.
func packageOf(name string, file *ast.File) string {
	folder := path.Dir(name)
	if strings.HasSuffix(file.Name.Name, "_test") {
		return folder + "_test"
	}
	return folder
}

// Sizes returns the size of each type with methods or fields, by "PACKAGE.TYPE".
func (s *Source) Sizes() map[string]Size {
	sizes := map[string]Size{}
	for name, file := range s.files {
		folder := packageOf(name, file)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if key := receiver(decl); key != "" {
					size := sizes[folder+"."+key]
					size.Methods++
					sizes[folder+"."+key] = size
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						size := sizes[folder+"."+t.Name.Name]
						size.Fields = fields(t)
						sizes[folder+"."+t.Name.Name] = size
					}
				}
			}
		}
	}
	return sizes
}

// receiver returns the receiver type of a method, or an empty text for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// fields returns the number of fields of a struct type.
func fields(t *ast.TypeSpec) int {
	structure, ok := t.Type.(*ast.StructType)
	if !ok {
		return 0
	}
	n := 0
	for _, f := range structure.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// Oversized compares sizes with the limits and the allowances. An allowance must equal the size of
// the type, so it can only decrease.
func Oversized(sizes map[string]Size, allowed map[string]Allowance) []string {
	limit := Size{Methods: MaxMethods, Fields: MaxFields}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size := sizes[name]
		allowance, has := allowed[name]
		switch {
		case !has && size.exceeds(limit):
			problems = append(problems, fmt.Sprintf("%s has %d methods and %d fields, want at most %d and %d: divide it by responsibility",
				name, size.Methods, size.Fields, limit.Methods, limit.Fields))
		case has && size.exceeds(allowance.Size):
			problems = append(problems, fmt.Sprintf("%s has grown to %d methods and %d fields from %d and %d: give the new ones a type of their own",
				name, size.Methods, size.Fields, allowance.Methods, allowance.Fields))
		case has && size != allowance.Size:
			problems = append(problems, fmt.Sprintf("%s has shrunk to %d methods and %d fields: lower its allowance of %d and %d",
				name, size.Methods, size.Fields, allowance.Methods, allowance.Fields))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if _, exists := sizes[name]; !exists {
			problems = append(problems, name+" does not exist: remove its allowance")
		}
	}
	return problems
}

// LongFunctions returns the lines of each function that has more than MaxLines, by "FILE:FUNCTION".
func (s *Source) LongFunctions() map[string]int {
	long := map[string]int{}
	for name, file := range s.files {
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && s.lines(f) > MaxLines {
				long[name+":"+f.Name.Name] = s.lines(f)
			}
		}
	}
	return long
}

// lines returns the lines of a function without those inside composite literals.
func (s *Source) lines(f *ast.FuncDecl) int {
	between := func(from, to token.Pos) int { return s.set.Position(to).Line - s.set.Position(from).Line }
	lines := between(f.Pos(), f.End()) + 1
	ast.Inspect(f, func(n ast.Node) bool {
		literal, is := n.(*ast.CompositeLit)
		if is {
			lines -= between(literal.Lbrace, literal.Rbrace)
		}
		return !is
	})
	return lines
}

// Literals returns the positions of string literals with a prefix, outside a folder.
func (s *Source) Literals(prefix, except string) []string {
	var found []string
	for name, file := range s.files {
		if strings.HasPrefix(name, except+"/") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.HasPrefix(text, prefix) {
				found = append(found, fmt.Sprintf("%s:%d: %s", name, s.set.Position(literal.Pos()).Line, literal.Value))
			}
			return true
		})
	}
	slices.SortFunc(found, cmp.Compare[string])
	return found
}
