package supervisor

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandlery/chandlery/supervisor/api/scheme"
)

// NewScheme returns a scheme with the kinds that the controllers use.
func NewScheme() (*runtime.Scheme, error) {
	return scheme.New() //nolint:wrapcheck // wrapped where it arises
}
