package clusterserviceversion

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/kubeversion"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// lingerMinor is the first minor version of Kubernetes 1 that lets a pod go on without a
// program in it for that.
const lingerMinor = 30

// canLinger says whether the pods of a server that converts can go on for a while when
// they are to end.
func (r *reconciler) canLinger(servers []webhook.Server) (bool, error) {
	if !slices.ContainsFunc(servers, webhook.Server.Converts) {
		return false, nil
	}
	said, err := r.serverVersion()
	if err != nil {
		return false, fmt.Errorf("asking the API server for its version: %w", err)
	}
	v, err := kubeversion.Parse(said)
	// One that cannot be read may be of any age.
	return err == nil && kubeversion.AtLeast(v, 1, lingerMinor), nil
}
