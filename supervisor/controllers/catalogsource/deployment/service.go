package deployment

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/chandlery/chandlery/supervisor/api"
	"github.com/chandlery/chandlery/supervisor/catalogs"
)

// service returns the Service of a catalog, with a hash of its spec, and a port for TLS if secured.
func service(source *operatorsv1alpha1.CatalogSource, secured bool) (*corev1.Service, error) {
	s := &corev1.Service{
		ObjectMeta: Meta(source, catalogs.ServiceName(source)),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: ServiceLabels(source.Name),
			Ports: []corev1.ServicePort{{
				Name: portName, Protocol: corev1.ProtocolTCP, Port: catalogs.Port, TargetPort: intstr.FromInt32(catalogs.Port),
			}},
		},
	}
	if secured {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: catalogs.PortNameTLS, Protocol: corev1.ProtocolTCP, Port: catalogs.PortTLS, TargetPort: intstr.FromInt32(catalogs.PortTLS),
		})
	}
	sum, err := hash(s.Spec)
	if err != nil {
		return nil, err
	}
	s.Labels[api.LabelServiceSpecHash] = sum
	return s, nil
}
