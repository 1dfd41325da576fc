package resolution

import (
	"strings"

	"github.com/chandlery/chandlery/internal/similarnames"
	"github.com/chandlery/chandlery/supervisor/resolution/content"
)

// similarNames returns the names of packages that resemble a requested name, the nearest first, to help with typing
// errors.
func similarNames(name string, packages []*content.Package) string {
	const most = 5
	names := make([]string, 0, len(packages))
	for _, pkg := range packages {
		names = append(names, pkg.Name)
	}
	similar := similarnames.Of(name, names)
	if len(similar) == 0 {
		return ""
	}
	return ", it has for instance " + strings.Join(similar[:min(most, len(similar))], ", ")
}
