package clusterserviceversion

import (
	"fmt"
	"slices"

	"github.com/chandlery/chandlery/supervisor/kubeversion"
	"github.com/chandlery/chandlery/supervisor/webhook"
)

// lingerMinor is the first minor version of Kubernetes 1 with a preStop sleep, which needs no
// program in the container.
const lingerMinor = 30

// canLinger reports whether the pods of a converting server can keep running for a while when they
// are to end.
func (r *reconciler) canLinger(servers []webhook.Server) (bool, error) {
	if !slices.ContainsFunc(servers, webhook.Server.Converts) {
		return false, nil
	}
	said, err := r.serverVersion()
	if err != nil {
		return false, fmt.Errorf("asking the API server for its version: %w", err)
	}
	v, err := kubeversion.Parse(said)
	// An unreadable version may be of any age.
	return err == nil && kubeversion.AtLeast(v, 1, lingerMinor), nil
}
