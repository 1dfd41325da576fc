package catalogsource

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"google.golang.org/grpc/connectivity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
	"github.com/chandlery/chandlery/supervisor/catalogs/dialtls"
)

// connectionSecured returns the condition about the encryption of the connection to an address or to replicas. It is nil
// for a catalog in plain text, unless the server at an address expects TLS.
func connectionSecured(source *operatorsv1alpha1.CatalogSource, state catalogs.State, followed bool) *metav1.Condition {
	peer := state.Address
	if catalogs.Hosted(source) {
		followed = followed && state.TLS.Encrypted
		peer = "the replicas"
	}
	if !followed || state.Address != catalogs.Address(source) {
		return nil
	}
	return conditionOfTLS(state, state.Connectivity == connectivity.Ready.String(), peer)
}

// conditionOfTLS returns the condition for the state of the connection to a peer.
func conditionOfTLS(state catalogs.State, connected bool, peer string) *metav1.Condition {
	switch t := state.TLS; {
	case t.Problem != nil:
		c := insecure(t.Problem)
		if t.InUse {
			c.Message += "; the previous certificates stay in use"
		}
		return c
	case t.Failure != nil && !connected:
		return insecure(t.Failure)
	case !t.Encrypted:
		return nil
	case t.Warning != nil:
		c := insecure(t.Warning)
		if connected && t.Warning.Reason == dialtls.ClientCertificateExpiring {
			c.Status = metav1.ConditionTrue
		}
		return c
	case !connected:
		return secured(metav1.ConditionUnknown, dialtls.NotConnected, "there is no connection to "+peer)
	}
	return secured(metav1.ConditionTrue, dialtls.Secured, "the connection to "+peer+" uses TLS")
}

func secured(status metav1.ConditionStatus, reason dialtls.Reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: api.ConditionConnectionSecured, Status: status, Reason: string(reason), Message: message}
}

func insecure(failure *dialtls.Error) *metav1.Condition {
	return secured(metav1.ConditionFalse, failure.Reason, failure.Text)
}
