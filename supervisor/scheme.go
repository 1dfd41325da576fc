package supervisor

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// NewScheme gives the kinds that the controllers work with.
func NewScheme() (*runtime.Scheme, error) {
	return scheme.New() //nolint:wrapcheck // wrapped where it arises
}
