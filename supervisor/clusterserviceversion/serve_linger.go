package clusterserviceversion

import (
	"fmt"
	"slices"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/chandlery/chandlery/supervisor/serving"
)

// lingerVersion is the first version of Kubernetes that lets a pod go on without a program
// in it for that.
const lingerVersion = "1.30"

// canLinger says whether the pods of a server that converts can go on for a while when
// they are to end.
func (r *reconciler) canLinger(servers []serving.Server) (bool, error) {
	if !slices.ContainsFunc(servers, serving.Server.Converts) {
		return false, nil
	}
	said, err := r.serverVersion()
	if err != nil {
		return false, fmt.Errorf("asking the API server for its version: %w", err)
	}
	v, err := utilversion.ParseGeneric(said)
	// One that cannot be read may be of any age.
	return err == nil && v.AtLeast(utilversion.MustParseGeneric(lingerVersion)), nil
}
