package depcheck

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// DirectWriters returns the files that may write to the API server without supervisor/apply, with a reason each.
func DirectWriters() map[string]string {
	return map[string]string{
		"supervisor/catalogs/contentcache/cache.go": "a file; the package has no client",
		"supervisor/lease_fence.go":                 "the Lease of leader election, which client-go writes",
		"supervisor/migration/competing/access.go":  "a SubjectAccessReview, which stores nothing",
	}
}

// writes are the names of the methods of clients that write.
var writes = regexp.MustCompile(`^(Create|Update|UpdateStatus|Patch|Delete|DeleteAllOf|DeleteCollection|Apply|ApplyStatus|Evict)$`)

// Writes returns the positions below a folder, and outside another one, that write to the API server, by file.
//
// A write is the call of a method of that name with at least two arguments: clients take a context and an object.
// Maps, sets and the like have methods of these names with one argument. The functions of the packages apply and
// slices are none.
func (s *Source) Writes(folder, except string) map[string][]string {
	found := map[string][]string{}
	for name, file := range s.files {
		if !strings.HasPrefix(name, folder+"/") || strings.HasPrefix(name, except+"/") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && isWrite(call) {
				found[name] = append(found[name], fmt.Sprintf("%s:%d", name, s.set.Position(call.Pos()).Line))
			}
			return true
		})
	}
	return found
}

// isWrite reports whether a call writes to the API server.
func isWrite(call *ast.CallExpr) bool {
	method, is := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !is || len(call.Args) < 2 || !writes.MatchString(method.Sel.Name) {
		return false
	}
	library, is := method.X.(*ast.Ident)
	return !is || library.Name != "apply" && library.Name != "slices"
}
