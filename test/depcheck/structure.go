package depcheck

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chandlery/chandlery/test/golist"
)

// MaxDepths returns the largest number of imports from a package below a folder to the package of the module that
// imports no other, by folder.
func MaxDepths() map[string]int {
	return map[string]int{
		"bundles": 4, "server": 6, "supervisor": 7,
		// A program, the list of commands and a command are three more layers.
		"cmd": 10,
	}
}

// imports returns the imports of packages within the module, both relative to it.
func imports(packages []golist.Package) map[string][]string {
	graph := map[string][]string{}
	for _, p := range packages {
		from, is := strings.CutPrefix(p.ImportPath, Module+"/")
		if !is {
			continue
		}
		graph[from] = nil
		for _, i := range p.Imports {
			if to, is := strings.CutPrefix(i, Module+"/"); is {
				graph[from] = append(graph[from], to)
			}
		}
	}
	return graph
}

// TooDeep returns a line for each folder with a longer chain of imports than its limit. The line has the chain.
func TooDeep(packages []golist.Package, limits map[string]int) []string {
	graph, chains := imports(packages), map[string][]string{}
	var chain func(string) []string
	chain = func(p string) []string {
		if known, is := chains[p]; is {
			return known
		}
		var longest []string
		for _, next := range graph[p] {
			if c := chain(next); len(c) > len(longest) {
				longest = c
			}
		}
		chains[p] = slices.Concat([]string{p}, longest)
		return chains[p]
	}
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(limits)) {
		var longest []string
		for _, p := range slices.Sorted(maps.Keys(graph)) {
			if c := chain(p); below(Module+"/"+p, folder) && len(c) > len(longest) {
				longest = c
			}
		}
		if depth := len(longest) - 1; depth > limits[folder] {
			found = append(found, fmt.Sprintf("%s has %d imports in a row, at most %d are allowed: %s",
				folder, depth, limits[folder], strings.Join(longest, " -> ")))
		}
	}
	return found
}

// FolderCycles returns a line for each pair of folders in one folder that import each other, with an import in each
// direction. The packages below a folder count as the folder.
func FolderCycles(packages []golist.Package) []string {
	examples := map[edge]string{}
	for from, all := range imports(packages) {
		for _, to := range all {
			e := siblings(from, to)
			examples[e] = cmp.Or(examples[e], from+" -> "+to)
		}
	}
	reach := func(from, to string) bool {
		seen, next := map[string]bool{}, []string{from}
		for len(next) > 0 {
			at := next[0]
			next = next[1:]
			for e := range examples {
				if e.from == at && !seen[e.to] {
					seen[e.to], next = true, append(next, e.to)
				}
			}
		}
		return seen[to]
	}
	var found []string
	for e, example := range examples {
		if e.from != e.to && e.from != "" && reach(e.to, e.from) {
			found = append(found, fmt.Sprintf("%s and %s import each other: %s", e.from, e.to, example))
		}
	}
	slices.Sort(found)
	return found
}

// edge is an import between two folders in one folder.
type edge struct{ from, to string }

// siblings returns the folders in one folder that hold two packages. Both are empty if one package is below the other.
func siblings(from, to string) edge {
	a, b := strings.Split(from, "/"), strings.Split(to, "/")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return edge{path.Join(a[:i+1]...), path.Join(b[:i+1]...)}
		}
	}
	return edge{}
}

// ControllersElsewhere returns the packages outside supervisor/controllers that may set up a controller, with a reason.
func ControllersElsewhere() map[string]string {
	return map[string]string{
		"supervisor/catalogs": "it follows the CatalogSources for its connections, and writes nothing",
	}
}

// Controllers returns the folders of packages that set up a controller: they call NewControllerManagedBy.
func (s *Source) Controllers() []string {
	found := map[string]bool{}
	for name, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, is := n.(*ast.SelectorExpr); is && sel.Sel.Name == "NewControllerManagedBy" {
				found[path.Dir(name)] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}
